import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hasRedisServer } from "../../test/servers/redis.ts";
import { createLimits } from "./create.ts";
import type { Limits } from "./limits.ts";
import { admitKnowing, callOf, payer } from "./testing/bench.ts";
import { startTestRedis, type TestRedis } from "./testing/redis-server.ts";
import { waitForArrivals, waitForMode } from "./testing/wait-for-limits.ts";

const KEY = payer("key:a", { budget: 100, parallel: 1 });
const COUNTER = { entity: "key:a", window: "all" };
const PREFIX = "hearth:limits:";

/** A Redis that returns with an older state, as a promoted replica or an append-only file of the last second. */
describe.runIf(hasRedisServer())("a Redis that lost the last second", () => {
  let server: TestRedis;
  const open: Limits[] = [];

  beforeEach(async () => {
    server = await startTestRedis();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
    await server.stop();
  });

  async function limits(
    instance: string,
    now: () => number = Date.now,
  ): Promise<Limits> {
    const store = createLimits({
      redis: await server.connected(),
      instance,
      now,
      beatMs: 10,
      discoverMs: 0,
    });
    open.push(store);
    await waitForArrivals(1, store);
    return store;
  }

  /** Returns with the state of the last `save`. */
  async function returnOlder(): Promise<void> {
    await server.kill();
    await server.start();
  }

  async function save(): Promise<void> {
    await (await server.connected()).save();
  }

  it("has no valid totals, also for a gateway that starts with it", async () => {
    const key = payer("key:a", { budget: 100 });
    const before = await limits("a");
    await admitKnowing(before, callOf([key], { callId: "one", estimate: 60 }));
    await save();
    await before.settle({
      callId: "one",
      tokens: 0,
      pending: [{ ...COUNTER, pending: 100 }],
    });
    await before.assign([{ ...COUNTER, total: 100, version: 1, pending: 0 }]);
    await Promise.all(open.splice(0).map((one) => one.close()));
    await returnOlder();
    const after = await limits("b");
    expect(await after.admit(callOf([key], { estimate: 1 }))).toMatchObject({
      kind: "totals_missing",
      counters: [COUNTER],
    });
  });

  it("takes the totals of an older or new ledger, whatever it had before", async () => {
    const before = await limits("a");
    await before.admit(callOf([KEY]));
    await before.assign([{ ...COUNTER, total: 100, version: 9, pending: 0 }]);
    await save();
    await Promise.all(open.splice(0).map((one) => one.close()));
    await returnOlder();
    const after = await limits("b");
    const totals = { "key:a": { total: 60, version: 4 } };
    expect(
      await admitKnowing(after, callOf([KEY], { estimate: 80 }), totals),
    ).toMatchObject({ kind: "admitted", lease: 40 });
  });

  it("has no valid totals, also where it returns to an older generation", async () => {
    const store = await limits("a");
    const redis = await server.connected();
    const saved = await redis.hget(`${PREFIX}generation`, "id");
    await redis.save();
    await redis.del(`${PREFIX}generation`);
    await waitForArrivals(2, store);
    await returnOlder();
    await waitForArrivals(3, store);
    const { id } = await (
      await server.connected()
    ).hgetall(`${PREFIX}generation`);
    expect(id).not.toBe(saved);
  });

  it("keeps neither leases of calls that have ended nor pending spend that is in the ledger", async () => {
    let now = 1_000_000;
    const store = await limits("a", () => now);
    await admitKnowing(store, callOf([KEY], { callId: "one", estimate: 60 }));
    await save();
    await store.settle({
      callId: "one",
      tokens: 0,
      pending: [{ ...COUNTER, pending: 40 }],
    });
    await admitKnowing(store, callOf([KEY], { callId: "two", estimate: 60 }));
    await save();
    await store.settle({
      callId: "two",
      tokens: 0,
      pending: [{ ...COUNTER, pending: 80 }],
    });
    await store.assign([{ ...COUNTER, total: 80, version: 1, pending: 0 }]);
    await server.kill();
    await waitForMode("redis_away", store);
    // The outage may be longer than what is sent again reaches back.
    now += 30_000;
    await server.start();
    await waitForMode("redis", store);
    const redis = await server.connected();
    expect(await redis.hkeys(`${PREFIX}calls`)).toEqual([]);
    const next = callOf([KEY], { estimate: 100 });
    expect(
      await admitKnowing(store, next, { "key:a": { total: 80, version: 1 } }),
    ).toMatchObject({ kind: "admitted", lease: 20 });
  });
});
