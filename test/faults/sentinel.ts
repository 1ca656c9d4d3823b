import { setTimeout as sleep } from "node:timers/promises";
import type { TestPostgres } from "../servers/postgres.ts";
import { startSentinels } from "../servers/sentinel.ts";
import { endsOf } from "./calls.ts";
import { startRun, type CampaignOptions } from "./campaign.ts";
import type { Verdict } from "./judge.ts";
import { openTestbed } from "./testbed.ts";

const GATEWAYS = 2;
const ROUNDS_EACH = 20;

/** Kills the primary under load, again and again; the promoted replica may lack the last changes. */
export async function sentinelCampaign(
  postgres: TestPostgres,
  options: CampaignOptions,
): Promise<Verdict> {
  const { log, random, rounds } = options;
  const sentinels = await startSentinels();
  try {
    const testbed = await openTestbed(postgres.url("postgres"), {
      gateways: GATEWAYS,
      redis: sentinels,
    });
    try {
      const run = await startRun(testbed, options, {
        calls: 40,
        // Until the replica is promoted, each instance may exceed a budget by one call.
        allowance: GATEWAYS,
      });
      for (let round = 0; round < Math.ceil(rounds / ROUNDS_EACH); round++) {
        await run.load.pause();
        await testbed.drained();
        await run.renew();
        run.load.resume();
        await sleep(random.integer(300, 1_500));
        const from = run.received.length;
        await sentinels.failOver();
        await sleep(random.integer(500, 2_000));
        log(
          `sentinel: the primary was killed; until after the failover ${endsOf(run.received.slice(from))}`,
        );
        await sentinels.rejoin();
      }
      return await run.end("sentinel-failover");
    } finally {
      await testbed.close();
    }
  } finally {
    await sentinels.remove();
  }
}
