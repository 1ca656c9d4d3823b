import { hasRedisServer } from "../../test/servers/redis.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AdmitCall } from "./limits.ts";
import { createLimits } from "./create.ts";
import { type Limits } from "./limits.ts";
import {
  heldInRedis,
  startFleet,
  type Fleet,
  type FleetOptions,
} from "./testing/fleet.ts";
import { startTestRedis, type TestRedis } from "./testing/redis-server.ts";
import { admitKnowing, callOf, payer } from "./testing/bench.ts";
import {
  waitForArrivals,
  waitForInstances,
  waitForMode,
  waitForShares,
} from "./testing/wait-for-limits.ts";
import { waitFor } from "../../test/wait-for.ts";

const COST = 1_000;
/** The call that crosses a budget does so with at least a nano left. */
const ONE_CALL = COST - 1;
/** The number of outages varies: a busy machine can split one in two. */
const ONE_CALL_EACH = 3 * ONE_CALL;
/** In calls; some budgets are used up before an outage, some during it, some after it. */
const BUDGETS = {
  "key:poor": 100,
  "key:b": 200,
  "key:c": 300,
  "key:d": 400,
  "key:e": 600,
  "key:f": 800,
  "key:rich": 1e6,
  "team:t": 1e6,
};

describe.runIf(hasRedisServer())("with a redis-server", () => {
  let server: TestRedis;
  const open: { close(): Promise<void> }[] = [];

  beforeEach(async () => {
    server = await startTestRedis();
  });
  afterEach(async () => {
    server.thaw();
    await Promise.all(open.splice(0).map((one) => one.close()));
    await server.stop();
  });

  async function limits(
    instance: string,
    options: Partial<Parameters<typeof createLimits>[0]> = {},
  ): Promise<Limits> {
    const store = createLimits({
      redis: await server.connected(),
      instance,
      beatMs: 10,
      discoverMs: 0,
      deadlineMs: 300,
      ...options,
    });
    open.push(store);
    await waitForArrivals(1, store);
    return store;
  }

  async function fleet(options: Partial<FleetOptions> = {}): Promise<Fleet> {
    const started = await startFleet(server, {
      instances: 3,
      cost: COST,
      callers: 8,
      budgets: BUDGETS,
      ...options,
    });
    open.push(started);
    return started;
  }

  /** No payer over budget by more than `maxOver`, no call rejected with money left, nothing left in Redis. */
  async function expectSound(under: Fleet, maxOver: number): Promise<void> {
    await under.stop();
    const redis = await server.connected();
    await expect.poll(() => heldInRedis(redis)).toEqual([]);
    expect(under.seen.phantoms).toBe(0);
    for (const [entity, budget] of under.budgets) {
      expect(under.spent(entity), entity).toBeLessThanOrEqual(budget + maxOver);
    }
    // The key with the small budget was used up.
    expect(under.spent("key:poor")).toBeGreaterThanOrEqual(100 * COST);
  }

  describe("three instances under load", () => {
    it("keep budgets, with commits visible to others before they are reported", async () => {
      const under = await fleet();
      under.run();
      await waitFor(
        "300 calls of key:c",
        () => under.spent("key:c") >= 300 * COST,
      );
      await sleep(300);
      await expectSound(under, ONE_CALL);
    });

    it("set their parts again when Redis is flushed", async () => {
      const under = await fleet();
      const redis = await server.connected();
      under.run();
      for (let i = 0; i < 6; i++) {
        await sleep(150 + Math.random() * 150);
        await redis.flushall();
      }
      await waitFor(
        "100 calls of key:poor",
        () => under.spent("key:poor") >= 100 * COST,
      );
      await expectSound(under, ONE_CALL);
      for (const store of under.stores) {
        expect(store.counts().arrivals).toBeGreaterThanOrEqual(7);
        expect(store.counts().outages).toBe(0);
      }
    });

    it.each([
      { outages: 1, lasting: 1_500 },
      { outages: 3, lasting: 500 },
    ])(
      "continue in process when Redis is killed, and return when it is back (outages: $outages)",
      async ({ outages, lasting }) => {
        const under = await fleet();
        under.run();
        await sleep(250);
        for (let i = 0; i < outages; i++) {
          await server.kill();
          await waitForMode("redis_away", ...under.stores);
          await sleep(lasting);
          await server.start();
          await waitForMode("redis", ...under.stores);
        }
        await waitFor(
          "100 calls of key:poor",
          () => under.spent("key:poor") >= 100 * COST,
        );
        await sleep(300);
        await expectSound(under, ONE_CALL_EACH);
        for (const store of under.stores) {
          expect(store.counts().servedAway).toBeGreaterThan(0);
        }
      },
    );

    it("continue in process when Redis freezes; commands it reads late have no effect", async () => {
      const under = await fleet({ deadlineMs: 500 });
      under.run();
      await sleep(250);
      server.freeze();
      await waitForMode("redis_away", ...under.stores);
      await sleep(2_000);
      server.thaw();
      await waitForMode("redis", ...under.stores);
      await waitFor(
        "100 calls of key:poor",
        () => under.spent("key:poor") >= 100 * COST,
      );
      await sleep(300);
      await expectSound(under, ONE_CALL_EACH);
    });

    it("wait for each other also when Redis is flushed again before all have returned", async () => {
      const key = payer("key:a", { budget: 100 });
      const quick = await limits("a", { rebuildMs: 10_000 });
      // It notices a flush when it sends something.
      const quiet = await limits("b", { beatMs: 300, rebuildMs: 10_000 });
      await waitForInstances(2, quick);
      await waitForInstances(2, quiet);
      const before = callOf([key], { estimate: 90 });
      await admitKnowing(quiet, before);
      await quiet.settle({
        callId: before.callId,
        tokens: 0,
        pending: [{ entity: key.entity, window: key.window, pending: 90 }],
      });
      const redis = await server.connected();
      for (let flushes = 1; flushes <= 2; flushes++) {
        const { arrivals } = quick.counts();
        await redis.flushall();
        await waitForArrivals(arrivals + 1, quick);
        // After a heartbeat it has heard who is alive.
        await sleep(30);
      }
      const next = callOf([key], { estimate: 20 });
      expect(await admitKnowing(quick, next)).toMatchObject({ lease: 10 });
    });

    it("survive flushed scripts", async () => {
      const under = await fleet();
      const redis = await server.connected();
      under.run();
      for (let i = 0; i < 4; i++) {
        await sleep(150);
        await redis.script("FLUSH");
      }
      await waitFor(
        "100 calls of key:poor",
        () => under.spent("key:poor") >= 100 * COST,
      );
      await expectSound(under, ONE_CALL);
      for (const store of under.stores) {
        expect(store.counts().outages).toBe(0);
      }
    });
  });

  describe("while Redis is away", () => {
    const key = payer("key:a", {
      budget: 90,
      requestsPerMinute: 10,
      parallel: 4,
    });

    async function kill(...stores: readonly Limits[]): Promise<void> {
      await server.kill();
      await waitForMode("redis_away", ...stores);
    }

    /** The answer once shares of small budgets are known, about a second after Redis became unavailable. */
    const admitClear = (store: Limits, call: AdmitCall) =>
      waitForShares(() => admitKnowing(store, call));

    it("nearly used up budgets wait until the ledger has the calls that others had in flight", async () => {
      const store = await limits("a", { minInstances: 3 });
      await kill(store);
      const few = callOf([payer("key:a", { budget: 90 })], { estimate: 20 });
      const many = callOf([payer("key:b", { budget: 90 })], { estimate: 1 });
      expect((await admitKnowing(store, many)).kind).toBe("admitted");
      expect((await admitKnowing(store, few)).kind).toBe("budget_held");
      const admission = await waitForShares(() => store.admit(few));
      expect(admission.kind).toBe("totals_missing");
      const read = { "key:a": { total: 60, version: 1 } };
      expect(await admitKnowing(store, few, read)).toMatchObject({ lease: 10 });
    });

    it("an instance keeps to its share of budgets, rates and slots", async () => {
      const store = await limits("a", { minInstances: 3 });
      await kill(store);
      const calls = Array.from({ length: 2 }, () =>
        callOf([key], { estimate: 20 }),
      );
      expect(await admitClear(store, calls[0] ?? callOf([]))).toMatchObject({
        kind: "admitted",
        lease: 20,
        rates: [{ requests: { limit: 3, remaining: 2 } }],
      });
      // floor(4 / 3) slots
      expect(await store.admit(callOf([key], { estimate: 20 }))).toMatchObject({
        kind: "rate_limited",
        limit: "parallel",
        allowed: 1,
      });
      const free = payer("key:a", { budget: 90 });
      expect(await store.admit(callOf([free], { estimate: 20 }))).toMatchObject(
        { lease: 10 },
      );
      expect(await store.admit(callOf([free], { estimate: 20 }))).toEqual({
        kind: "budget_held",
        entity: "key:a",
        inFlight: 2,
      });
    });

    it("the share stays when spend moves into the ledger, and grows with a raised budget", async () => {
      const store = await limits("a", { minInstances: 3 });
      await kill(store);
      const free = payer("key:a", { budget: 90 });
      const call = callOf([free], { estimate: 40 });
      expect(await admitClear(store, call)).toMatchObject({ lease: 30 });
      await store.settle({
        callId: call.callId,
        tokens: 0,
        pending: [{ entity: "key:a", window: "all", pending: 30 }],
      });
      await store.assign([
        { entity: "key:a", window: "all", total: 30, version: 1, pending: 0 },
      ]);
      expect(await store.admit(callOf([free], { estimate: 1 }))).toEqual({
        kind: "budget_held",
        entity: "key:a",
        inFlight: 0,
      });
      expect(
        await store.admit(callOf([{ ...free, budget: 120 }], { estimate: 20 })),
      ).toMatchObject({ lease: 10 });
      await store.assign([
        { entity: "key:a", window: "all", total: 130, version: 2, pending: 0 },
      ]);
      expect(
        await store.admit(callOf([{ ...free, budget: 120 }])),
      ).toMatchObject({ kind: "budget_exceeded", spend: 130 });
    });

    it("leases of others last reported by Redis are excluded from the share", async () => {
      const [a, b] = await Promise.all([limits("a"), limits("b")]);
      const free = payer("key:a", { budget: 90 });
      await admitKnowing(b, callOf([free], { estimate: 70 }));
      const mine = callOf([free], { estimate: 10 });
      await admitKnowing(a, mine);
      await sleep(50);
      await kill(a, b);
      // 10 of 90 are free: 5 for each of the two.
      expect(
        await admitClear(a, callOf([free], { estimate: 70 })),
      ).toMatchObject({ lease: 5 });
    });

    it("calls in flight keep their leases, and restore them in Redis when it is back", async () => {
      const store = await limits("a");
      const before = callOf([key], { estimate: 50 });
      await admitKnowing(store, before);
      await kill(store);
      const during = callOf([key], { estimate: 10 });
      expect(await admitKnowing(store, during)).toMatchObject({ lease: 10 });
      await store.settle({
        callId: before.callId,
        tokens: 0,
        pending: [{ entity: "key:a", window: "all", pending: 45 }],
      });
      await server.start();
      await waitForMode("redis", store);
      expect(
        await admitKnowing(
          store,
          callOf([payer("key:a", { budget: 90 })], { estimate: 90 }),
          { "key:a": { pending: 45 } },
        ),
      ).toMatchObject({
        kind: "admitted",
        lease: 35,
      });
      expect(store.counts()).toMatchObject({ outages: 1, arrivals: 2 });
    });

    it("calls are rejected with fail_closed", async () => {
      const store = await limits("a", { failClosed: true });
      await kill(store);
      expect(await store.admit(callOf([key]))).toEqual({ kind: "unavailable" });
      await server.start();
      await waitForMode("redis", store);
      expect((await admitKnowing(store, callOf([key]))).kind).toBe("admitted");
    });

    it("an instance started during an outage serves, and joins later", async () => {
      await server.kill();
      const store = createLimits({
        redis: server.connect(),
        instance: "a",
        beatMs: 10,
        discoverMs: 0,
        deadlineMs: 100,
      });
      open.push(store);
      const call = callOf([key], { estimate: 80 });
      expect(await admitKnowing(store, call)).toMatchObject({
        kind: "admitted",
        lease: 80,
      });
      await server.start();
      await waitForMode("redis", store);
      expect(
        await admitKnowing(store, callOf([key], { estimate: 80 })),
      ).toMatchObject({ lease: 10 });
    });
  });

  it("treats a Redis without memory as unavailable", async () => {
    const store = await limits("a");
    const redis = await server.connected();
    await redis.config("SET", "maxmemory", "1");
    expect(
      (
        await admitKnowing(
          store,
          callOf([payer("key:a", { budget: 5 })], { estimate: 1 }),
        )
      ).kind,
    ).toBe("admitted");
    expect(store.mode()).toBe("redis_away");
    await redis.config("SET", "maxmemory", "0");
    await waitForMode("redis", store);
  });

  it("counts a Redis that stays without memory as one outage", async () => {
    const reasons: string[] = [];
    const onAway = (reason: string) => reasons.push(reason);
    const store = await limits("a", { onAway });
    const redis = await server.connected();
    const scripts = async (): Promise<number> => {
      const stats = await redis.info("commandstats");
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
    };
    await redis.config("SET", "maxmemory", "1");
    await waitForMode("redis_away", store);
    const before = await scripts();
    await waitFor(
      "several attempts to join",
      async () => (await scripts()) > before + 3,
    );
    expect(reasons).toHaveLength(1);
    expect(store.counts()).toMatchObject({ outages: 1 });
    await redis.config("SET", "maxmemory", "0");
    await waitForMode("redis", store);
  });

  it("keeps the pending spend of a lost instance until it is forgotten", async () => {
    const [a, b] = await Promise.all([limits("a"), limits("b")]);
    const key = payer("key:a", { budget: 100 });
    await admitKnowing(a, callOf([key]));
    await b.settle({
      callId: "x",
      tokens: 0,
      pending: [{ entity: "key:a", window: "all", pending: 100 }],
    });
    await b.close();
    expect((await a.admit(callOf([key]))).kind).toBe("budget_exceeded");
    await a.forgetInstance("b");
    expect(await a.admit(callOf([key], { estimate: 200 }))).toMatchObject({
      lease: 100,
    });
    await expect(a.forgetInstance("a")).rejects.toThrow("is this instance");
  });

  it("restores its pending spend after a restart under the same name", async () => {
    const first = await limits("a");
    const key = payer("key:a", { budget: 100 });
    await admitKnowing(first, callOf([key]));
    await first.settle({
      callId: "x",
      tokens: 0,
      pending: [{ entity: "key:a", window: "all", pending: 60 }],
    });
    await first.close();
    const second = await limits("a");
    expect(
      await admitKnowing(second, callOf([key], { estimate: 100 })),
    ).toMatchObject({ lease: 40 });
    await second.assign([
      { entity: "key:a", window: "all", total: 60, version: 1, pending: 0 },
    ]);
    expect(await second.admit(callOf([key], { estimate: 100 }))).toMatchObject({
      kind: "budget_held",
    });
  });

  it("creates only its own keys, without a time to live", async () => {
    const store = await limits("a", { prefix: "mine:" });
    await admitKnowing(
      store,
      callOf([payer("key:a", { budget: 5, requestsPerMinute: 5 })], {
        estimate: 1,
      }),
    );
    const redis = await server.connected();
    const keys = await redis.keys("*");
    expect(keys.filter((name) => !name.startsWith("mine:"))).toEqual([]);
    expect(await Promise.all(keys.map((name) => redis.ttl(name)))).toEqual(
      keys.map(() => -1),
    );
  });
});
