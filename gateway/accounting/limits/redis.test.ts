import { redisServerHere } from "../../../test/servers/redis.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createLimits } from "./create.ts";
import {
  startTestRedis,
  until,
  type TestRedis,
} from "./testing/redis-server.ts";
import { admitKnowing, callOf, payer } from "./testing/bench.ts";
import { describeRules } from "./testing/rules.ts";
import { SCRIPTS, STALE } from "./scripts.ts";
import { admitArguments } from "./wire.ts";

describe.runIf(redisServerHere())("with a redis-server", () => {
  let server: TestRedis;
  beforeAll(async () => {
    server = await startTestRedis();
  });
  afterAll(() => server.stop());

  it("lets go of windows that are over, so that nothing grows for ever", async () => {
    let now = 1_000_000;
    const redis = await server.connected();
    const store = createLimits({
      redis,
      instance: "a",
      prefix: "windows:",
      now: () => now,
      discoverMs: 0,
    });
    for (let i = 0; i < 200; i++) {
      const call = callOf([payer("key:a", { budget: 10, window: `w${i}` })], {
        estimate: 1,
      });
      expect((await admitKnowing(store, call)).kind).toBe("admitted");
      const counter = { entity: "key:a", window: `w${i}` };
      await store.settle({
        callId: call.callId,
        tokens: 0,
        pending: [{ ...counter, pending: 1 }],
      });
      await store.assign([{ ...counter, total: 1, version: 1, pending: 0 }]);
      now += 30_000;
    }
    // Ten minutes of windows of 30 s, and the account.
    expect(await redis.hlen("windows:entity:key:a")).toBeLessThan(25);
    await store.close();
  });

  it("refuses what an earlier connection of the instance sent", async () => {
    const redis = await server.connected();
    const options = { instance: "a", prefix: "sessions:", discoverMs: 0 };
    const before = createLimits({ redis, ...options });
    const key = payer("key:a", { budget: 10 });
    await admitKnowing(before, callOf([key]));
    const known = await redis.hgetall("sessions:generation");
    const after = createLimits({ redis: await server.connected(), ...options });
    await until(() => after.counts().arrivals > 0);
    const call = callOf([key], { estimate: 5 });
    const reply = await redis.evalsha(
      SCRIPTS.admit.sha,
      0,
      ...["sessions:", "a", known["id"] ?? "", known["session:a"] ?? "", ""],
      ...admitArguments(call, true, false),
    );
    expect(reply).toEqual([STALE]);
    await before.close();
    await after.close();
  });

  describeRules("limits in Redis", async () => {
    let now = 1_000_000;
    const redis = await server.connected();
    await redis.flushall();
    const store = createLimits({
      redis,
      instance: "a",
      now: () => now,
      discoverMs: 0,
      beatMs: 10,
    });
    return {
      store,
      advance(ms) {
        now += ms;
      },
      async cache(key, value) {
        await redis.set(key, value, "EX", 600);
      },
      async close() {
        await store.close();
        redis.disconnect();
      },
    };
  });
});
