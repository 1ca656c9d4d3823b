import { setTimeout as sleep } from "node:timers/promises";
import { prepareTemplate } from "../servers/database.ts";
import type { TestPostgres } from "../servers/postgres.ts";
import { startReplication, type TestReplication } from "../servers/standby.ts";
import { endsOf } from "./calls.ts";
import { startRun, type CampaignOptions } from "./campaign.ts";
import type { Verdict } from "./judge.ts";
import { openTestbed, type Member, type Testbed } from "./testbed.ts";

const GATEWAYS = 2;
const ROUNDS_EACH = 40;
/** Until every gateway has written its lost calls again, totals lack them. */
const LOST_CALLS_PER_BUDGET = 50;

/**
 * Kills the primary of a replicated Postgres under load and promotes a standby without the last seconds, again and again;
 * in every second round a gateway is killed with it. Throws if that lost no rows.
 */
export async function failoverCampaign(
  _: TestPostgres,
  options: CampaignOptions,
): Promise<Verdict> {
  const { log, random, rounds } = options;
  const replication = await startReplication();
  try {
    await prepareTemplate(replication);
    const testbed = await openTestbed(replication.url("postgres"), {
      gateways: GATEWAYS,
      redis: true,
    });
    try {
      const run = await startRun(testbed, options, {
        calls: 40,
        allowance: LOST_CALLS_PER_BUDGET,
      });
      for (let round = 0; round < Math.ceil(rounds / ROUNDS_EACH); round++) {
        await run.load.pause();
        await testbed.drained();
        await run.renew();
        await replication.caughtUp();
        run.load.resume();
        await sleep(random.integer(300, 1_500));
        const from = run.received.length;
        const killed =
          round % 2 === 0 ? random.pick(testbed.gateways) : undefined;
        await failOver(replication, random.integer(500, 2_000), killed);
        await sleep(random.integer(500, 2_000));
        log(
          `failover: the primary was killed${killed === undefined ? "" : " with a gateway"}; until after it ${endsOf(run.received.slice(from))}; ${await restoredRows(testbed)} rows written again so far`,
        );
        await replication.rejoin();
      }
      const verdict = await run.end("database-failover");
      if ((await restoredRows(testbed)) === 0) {
        throw new Error("no row was lost: the campaign has shown nothing");
      }
      return verdict;
    } finally {
      await testbed.close();
    }
  } finally {
    await replication.remove();
  }
}

/** The standby lacks the last `lostMs` when it is promoted; `killed` is restarted afterwards. */
async function failOver(
  replication: TestReplication,
  lostMs: number,
  killed?: Member,
): Promise<void> {
  replication.cutStream();
  await sleep(lostMs);
  await killed?.kill();
  await replication.failOver();
  await killed?.start();
}

/** Rows that the running gateways wrote again since their start. */
async function restoredRows(testbed: Testbed): Promise<number> {
  const name = "hearth_ledger_restored_rows_total";
  let sum = 0;
  for (const gateway of testbed.gateways) {
    const { text } = await testbed.admin(gateway, "/metrics");
    const found = new RegExp(`^${name} (\\d+)`, "m").exec(text)?.[1];
    if (found === undefined) {
      throw new Error(`no metric ${name}`);
    }
    sum += Number(found);
  }
  return sum;
}
