import type { TestPostgres } from "../servers/postgres.ts";
import { makeBudgetKey } from "./accounts.ts";
import { call, endsOf, type Told } from "./calls.ts";
import { finish, type CampaignOptions } from "./campaign.ts";
import type { Verdict } from "./judge.ts";
import { openTestbed, type Testbed } from "./testbed.ts";

const CROWD = 200;
const CROWD_CALL = {
  stream: false,
  tokens: 8,
  delayMs: 60,
  chunkDelayMs: 0,
  leaveAfter: null,
} as const;
/** What one such call costs; the budget is ten of them. */
const CROWD_PRICE = 10 * 0.000001 + 8 * 0.000002;
const MONEY_FOR = 10;

/** 200 calls at once on a key with money for 10, then one after the other until it is used up. */
export async function crowdCampaign(
  postgres: TestPostgres,
  options: CampaignOptions,
  shape: { readonly gateways: number; readonly redis: boolean },
): Promise<Verdict> {
  const testbed = await openTestbed(postgres.url("postgres"), shape);
  const name = `crowd ${shape.redis ? "redis" : "memory"} x${shape.gateways}`;
  const told: Told[] = [];
  const budgets = [];
  const accounts = [];
  try {
    for (let time = 0; time < Math.max(1, options.rounds / 50); time++) {
      const { account, budget } = await crowd(testbed, told);
      budgets.push(budget);
      accounts.unshift(account);
      options.say(`${name}: ${endsOf(told.slice(-CROWD))}`);
    }
    return await finish(name, testbed, options, { told, budgets, accounts });
  } finally {
    await testbed.close();
  }
}

async function crowd(testbed: Testbed, told: Told[]) {
  const { gateways } = testbed;
  const [first] = gateways;
  if (first === undefined) {
    throw new Error("a testbed without a gateway");
  }
  const made = await makeBudgetKey(
    testbed,
    first,
    Math.round(MONEY_FOR * CROWD_PRICE * 1e9) / 1e9,
  );
  const ends = await Promise.all(
    Array.from({ length: CROWD }, (_, at) =>
      call(gateways[at % gateways.length]?.url ?? "", made.account, CROWD_CALL),
    ),
  );
  told.push(...ends);
  return made;
}
