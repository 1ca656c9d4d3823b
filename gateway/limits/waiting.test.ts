import { describe, expect, it } from "vitest";
import { createMemoryLimits } from "./memory-limits.ts";
import { admitKnowing, callOf, payer } from "./testing/bench.ts";
import { admitWaiting } from "./waiting.ts";

const key = payer("key:a", { budget: 10 });
const team = payer("team:b", { budget: 10 });

describe("a call blocked by reservations", () => {
  it("is admitted as soon as one of them settles", async () => {
    const store = createMemoryLimits();
    const holder = callOf([key], { estimate: 10 });
    await admitKnowing(store, holder);
    const waiting = admitWaiting(store, callOf([key], { estimate: 10 }));
    await store.settle({ callId: holder.callId, tokens: 0, pending: [] });
    expect(await waiting).toMatchObject({ kind: "admitted", lease: 10 });
  });

  it("is rejected with the blocking payer when the time is over", async () => {
    const store = createMemoryLimits();
    await admitKnowing(store, callOf([key], { estimate: 10 }));
    expect(
      await admitWaiting(store, callOf([key], { estimate: 10 }), {
        maxWaitMs: 120,
      }),
    ).toEqual({ kind: "budget_held", entity: "key:a", inFlight: 1 });
  });

  it("is rejected when the budget is really used up", async () => {
    const store = createMemoryLimits();
    const holder = callOf([key], { estimate: 10 });
    await admitKnowing(store, holder);
    const waiting = admitWaiting(store, callOf([key], { estimate: 10 }));
    await store.settle({
      callId: holder.callId,
      tokens: 0,
      pending: [{ entity: "key:a", window: "all", pending: 10 }],
    });
    expect((await waiting).kind).toBe("budget_exceeded");
  });

  it("waits for the payer that blocks it now, not for the first one", async () => {
    const store = createMemoryLimits();
    const [one, two] = [
      callOf([key], { estimate: 10 }),
      callOf([team], { estimate: 10 }),
    ];
    await admitKnowing(store, one);
    await admitKnowing(store, two);
    const waiting = admitWaiting(store, callOf([key, team], { estimate: 1 }));
    await store.settle({ callId: one.callId, tokens: 0, pending: [] });
    await store.settle({ callId: two.callId, tokens: 0, pending: [] });
    expect((await waiting).kind).toBe("admitted");
  });

  it("stops waiting when its caller disconnects", async () => {
    const store = createMemoryLimits();
    await admitKnowing(store, callOf([key], { estimate: 10 }));
    const gone = new AbortController();
    const waiting = admitWaiting(store, callOf([key], { estimate: 10 }), {
      maxWaitMs: 60_000,
      signal: gone.signal,
    });
    gone.abort();
    expect((await waiting).kind).toBe("budget_held");
  });
});
