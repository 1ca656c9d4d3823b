import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hasRedisServer } from "../../test/servers/redis.ts";
import type { Admission, AdmitCall } from "./limits.ts";
import { createLimits } from "./create.ts";
import { type Limits } from "./limits.ts";
import { admitKnowing, callOf, payer } from "./testing/bench.ts";
import { startTestRedis, type TestRedis } from "./testing/redis-server.ts";
import {
  waitForArrivals,
  waitForMode,
  waitForShares,
} from "./testing/wait-for-limits.ts";

const HEARTBEATS_MS = 100;

describe.runIf(hasRedisServer())("state shared between instances", () => {
  let server: TestRedis;
  const open: Limits[] = [];
  const key = payer("key:a", { budget: 90 });

  beforeEach(async () => {
    server = await startTestRedis();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
    await server.stop();
  });

  async function limits(instance: string): Promise<Limits> {
    const store = createLimits({
      redis: await server.connected(),
      instance,
      beatMs: 10,
      discoverMs: 0,
      deadlineMs: 300,
      minInstances: 2,
    });
    open.push(store);
    await waitForArrivals(1, store);
    return store;
  }

  async function kill(): Promise<void> {
    await server.kill();
    await waitForMode("redis_away", ...open);
  }

  /** As a gateway admits while the ledger cannot be read. */
  async function admitWithoutLedger(
    store: Limits,
    call: AdmitCall,
  ): Promise<Admission> {
    for (let loads = 0; ; loads++) {
      const admission = await store.admit(call);
      if (admission.kind !== "totals_missing" || loads === 3) {
        return admission;
      }
      const known = admission.counters.map((counter) => ({
        ...counter,
        total: 0,
        version: 0,
        ...store.lastKnown(counter.entity, counter.window),
        pending: 0,
      }));
      await store.assign(known, "last known");
    }
  }

  it("budget reserved by another instance is not spent again while Redis is away", async () => {
    const [a, b] = [await limits("a"), await limits("b")];
    a.remember([
      { entity: "key:a", window: "all", total: 0, version: 0, pending: 0 },
    ]);
    for (let calls = 0; calls < 9; calls++) {
      expect(
        (await admitKnowing(b, callOf([key], { estimate: 10 }))).kind,
      ).toBe("admitted");
    }
    await sleep(HEARTBEATS_MS);
    await kill();
    const answers = new Set<string>();
    for (let tries = 0; tries < 40; tries++) {
      answers.add((await admitKnowing(a, callOf([key], { estimate: 1 }))).kind);
      await sleep(50);
    }
    expect([...answers]).toEqual(["budget_held"]);
  });

  it("without the ledger, half of a small share is withheld and the rest is admitted", async () => {
    const store = await limits("a");
    store.remember([
      { entity: "key:a", window: "all", total: 10, version: 1, pending: 0 },
    ]);
    await kill();
    const held = await admitWithoutLedger(
      store,
      callOf([key], { estimate: 70 }),
    );
    expect(held.kind).toBe("budget_held");
    const call = callOf([key], { estimate: 70 });
    const admission = await waitForShares(() =>
      admitWithoutLedger(store, call),
    );
    // 80 are left, 40 for each of the two.
    expect(admission).toMatchObject({ kind: "admitted", lease: 20 });
    expect(
      await admitWithoutLedger(store, callOf([key], { estimate: 1 })),
    ).toMatchObject({ kind: "budget_held" });
    // The ledger is back with the 10 that the call cost: the share is known, and no part of it is withheld any longer.
    const counter = { entity: "key:a", window: "all" };
    await store.settle({
      callId: call.callId,
      tokens: 0,
      pending: [{ ...counter, pending: 10 }],
    });
    await store.assign([{ ...counter, total: 20, version: 2, pending: 0 }]);
    expect(await store.admit(callOf([key], { estimate: 70 }))).toMatchObject({
      kind: "admitted",
      lease: 30,
    });
  });

  it("a flushed Redis gets the newest total reported by any instance, not that of the calling instance", async () => {
    const [a, b] = [await limits("a"), await limits("b")];
    await admitKnowing(a, callOf([key], { estimate: 1 }), {
      "key:a": { total: 10, version: 1 },
    });
    await b.assign([
      { entity: "key:a", window: "all", total: 60, version: 2, pending: 0 },
    ]);
    await sleep(HEARTBEATS_MS);
    await b.close();
    await (await server.connected()).flushall();
    expect(a.lastKnown("key:a", "all")).toMatchObject({ version: 1 });
    await waitForArrivals(2, a);
    expect(
      await admitWithoutLedger(a, callOf([key], { estimate: 90 })),
    ).toMatchObject({ kind: "admitted", lease: 29 });
  });

  it("a total that was assigned just before a flush is not replaced by an older one", async () => {
    const [a, b] = [await limits("a"), await limits("b")];
    await admitKnowing(a, callOf([key]), {
      "key:a": { total: 10, version: 1 },
    });
    await kill();
    await b.assign([
      { entity: "key:a", window: "all", total: 60, version: 2, pending: 0 },
    ]);
    await server.start();
    await waitForMode("redis", ...open);
    expect(
      await admitWithoutLedger(a, callOf([key], { estimate: 90 })),
    ).toMatchObject({ kind: "admitted", lease: 30 });
  });
});
