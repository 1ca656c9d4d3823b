import { setTimeout as sleep } from "node:timers/promises";
import type { TestPostgres } from "../servers/postgres.ts";
import type { MockMoment } from "../servers/provider.ts";
import type { RelayMoment } from "../servers/relay.ts";
import { missingNow, startRun, type CampaignOptions } from "./campaign.ts";
import type { Verdict } from "./judge.ts";
import type { Random } from "./random.ts";
import { openTestbed, type Member, type Testbed } from "./testbed.ts";

/** Where a gateway is killed, as seen from outside. */
type KillPoint =
  | { readonly at: "provider"; readonly moment: MockMoment }
  | { readonly at: "postgres" | "redis"; readonly moment: RelayMoment }
  /** The client has just read the end of its response. */
  | { readonly at: "client"; readonly moment: "answered" };

const PROVIDER: readonly KillPoint[] = (
  ["request", "first_chunk", "finished"] as const
).map((moment) => ({ at: "provider", moment }));
const POSTGRES: readonly KillPoint[] = (
  ["before insert", "after insert", "before commit", "after commit"] as const
).map((moment) => ({ at: "postgres", moment }));
const REDIS: readonly KillPoint[] = (
  [
    "before admit",
    "after admit",
    "before settle",
    "after settle",
    "before assign",
    "after assign",
  ] as const
).map((moment) => ({ at: "redis", moment }));
const CLIENT: readonly KillPoint[] = [{ at: "client", moment: "answered" }];

const REACHED_WITHIN_MS = 4_000;
const CHECK_EVERY = 10;

/** Kills gateways under load with SIGKILL, at each point in turn; each is then restarted on its journal. */
export async function killCampaign(
  postgres: TestPostgres,
  options: CampaignOptions,
  where: "memory" | "redis",
): Promise<Verdict> {
  const redis = where === "redis";
  const points = [...PROVIDER, ...POSTGRES, ...CLIENT, ...(redis ? REDIS : [])];
  // With Redis a second gateway continues to serve the same keys.
  const testbed = await openTestbed(postgres.url("postgres"), {
    gateways: redis ? 2 : 1,
    redis,
  });
  try {
    const run = await startRun(testbed, options);
    const first = options.random.integer(0, points.length - 1);
    let missed = 0;
    let slowestStart = 0;
    for (let round = 0; round < options.rounds; round++) {
      const point = points[(first + round) % points.length] as KillPoint;
      const victim = options.random.pick(testbed.gateways);
      if (
        !(await killAt(testbed, victim, point, options.random, run.received))
      ) {
        missed++;
      }
      const startedAt = performance.now();
      await restart(victim, options.random);
      slowestStart = Math.max(slowestStart, performance.now() - startedAt);
      if ((round + 1) % CHECK_EVERY === 0 || round + 1 === options.rounds) {
        await run.load.pause();
        const missing = await missingNow(testbed);
        options.log(
          `kill ${where}: ${round + 1}/${options.rounds} rounds, ${run.received.length} calls, ${missing.length} missing, slowest start ${Math.round(slowestStart)} ms, ${missed} kills missed their point`,
        );
        if (missing.length > 0) {
          break;
        }
        if (round + 1 < options.rounds) {
          await run.renew();
        }
        run.load.resume();
      }
    }
    return await run.end(`kill ${where}`);
  } finally {
    await testbed.close();
  }
}

/** Kills at the point, or after a timeout; false when the point was not reached in time. */
async function killAt(
  testbed: Testbed,
  victim: Member,
  point: KillPoint,
  random: Random,
  received: readonly unknown[],
): Promise<boolean> {
  const count = random.integer(1, 6);
  const kill = () => process.kill(victim.pid(), "SIGKILL");
  switch (point.at) {
    case "provider":
      void testbed.provider.killAt(
        point.moment,
        count,
        victim.pid(),
        victim.name,
      );
      break;
    case "postgres":
      victim.postgresRelay.at(point.moment, random.integer(1, 2), kill);
      break;
    case "redis":
      victim.redisRelay?.at(point.moment, count, kill);
      break;
    case "client": {
      const from = received.length + count;
      while (received.length < from) {
        await sleep(1);
      }
      kill();
    }
  }
  const reached = await Promise.race([
    victim.exited().then(() => true),
    sleep(REACHED_WITHIN_MS, false),
  ]);
  testbed.provider.disarm();
  victim.postgresRelay.disarm();
  victim.redisRelay?.disarm();
  await victim.kill();
  return reached;
}

/** Restarts the gateway; sometimes it is killed again during the replay. */
async function restart(victim: Member, random: Random): Promise<void> {
  if (random.chance(0.25)) {
    victim.launch();
    await sleep(random.integer(100, 700));
    await victim.kill();
  }
  await victim.start();
}
