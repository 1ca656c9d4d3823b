import { hasRedisServer } from "../../test/servers/redis.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createLimits } from "./create.ts";
import { startTestRedis, type TestRedis } from "./testing/redis-server.ts";
import { admitKnowing, callOf, payer } from "./testing/bench.ts";
import { describeRules } from "./testing/rules.ts";
import { SCRIPTS, STALE } from "./scripts.ts";
import { admitBatch } from "./admit-arguments.ts";
import {
  waitForArrivals,
  waitForInstances,
} from "./testing/wait-for-limits.ts";

describe.runIf(hasRedisServer())("with a redis-server", () => {
  let server: TestRedis;
  beforeAll(async () => {
    server = await startTestRedis();
  });
  afterAll(() => server.stop());

  it("removes windows that have ended", async () => {
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

  it("reservations never become negative, even when Redis lost an account in use", async () => {
    const redis = await server.connected();
    const store = createLimits({
      redis,
      instance: "a",
      prefix: "lost:",
      discoverMs: 0,
    });
    const key = payer("key:a", { budget: 100, parallel: 2 });
    const call = callOf([key], { estimate: 60 });
    await admitKnowing(store, call);
    await redis.del("lost:entity:key:a");
    await store.settle({ callId: call.callId, tokens: 0, pending: [] });
    const next = callOf([key], { estimate: 200 });
    expect(await admitKnowing(store, next)).toMatchObject({ lease: 100 });
    expect(await store.look([key])).toMatchObject([
      { parallel: { remaining: 1 } },
    ]);
    await store.close();
  });

  it("a call that ends does not wait for Redis, and the next one of any instance finds its slot free", async () => {
    const options = { prefix: "not-waiting:", discoverMs: 0 };
    const [a, b] = await Promise.all(
      ["a", "b"].map(async (instance) =>
        createLimits({
          redis: await server.connected(),
          instance,
          ...options,
          deadlineMs: 10_000,
        }),
      ),
    );
    if (a === undefined || b === undefined) {
      throw new Error("two instances");
    }
    await waitForInstances(2, a, b);
    const key = payer("key:a", { budget: 100, parallel: 1 });
    const settled = (call: { callId: string }) => ({
      callId: call.callId,
      tokens: 0,
      pending: [{ entity: key.entity, window: key.window, pending: 1 }],
    });
    for (let round = 0; round < 50; round++) {
      for (const store of [a, b]) {
        const call = callOf([key], { estimate: 1 });
        expect((await admitKnowing(store, call)).kind).toBe("admitted");
        await store.settle(settled(call));
      }
    }
    const last = callOf([key], { estimate: 1 });
    await admitKnowing(a, last);
    server.freeze();
    try {
      await a.settle(settled(last));
    } finally {
      server.thaw();
    }
    expect((await admitKnowing(b, callOf([key]))).kind).toBe("admitted");
    await a.close();
    await b.close();
  });

  it("rejects commands of an earlier connection of the instance", async () => {
    const redis = await server.connected();
    const options = { instance: "a", prefix: "sessions:", discoverMs: 0 };
    const before = createLimits({ redis, ...options });
    const key = payer("key:a", { budget: 10 });
    await admitKnowing(before, callOf([key]));
    const known = await redis.hgetall("sessions:generation");
    const after = createLimits({ redis: await server.connected(), ...options });
    await waitForArrivals(1, after);
    const call = callOf([key], { estimate: 5 });
    const reply = await redis.evalsha(
      SCRIPTS.admit.sha,
      0,
      "sessions:",
      "a",
      known["id"] ?? "",
      known["session:a"] ?? "",
      "",
      ...admitBatch([call]).args,
    );
    expect(reply).toEqual([STALE]);
    await before.close();
    await after.close();
  });

  it("admits simultaneous calls with one script, as if they were sequential", async () => {
    const redis = await server.connected();
    const at = 1_000_000;
    const inRedis = createLimits({
      redis,
      instance: "a",
      prefix: "at-once:",
      now: () => at,
      discoverMs: 0,
    });
    const inProcess = createLimits({ instance: "a", now: () => at });
    const team = payer("team:a", {
      budget: 100,
      requestsPerMinute: 30,
      parallel: 25,
    });
    const keys = [5, 12, 40].map((budget, i) =>
      payer(`key:${i}`, { budget, tokensPerMinute: 60 }),
    );
    const lists = keys.map((key) => [key, team]);
    const calls = Array.from({ length: 60 }, (_, i) =>
      callOf(lists[i % 3] ?? [], {
        // Every sixth is a hit of the cache.
        estimate: i % 6 === 0 ? 0 : i % 7 === 0 ? 6 : 1 + (i % 4),
        tokens: i % 6 === 0 ? 0 : i % 5,
        strict: i % 7 === 0,
      }),
    );
    const known = callOf([...keys, team]);
    for (const store of [inRedis, inProcess]) {
      await admitKnowing(store, known);
      await store.settle({ callId: known.callId, tokens: 0, pending: [] });
    }
    const scripts = async () =>
      Number(
        /cmdstat_evalsha:calls=(\d+)/.exec(
          await redis.info("commandstats"),
        )?.[1],
      );
    const before = await scripts();
    const together = await Promise.all(
      calls.map((call) => inRedis.admit(call)),
    );
    // A heartbeat may run in between.
    expect((await scripts()) - before).toBeLessThan(5);
    const inTurn = [];
    for (const call of calls) {
      inTurn.push(await inProcess.admit(call));
    }
    const essence = (admission: (typeof together)[number]) =>
      admission.kind === "admitted" ? admission.lease : admission;
    expect(together.map(essence)).toEqual(inTurn.map(essence));
    expect(new Set(together.map(({ kind }) => kind))).toEqual(
      new Set([
        "admitted",
        "budget_held",
        "estimate_too_large",
        "rate_limited",
      ]),
    );
    // The remaining limits are those after all of them.
    const [first] = together;
    const last = inTurn.findLast((admission) => admission.kind === "admitted");
    expect(first?.kind === "admitted" ? first.rates[1] : null).toEqual(
      last?.kind === "admitted" ? last.rates[1] : undefined,
    );
    await Promise.all(
      calls.map(({ callId }) =>
        inRedis.settle({ callId, tokens: 0, pending: [] }),
      ),
    );
    expect(await redis.hlen("at-once:calls")).toBe(0);
    expect(await redis.zcard("at-once:leases")).toBe(0);
    await inRedis.close();
    await inProcess.close();
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
      async close() {
        await store.close();
        redis.disconnect();
      },
    };
  });
});
