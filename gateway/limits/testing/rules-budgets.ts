import { describe, expect, it } from "vitest";
import { admitKnowing, callOf, payer, type Bench } from "./bench.ts";

/** Budgets, strict budgets, leases that are raised. */
export function describeBudgets(bench: Bench): void {
  describe("budgets", () => {
    it("requests every unknown total once", async () => {
      const call = callOf([
        payer("key:a", { budget: 10, window: "2026-01" }),
        payer("team:b", { budget: 10 }),
        payer("user:c", { requestsPerMinute: 5 }),
      ]);
      const answer = await bench.store.admit(call);
      expect(answer).toEqual({
        kind: "totals_missing",
        counters: [
          { entity: "key:a", window: "2026-01" },
          { entity: "team:b", window: "all" },
        ],
      });
      expect((await admitKnowing(bench.store, call)).kind).toBe("admitted");
      expect((await bench.admit(call.entities)).kind).toBe("admitted");
    });

    it("leases the estimate, or what remains of the tightest budget", async () => {
      const key = payer("key:a", { budget: 100 });
      const team = payer("team:b", { budget: 40 });
      expect(await bench.admit([key], { estimate: 30 })).toMatchObject({
        kind: "admitted",
        lease: 30,
      });
      expect(await bench.admit([key, team], { estimate: 50 })).toMatchObject({
        kind: "admitted",
        lease: 40,
      });
    });

    it("rejects a call when spend has reached the budget, and names the first such payer with its spend", async () => {
      const refusal = await bench.admit(
        [
          payer("key:a", { budget: 100 }),
          payer("team:b", { budget: 70 }),
          payer("user:c", { budget: 1 }),
        ],
        { estimate: 5 },
        {
          "key:a": { total: 99, version: 1 },
          "team:b": { total: 70, version: 3 },
          "user:c": { total: 1 },
        },
      );
      expect(refusal).toEqual({
        kind: "budget_exceeded",
        entity: "team:b",
        spend: 70,
        budget: 70,
      });
    });

    it("rejects the first call on a budget of 0, and admits one on the smallest budget", async () => {
      expect((await bench.admit([payer("key:a", { budget: 0 })])).kind).toBe(
        "budget_exceeded",
      );
      expect(
        await bench.admit([payer("key:b", { budget: 1 })], { estimate: 9 }),
      ).toMatchObject({
        kind: "admitted",
        lease: 1,
      });
    });

    it("lets a call wait, not fail, when only calls in flight block it", async () => {
      const key = payer("key:a", { budget: 100 });
      const first = callOf([key], { estimate: 60 });
      await admitKnowing(bench.store, first);
      await bench.admit([key], { estimate: 60 });
      expect(await bench.admit([key], { estimate: 1 })).toEqual({
        kind: "budget_held",
        entity: "key:a",
        inFlight: 2,
      });
      await bench.settle(first.callId, 10);
      expect(await bench.admit([key], { estimate: 50 })).toMatchObject({
        lease: 30,
      });
    });

    it("holds the whole estimate of a call whose lease was clipped, so that only one call can cross", async () => {
      const key = payer("key:a", { budget: 100 });
      const first = callOf([key], { estimate: 50 });
      await admitKnowing(bench.store, first);
      expect(await bench.admit([key], { estimate: 100 })).toMatchObject({
        lease: 50,
      });
      await bench.settle(first.callId, 10);
      // 90 are not spent, but the second call may need 100.
      expect((await bench.admit([key], { estimate: 100 })).kind).toBe(
        "budget_held",
      );
    });

    it("holds the whole estimate in a team whose members' budgets are small", async () => {
      const team = payer("team:b", { budget: 100 });
      const member = (name: string) => payer(`member:b/${name}`, { budget: 1 });
      expect(
        (await bench.admit([member("x"), team], { estimate: 60 })).kind,
      ).toBe("admitted");
      expect(
        (await bench.admit([member("y"), team], { estimate: 60 })).kind,
      ).toBe("admitted");
      expect(
        await bench.admit([member("z"), team], { estimate: 60 }),
      ).toMatchObject({
        kind: "budget_held",
        entity: "team:b",
      });
    });

    it("admits free calls while others have reserved the rest", async () => {
      const key = payer("key:a", { budget: 10 });
      await bench.admit([key], { estimate: 10 });
      expect(await bench.admit([key])).toMatchObject({
        kind: "admitted",
        lease: 0,
      });
      expect((await bench.admit([key], { estimate: 1 })).kind).toBe(
        "budget_held",
      );
    });

    it("counts settled spend at once, and releases the lease", async () => {
      const key = payer("key:a", { budget: 100 });
      const call = callOf([key], { estimate: 100 });
      await admitKnowing(bench.store, call);
      await bench.settle(call.callId, 99);
      expect(await bench.admit([key], { estimate: 50 })).toMatchObject({
        lease: 1,
      });
      await bench.settle("other", 100);
      expect(await bench.admit([key], { estimate: 50 })).toMatchObject({
        kind: "budget_exceeded",
        spend: 100,
      });
    });

    it("settles a call once, however often it is reported", async () => {
      const key = payer("key:a", { budget: 100, parallel: 2 });
      const [first, second] = [
        callOf([key], { estimate: 40 }),
        callOf([key], { estimate: 40 }),
      ];
      await admitKnowing(bench.store, first);
      await admitKnowing(bench.store, second);
      await bench.settle(first.callId, 10);
      await bench.settle(first.callId, 10);
      expect((await bench.admit([key], { estimate: 1 })).kind).toBe("admitted");
      expect(await bench.admit([key], { estimate: 1 })).toMatchObject({
        kind: "rate_limited",
        limit: "parallel",
      });
    });

    it("reserves nothing from any payer when one of them rejects the call", async () => {
      const key = payer("key:a", {
        budget: 100,
        requestsPerMinute: 2,
        tokensPerMinute: 100,
        parallel: 1,
      });
      const team = payer("team:b", { budget: 50 });
      await bench.admit([team], { estimate: 50 });
      for (let i = 0; i < 5; i++) {
        expect(
          (await bench.admit([key, team], { estimate: 10, tokens: 60 })).kind,
        ).toBe("budget_held");
      }
      expect(
        await bench.admit([key], { estimate: 100, tokens: 60 }),
      ).toMatchObject({
        kind: "admitted",
        lease: 100,
        rates: [{ requests: { remaining: 1 }, tokens: { remaining: 40 } }],
      });
    });

    it("counts a lease against every window of the payer, as the call ends in a later one", async () => {
      const key = (window: string) => payer("key:a", { budget: 100, window });
      const call = callOf([key("monday")], { estimate: 70 });
      await admitKnowing(bench.store, call);
      expect(
        await bench.admit([key("tuesday")], { estimate: 100 }),
      ).toMatchObject({
        lease: 30,
      });
      await bench.store.settle({
        callId: call.callId,
        tokens: 0,
        pending: [{ entity: "key:a", window: "tuesday", pending: 70 }],
      });
      expect(
        await bench.admit([key("wednesday")], { estimate: 100 }),
      ).toMatchObject({
        kind: "budget_held",
      });
      expect(
        await bench.admit([key("tuesday")], { estimate: 1 }),
      ).toMatchObject({
        kind: "budget_held",
      });
    });

    it("keeps sums beyond 2^50 nanos exact", async () => {
      const budget = 9_007_199_254_740_000;
      const key = payer("key:a", { budget });
      const total = budget - 3;
      const call = callOf([key], { estimate: 1 });
      expect(
        await admitKnowing(bench.store, call, { "key:a": { total } }),
      ).toMatchObject({ lease: 1 });
      expect(await bench.admit([key], { estimate: 10 })).toMatchObject({
        lease: 2,
      });
      await bench.settle(call.callId, 3);
      expect(await bench.admit([key])).toEqual({
        kind: "budget_exceeded",
        entity: "key:a",
        spend: budget,
        budget,
      });
    });

    it("follows a raised budget at once", async () => {
      await bench.admit(
        [payer("key:a", { budget: 10 })],
        { estimate: 10 },
        { "key:a": { total: 5 } },
      );
      expect(
        (await bench.admit([payer("key:a", { budget: 10 })], { estimate: 1 }))
          .kind,
      ).toBe("budget_held");
      expect(
        await bench.admit([payer("key:a", { budget: 20 })], { estimate: 100 }),
      ).toMatchObject({ lease: 5 });
    });
  });

  describe("strict", () => {
    const strict = { strict: true };

    it("leases the whole estimate or nothing", async () => {
      const key = payer("key:a", { budget: 100 });
      expect(
        await bench.admit([key], { ...strict, estimate: 60 }),
      ).toMatchObject({
        lease: 60,
      });
      expect(await bench.admit([key], { ...strict, estimate: 60 })).toEqual({
        kind: "budget_held",
        entity: "key:a",
        inFlight: 1,
      });
      expect(
        await bench.admit([key], { ...strict, estimate: 40 }),
      ).toMatchObject({
        lease: 40,
      });
    });

    it("reports when the worst case can never fit", async () => {
      const key = payer("key:a", { budget: 100 });
      expect(
        await bench.admit(
          [key],
          { ...strict, estimate: 91 },
          { "key:a": { total: 10 } },
        ),
      ).toEqual({
        kind: "estimate_too_large",
        entity: "key:a",
        estimate: 91,
        remaining: 90,
      });
    });
  });

  describe("a more expensive fallback", () => {
    it("raises the lease of the call, and takes no second slot, request or tokens", async () => {
      const key = payer("key:a", {
        budget: 100,
        requestsPerMinute: 9,
        tokensPerMinute: 90,
        parallel: 1,
      });
      const call = callOf([key], { estimate: 30, tokens: 5 });
      await admitKnowing(bench.store, call);
      expect(await bench.store.admit({ ...call, estimate: 80 })).toMatchObject({
        kind: "admitted",
        lease: 80,
        rates: [{ requests: { remaining: 8 }, tokens: { remaining: 85 } }],
      });
      const free = payer("key:a", { budget: 100 });
      expect(await bench.admit([free], { estimate: 50 })).toMatchObject({
        lease: 20,
      });
      await bench.settle(call.callId, 0);
      expect(await bench.admit([free], { estimate: 80 })).toMatchObject({
        lease: 50,
      });
    });

    it("is rejected when others have reserved the rest, and the lease stays unchanged", async () => {
      const key = payer("key:a", { budget: 100 });
      const call = callOf([key], { estimate: 30 });
      await admitKnowing(bench.store, call);
      const other = callOf([key], { estimate: 100 });
      await admitKnowing(bench.store, other);
      expect((await bench.store.admit({ ...call, estimate: 80 })).kind).toBe(
        "budget_held",
      );
      await bench.settle(other.callId, 0);
      expect(await bench.admit([key], { estimate: 100 })).toMatchObject({
        lease: 70,
      });
    });

    it("reserves budget of additional payers, and releases all of it", async () => {
      const key = payer("key:a", { budget: 100 });
      const cheap = payer("key_model:a/cheap", { budget: 100 });
      const dear = payer("key_model:a/dear", { budget: 100 });
      const call = callOf([key, cheap], { estimate: 30 });
      await admitKnowing(bench.store, call);
      await admitKnowing(bench.store, {
        ...call,
        entities: [key, dear],
        estimate: 80,
      });
      for (const entity of [key, cheap, dear]) {
        expect(await bench.admit([entity], { estimate: 0 })).toMatchObject({
          kind: "admitted",
        });
      }
      const probe = callOf([cheap], { estimate: 100 });
      expect(await admitKnowing(bench.store, probe)).toMatchObject({
        lease: 20,
      });
      await bench.store.settle({
        callId: probe.callId,
        tokens: 0,
        pending: [],
      });
      await bench.settle(call.callId, 0);
      for (const entity of [key, cheap, dear]) {
        expect(await bench.admit([entity], { estimate: 100 })).toMatchObject({
          lease: 100,
        });
      }
    });
  });
}
