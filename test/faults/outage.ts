import { setTimeout as sleep } from "node:timers/promises";
import type { TestPostgres } from "../servers/postgres.ts";
import { endsOf } from "./calls.ts";
import { startRun, type CampaignOptions } from "./campaign.ts";
import type { Verdict } from "./judge.ts";
import { openTestbed } from "./testbed.ts";

const GATEWAYS = 2;

/** Stops Postgres under load, by a fast and an immediate shutdown; calls with known keys continue. */
export async function postgresCampaign(
  postgres: TestPostgres,
  options: CampaignOptions,
): Promise<Verdict> {
  const { log, outageMs } = options;
  const testbed = await openTestbed(postgres.url("postgres"), {
    gateways: GATEWAYS,
    redis: true,
  });
  try {
    const run = await startRun(testbed, options, { calls: 60 });
    for (const how of ["SIGINT", "SIGQUIT"] as const) {
      await sleep(Math.min(2_000, outageMs / 2));
      await postgres.stop(how);
      const from = run.received.length;
      await sleep(outageMs);
      const served = endsOf(run.received.slice(from));
      await postgres.start();
      log(
        `postgres: unavailable for ${outageMs} ms (${how}); during the outage ${served}`,
      );
      await run.load.pause();
      await testbed.drained();
      await run.renew();
      run.load.resume();
    }
    await sleep(1_000);
    return await run.end("postgres");
  } finally {
    await postgres.start().catch(() => undefined);
    await testbed.close();
  }
}

/** Flushes, slows, freezes, disconnects and stops Redis under load. */
export async function redisCampaign(
  postgres: TestPostgres,
  options: CampaignOptions,
): Promise<Verdict> {
  const { log, outageMs, random } = options;
  const testbed = await openTestbed(postgres.url("postgres"), {
    gateways: GATEWAYS,
    redis: true,
  });
  const { redis } = testbed;
  if (redis === null) {
    throw new Error("the Redis campaign needs Redis");
  }
  const cappedMs = Math.min(outageMs, 30_000);
  const relays = testbed.gateways.map(({ redisRelay }) => redisRelay);
  /** While Redis is unavailable, each instance may exceed a budget by one call. */
  const faults: readonly {
    readonly name: string;
    readonly allowance: number;
    readonly act: () => Promise<void>;
  }[] = [
    {
      name: "flushed",
      allowance: 1,
      async act() {
        const until = performance.now() + cappedMs / 3;
        while (performance.now() < until) {
          await redis.client.flushall();
          await sleep(random.integer(50, 1_500));
        }
      },
    },
    {
      name: "slow",
      allowance: 1,
      async act() {
        for (const relay of relays) {
          relay?.slow(150);
        }
        await sleep(cappedMs / 3);
        for (const relay of relays) {
          relay?.restore();
        }
      },
    },
    {
      name: "frozen",
      allowance: GATEWAYS,
      async act() {
        redis.freeze();
        await sleep(cappedMs / 3);
        redis.thaw();
      },
    },
    {
      name: "disconnected from one gateway",
      allowance: GATEWAYS,
      async act() {
        relays[0]?.cut();
        await sleep(cappedMs / 3);
        relays[0]?.restore();
      },
    },
    {
      name: "stopped",
      allowance: GATEWAYS,
      async act() {
        await redis.stop();
        await sleep(cappedMs);
        await redis.start();
      },
    },
  ];
  try {
    const run = await startRun(testbed, options, { calls: 40 });
    for (const { name, allowance, act } of faults) {
      await run.load.pause();
      await run.renew(allowance);
      run.load.resume();
      await sleep(Math.min(1_000, outageMs / 3));
      const from = run.received.length;
      await act();
      await sleep(Math.min(2_000, outageMs / 3));
      log(
        `redis: ${name}; during the outage ${endsOf(run.received.slice(from))}`,
      );
    }
    return await run.end("redis");
  } finally {
    redis.thaw();
    await testbed.close();
  }
}
