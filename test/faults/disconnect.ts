import type { TestPostgres } from "../servers/postgres.ts";
import { createBudgetKey } from "./accounts.ts";
import { call, endsOf } from "./calls.ts";
import { startRun, type CampaignOptions } from "./campaign.ts";
import type { Verdict } from "./judge.ts";
import { openTestbed, type Member } from "./testbed.ts";

/** Clients disconnect from their streams after every possible number of chunks; the output up to then is billed. */
export async function disconnectCampaign(
  postgres: TestPostgres,
  options: CampaignOptions,
): Promise<Verdict> {
  const testbed = await openTestbed(postgres.url("postgres"), {
    gateways: 1,
    redis: false,
  });
  const chunks = 8;
  try {
    const run = await startRun(testbed, options, { parallel: 2 });
    const [gateway] = testbed.gateways as readonly [Member];
    for (let round = 0; round < Math.max(1, options.rounds / 20); round++) {
      for (let leaveAfter = 0; leaveAfter <= chunks + 1; leaveAfter++) {
        const { account, budget } = await createBudgetKey(
          testbed,
          gateway,
          0.01,
        );
        run.budgets.push(budget);
        const ends = await Promise.all(
          [0, 0, 2, 5].map((chunkDelayMs) =>
            call(gateway.url, account, {
              stream: true,
              tokens: chunks,
              delayMs: 0,
              chunkDelayMs,
              leaveAfter,
            }),
          ),
        );
        for (const received of ends) {
          run.record(received);
        }
        if (round % 5 === 0 || leaveAfter > chunks) {
          options.log(
            `disconnect: after chunk ${leaveAfter}, round ${round + 1}; ${endsOf(ends)}`,
          );
        }
      }
    }
    return await run.end("disconnect");
  } finally {
    await testbed.close();
  }
}
