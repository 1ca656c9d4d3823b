import { setTimeout as sleep } from "node:timers/promises";
import type { TestPostgres } from "../servers/postgres.ts";
import { missingNow, startRun, type CampaignOptions } from "./campaign.ts";
import type { Verdict } from "./judge.ts";
import { openTestbed } from "./testbed.ts";

const GATEWAYS = 3;
const CHECK_EVERY_MS = 60_000;

/** Random faults under load on three gateways: kills, and both stores stopped, disconnected, slow or flushed. */
export async function mixedCampaign(
  postgres: TestPostgres,
  options: CampaignOptions,
): Promise<Verdict> {
  const { random, log } = options;
  const testbed = await openTestbed(postgres.url("postgres"), {
    gateways: GATEWAYS,
    redis: true,
  });
  const { redis, gateways } = testbed;
  if (redis === null) {
    throw new Error("the mixed campaign needs Redis");
  }
  const briefly = () => sleep(random.integer(100, 4_000));

  const faults = {
    async kill() {
      const victim = random.pick(gateways);
      await victim.kill();
      await sleep(random.integer(0, 1_000));
      victim.launch();
    },
    async flush() {
      await redis.client.flushall();
    },
    async freezeRedis() {
      redis.freeze();
      await briefly();
      redis.thaw();
    },
    async stopRedis() {
      await redis.stop();
      await briefly();
      await redis.start();
    },
    async cutRedis() {
      const { redisRelay } = random.pick(gateways);
      redisRelay?.cut();
      await briefly();
      redisRelay?.restore();
    },
    async slowRedis() {
      const { redisRelay } = random.pick(gateways);
      redisRelay?.slow(random.integer(5, 400));
      await briefly();
      redisRelay?.restore();
    },
    async stopPostgres() {
      await postgres.stop(random.pick(["SIGINT", "SIGQUIT"] as const));
      await briefly();
      await postgres.start();
    },
    async cutPostgres() {
      const { postgresRelay } = random.pick(gateways);
      postgresRelay.cut();
      await briefly();
      postgresRelay.restore();
    },
    async stallPostgres() {
      const { postgresRelay } = random.pick(gateways);
      postgresRelay.stall();
      await briefly();
      postgresRelay.restore();
    },
    async slowPostgres() {
      const { postgresRelay } = random.pick(gateways);
      postgresRelay.slow(random.integer(5, 200));
      await briefly();
      postgresRelay.restore();
    },
  };

  try {
    const run = await startRun(testbed, options, {
      allowance: GATEWAYS,
      calls: 30,
    });
    const until = performance.now() + options.minutes * 60_000;
    let checkAt = performance.now() + CHECK_EVERY_MS;
    const injected: string[] = [];
    while (performance.now() < until) {
      const name = random.pick(Object.keys(faults) as (keyof typeof faults)[]);
      injected.push(name);
      await faults[name]();
      await sleep(random.integer(0, 1_500));
      if (performance.now() < checkAt && performance.now() < until) {
        continue;
      }
      checkAt = performance.now() + CHECK_EVERY_MS;
      await run.load.pause();
      await Promise.all(gateways.map((gateway) => gateway.untilReady()));
      const missing = await missingNow(testbed);
      log(
        `mixed: ${injected.length} faults, ${run.received.length} calls, ${missing.length} missing, ${Math.max(0, Math.round((until - performance.now()) / 1_000))} s to go`,
      );
      if (missing.length > 0) {
        break;
      }
      await run.renew();
      run.load.resume();
    }
    return await run.end("mixed");
  } finally {
    redis.thaw();
    await postgres.start().catch(() => undefined);
    await testbed.close();
  }
}
