import { setTimeout as sleep } from "node:timers/promises";
import type { TestPostgres } from "../servers/postgres.ts";
import { endsOf } from "./calls.ts";
import { startRun, type CampaignOptions } from "./campaign.ts";
import type { Verdict } from "./judge.ts";
import { openTestbed } from "./testbed.ts";

const GATEWAYS = 2;

/** Postgres is stopped under load, in order and as if its plug were pulled; calls with known keys go on. */
export async function postgresCampaign(
  postgres: TestPostgres,
  options: CampaignOptions,
): Promise<Verdict> {
  const { say, awayMs } = options;
  const testbed = await openTestbed(postgres.url("postgres"), {
    gateways: GATEWAYS,
    redis: true,
  });
  try {
    const run = await startRun(testbed, options, { calls: 60 });
    for (const how of ["SIGINT", "SIGQUIT"] as const) {
      await sleep(Math.min(2_000, awayMs / 2));
      await postgres.stop(how);
      const from = run.told.length;
      await sleep(awayMs);
      const served = endsOf(run.told.slice(from));
      await postgres.start();
      say(
        `postgres: away ${awayMs} ms (${how}); meanwhile ${served}; now back`,
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

/** Redis is flushed, slow, frozen, cut off and stopped under load. */
export async function redisCampaign(
  postgres: TestPostgres,
  options: CampaignOptions,
): Promise<Verdict> {
  const { say, awayMs, random } = options;
  const testbed = await openTestbed(postgres.url("postgres"), {
    gateways: GATEWAYS,
    redis: true,
  });
  const { redis } = testbed;
  if (redis === null) {
    throw new Error("a Redis campaign without Redis");
  }
  const away = Math.min(awayMs, 30_000);
  const relays = testbed.gateways.map(({ redisRelay }) => redisRelay);
  /** While Redis is away a budget may be crossed by one call of each instance. */
  const faults: readonly {
    readonly name: string;
    readonly allowance: number;
    readonly act: () => Promise<void>;
  }[] = [
    {
      name: "flushed",
      allowance: 1,
      async act() {
        const until = performance.now() + away / 3;
        while (performance.now() < until) {
          await redis.client.flushall();
          await sleep(random.whole(50, 1_500));
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
        await sleep(away / 3);
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
        await sleep(away / 3);
        redis.thaw();
      },
    },
    {
      name: "cut off from one gateway",
      allowance: GATEWAYS,
      async act() {
        relays[0]?.cut();
        await sleep(away / 3);
        relays[0]?.restore();
      },
    },
    {
      name: "stopped",
      allowance: GATEWAYS,
      async act() {
        await redis.stop();
        await sleep(away);
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
      await sleep(Math.min(1_000, awayMs / 3));
      const from = run.told.length;
      await act();
      await sleep(Math.min(2_000, awayMs / 3));
      say(`redis: ${name}; meanwhile ${endsOf(run.told.slice(from))}`);
    }
    return await run.end("redis");
  } finally {
    redis.thaw();
    await testbed.close();
  }
}
