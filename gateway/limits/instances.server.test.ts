import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import { hasRedisServer } from "../../test/servers/redis.ts";
import { createLimits } from "./create.ts";
import type { InstanceState } from "./instances.ts";
import type { Limits } from "./limits.ts";
import { admitKnowing, callOf, payer } from "./testing/bench.ts";
import { startTestRedis, type TestRedis } from "./testing/redis-server.ts";
import { waitForArrivals } from "./testing/wait-for-limits.ts";
import { waitFor } from "../../test/wait-for.ts";

describe.runIf(hasRedisServer())("the list of instances", () => {
  let server: TestRedis;
  let clock: number;
  const open: Limits[] = [];

  beforeEach(async () => {
    server = await startTestRedis();
    clock = Date.now();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
    await server.stop();
  });

  /** An instance with calls in its journal, and how to kill it. */
  async function start(instance: string, undrained = { calls: 0 }) {
    const redis = await server.connected();
    const limits = createLimits({
      redis,
      instance,
      undrained: () => undrained.calls,
      now: () => clock,
      beatMs: 10,
      discoverMs: 0,
    });
    open.push(limits);
    await waitForArrivals(1, limits);
    return { limits, kill: () => redis.disconnect() };
  }

  async function listed(
    by: Limits,
    instance: string,
  ): Promise<InstanceState | undefined> {
    return (await by.instances()).find((one) => one.instance === instance);
  }

  it("does not contain one that stopped with a drained journal", async () => {
    const { limits } = await start("a");
    const b = await start("b");
    expect(await listed(limits, "b")).toMatchObject({ running: true });
    await b.limits.close();
    expect(await listed(limits, "b")).toBeUndefined();
  });

  it("contains one that stopped with an undrained journal, until that is drained", async () => {
    const { limits } = await start("a");
    const undrained = { calls: 3 };
    const b = await start("b", undrained);
    await b.limits.close();
    expect(await listed(limits, "b")).toMatchObject({
      running: false,
      undrained: 3,
      silentMs: 10_000,
    });
    const takenOver = await start("b", undrained);
    undrained.calls = 0;
    await waitFor(
      "b to be drained",
      async () => (await listed(limits, "b"))?.undrained === 0,
    );
    await takenOver.limits.close();
    expect(await listed(limits, "b")).toBeUndefined();
  });

  it("contains one that was killed for an hour if its journal was drained, else until it is forgotten", async () => {
    const { limits } = await start("a");
    const [idle, busy] = await Promise.all([
      start("idle"),
      start("busy", { calls: 2 }),
    ]);
    await waitFor(
      "two calls of busy",
      async () => (await listed(limits, "busy"))?.undrained === 2,
    );
    idle.kill();
    busy.kill();
    clock += HOUR_MS / 2;
    expect(await listed(limits, "idle")).toMatchObject({ running: false });
    clock += HOUR_MS;
    await waitFor(
      "idle to be forgotten",
      async () => (await listed(limits, "idle")) === undefined,
    );
    clock += 48 * HOUR_MS;
    expect(await listed(limits, "busy")).toMatchObject({
      running: false,
      undrained: 2,
      silentMs: 49.5 * HOUR_MS,
    });
    await limits.forgetInstance("busy");
    expect(await listed(limits, "busy")).toBeUndefined();
  });

  it("contains one that was killed with pending spend", async () => {
    const { limits } = await start("a");
    const b = await start("b");
    const key = payer("key:a", { budget: 100 });
    await admitKnowing(b.limits, callOf([key]));
    await b.limits.settle({
      callId: "x",
      tokens: 0,
      pending: [{ entity: "key:a", window: "all", pending: 60 }],
    });
    b.kill();
    clock += 2 * HOUR_MS;
    await waitFor(
      "the beats of b to be forgotten",
      async () => (await listed(limits, "b"))?.silentMs === null,
    );
    expect(await listed(limits, "b")).toMatchObject({
      running: false,
      budgets: 1,
      pending: 60,
    });
  });
});
