import type { TestPostgres } from "../servers/postgres.ts";
import { createBudgetKey } from "./accounts.ts";
import { call, endsOf, type Received } from "./calls.ts";
import { finish, type CampaignOptions } from "./campaign.ts";
import type { Verdict } from "./judge.ts";
import { openTestbed, type Testbed } from "./testbed.ts";

export const CROWD = 200;
export const CROWD_CALL = {
  stream: false,
  tokens: 8,
  delayMs: 60,
  chunkDelayMs: 0,
  leaveAfter: null,
} as const;
/** The cost of one such call. */
export const CALL_COST = 10 * 0.000001 + 8 * 0.000002;
/** Calls that the budget pays for. */
export const BUDGET_CALLS = 10;

/** 200 concurrent calls with a key whose budget covers 10, then sequential calls until it is used up. */
export async function crowdCampaign(
  postgres: TestPostgres,
  options: CampaignOptions,
  size: { readonly gateways: number; readonly redis: boolean },
): Promise<Verdict> {
  const testbed = await openTestbed(postgres.url("postgres"), size);
  const name = `crowd ${size.redis ? "redis" : "memory"} x${size.gateways}`;
  const received: Received[] = [];
  const budgets = [];
  const accounts = [];
  try {
    for (let round = 0; round < Math.max(1, options.rounds / 50); round++) {
      const { account, budget } = await crowd(testbed, received);
      budgets.push(budget);
      accounts.unshift(account);
      options.log(`${name}: ${endsOf(received.slice(-CROWD))}`);
    }
    return await finish(name, testbed, options, {
      received,
      budgets,
      accounts,
    });
  } finally {
    await testbed.close();
  }
}

async function crowd(testbed: Testbed, received: Received[]) {
  const { gateways } = testbed;
  const [first] = gateways;
  if (first === undefined) {
    throw new Error("a testbed without a gateway");
  }
  const created = await createBudgetKey(
    testbed,
    first,
    Math.round(BUDGET_CALLS * CALL_COST * 1e9) / 1e9,
  );
  const ends = await Promise.all(
    Array.from({ length: CROWD }, (_, at) =>
      call(
        gateways[at % gateways.length]?.url ?? "",
        created.account,
        CROWD_CALL,
      ),
    ),
  );
  received.push(...ends);
  return created;
}
