import { afterEach, describe, expect, it } from "vitest";
import { hasRedisServer } from "../../test/servers/redis.ts";
import { createLimits } from "./create.ts";
import type { Limits } from "./limits.ts";
import { createMemoryLimits } from "./memory-limits.ts";
import { admitKnowing, callOf, payer } from "./testing/bench.ts";
import { startTestRedis, type TestRedis } from "./testing/redis-server.ts";
import { waitForArrivals, waitForMode } from "./testing/wait-for-limits.ts";
import { waitFor } from "../../test/wait-for.ts";

const KEY = payer("key:a", { budget: 100 });
const COUNTER = { entity: "key:a", window: "all" };

/** A total of 100 was lost; the ledger has 40 now, in a newer version. */
async function spendAndForget(from: Limits): Promise<void> {
  await from.assign([{ ...COUNTER, total: 100, version: 5, pending: 0 }]);
  const over = callOf([KEY], { estimate: 1 });
  expect(await from.admit(over)).toMatchObject({ kind: "budget_exceeded" });
  await from.forgetTotals();
}

async function expectReadAgain(by: Limits): Promise<void> {
  const call = callOf([KEY], { callId: "next", estimate: 80 });
  expect(await by.admit(call)).toMatchObject({
    kind: "totals_missing",
    counters: [COUNTER],
  });
  const totals = { "key:a": { total: 40, version: 9 } };
  expect(await admitKnowing(by, call, totals)).toMatchObject({
    kind: "admitted",
    lease: 60,
  });
}

it("a gateway alone reads totals again that its ledger has lost", async () => {
  const limits = createMemoryLimits();
  await admitKnowing(limits, callOf([KEY]));
  await spendAndForget(limits);
  await expectReadAgain(limits);
});

describe.runIf(hasRedisServer())("with a common Redis", () => {
  let server: TestRedis;
  const open: Limits[] = [];

  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
    await server.stop();
  });

  async function start(...instances: string[]): Promise<readonly Limits[]> {
    server = await startTestRedis();
    for (const instance of instances) {
      const store = createLimits({
        redis: await server.connected(),
        instance,
        beatMs: 10,
        discoverMs: 0,
      });
      open.push(store);
      await waitForArrivals(1, store);
    }
    return open;
  }

  it("every instance reads totals again, and what is pending and leased stays", async () => {
    const [one, other] = await start("a", "b");
    if (one === undefined || other === undefined) {
      throw new Error("two instances expected");
    }
    await admitKnowing(other, callOf([KEY], { callId: "held", estimate: 10 }));
    await spendAndForget(one);
    const call = callOf([KEY], { callId: "next", estimate: 80 });
    await waitFor(
      "totals to be missing",
      async () => (await other.admit(call)).kind === "totals_missing",
    );
    expect(
      await admitKnowing(other, call, {
        "key:a": { total: 40, version: 9 },
      }),
    ).toMatchObject({ kind: "admitted", lease: 50 });
    const known = callOf([KEY], { estimate: 1 });
    expect(await one.admit(known)).toMatchObject({ kind: "budget_held" });
  });

  it("an instance without Redis reads its own again", async () => {
    const [one] = await start("a");
    if (one === undefined) {
      throw new Error("an instance expected");
    }
    await admitKnowing(one, callOf([KEY]));
    await server.kill();
    await waitForMode("redis_away", one);
    await admitKnowing(one, callOf([KEY]));
    await spendAndForget(one);
    await expectReadAgain(one);
  });
});
