import { describe, expect, it } from "vitest";
import { LEASE_MS, RATE_WINDOW_MS, type CounterParts } from "../limits.ts";
import { admitKnowing, callOf, payer, type Bench } from "./bench.ts";

/** Rates, leases in time, totals, the cache. */
export function describeRates(bench: Bench): void {
  describe("rates", () => {
    it("counts requests in a minute from its first call", async () => {
      const key = payer("key:a", { requestsPerMinute: 2 });
      expect(await bench.admit([key])).toMatchObject({
        rates: [
          {
            entity: "key:a",
            requests: { limit: 2, remaining: 1, resetInMs: RATE_WINDOW_MS },
            tokens: null,
          },
        ],
      });
      bench.under.advance(20_000);
      await bench.admit([key]);
      expect(await bench.admit([key])).toEqual({
        kind: "rate_limited",
        entity: "key:a",
        limit: "requests",
        allowed: 2,
        resetInMs: RATE_WINDOW_MS - 20_000,
      });
      bench.under.advance(39_999);
      expect((await bench.admit([key])).kind).toBe("rate_limited");
      bench.under.advance(1);
      expect((await bench.admit([key])).kind).toBe("admitted");
    });

    it("reports what is left without taking anything", async () => {
      const key = payer("key:a", {
        requestsPerMinute: 5,
        tokensPerMinute: 100,
        parallel: 2,
      });
      const free = payer("key:free", { budget: 9 });
      const untouched = {
        requests: { limit: 5, remaining: 5, resetInMs: 0 },
        tokens: { limit: 100, remaining: 100, resetInMs: 0 },
        parallel: { limit: 2, remaining: 2 },
      };
      expect(await bench.store.look([key])).toMatchObject([untouched]);
      const call = callOf([key], { tokens: 70 });
      await bench.store.admit(call);
      bench.under.advance(10_000);
      for (let looks = 0; looks < 3; looks++) {
        expect(await bench.store.look([free, key])).toEqual([
          { entity: "key:free", requests: null, tokens: null, parallel: null },
          {
            entity: "key:a",
            requests: { limit: 5, remaining: 4, resetInMs: 50_000 },
            tokens: { limit: 100, remaining: 30, resetInMs: 50_000 },
            parallel: { limit: 2, remaining: 1 },
          },
        ]);
      }
      await bench.settle(call.callId, 0, 20);
      bench.under.advance(RATE_WINDOW_MS);
      expect(await bench.store.look([key])).toMatchObject([untouched]);
    });

    it("takes estimated tokens, and corrects them when the call settles in the same minute", async () => {
      const key = payer("key:a", { tokensPerMinute: 100 });
      const call = callOf([key], { tokens: 500 });
      expect(await bench.store.admit(call)).toMatchObject({
        rates: [{ tokens: { limit: 100, remaining: 0 } }],
      });
      expect(await bench.admit([key], { tokens: 1 })).toMatchObject({
        kind: "rate_limited",
        limit: "tokens",
        allowed: 100,
      });
      await bench.settle(call.callId, 0, 30);
      expect(await bench.admit([key], { tokens: 10 })).toMatchObject({
        rates: [{ tokens: { remaining: 60 } }],
      });
    });

    it("does not change the next minute when a call of the previous one settles", async () => {
      const key = payer("key:a", { tokensPerMinute: 100 });
      const call = callOf([key], { tokens: 80 });
      await bench.store.admit(call);
      bench.under.advance(RATE_WINDOW_MS);
      await bench.admit([key], { tokens: 50 });
      await bench.settle(call.callId, 0, 10);
      expect(await bench.admit([key], { tokens: 10 })).toMatchObject({
        rates: [{ tokens: { remaining: 40 } }],
      });
    });

    it("releases parallel slots when calls settle", async () => {
      const key = payer("key:a", { parallel: 1 });
      const call = callOf([key]);
      await bench.store.admit(call);
      expect(await bench.admit([key])).toEqual({
        kind: "rate_limited",
        entity: "key:a",
        limit: "parallel",
        allowed: 1,
        resetInMs: 1_000,
      });
      await bench.settle(call.callId, 0);
      expect((await bench.admit([key])).kind).toBe("admitted");
    });

    it("rejects everything at a limit of 0", async () => {
      for (const limits of [
        { requestsPerMinute: 0 },
        { tokensPerMinute: 0 },
        { parallel: 0 },
      ]) {
        expect(
          (await bench.admit([payer(`key:${JSON.stringify(limits)}`, limits)]))
            .kind,
        ).toBe("rate_limited");
      }
    });

    it("checks budgets before rates", async () => {
      const key = payer("key:a", { budget: 0, requestsPerMinute: 0 });
      expect((await bench.admit([key])).kind).toBe("budget_exceeded");
    });
  });

  describe("leases", () => {
    it("expire without renewal, and release budget and slots; a later settlement still counts once", async () => {
      const key = payer("key:a", { budget: 100, parallel: 1 });
      const call = callOf([key], { estimate: 100 });
      await admitKnowing(bench.store, call);
      bench.under.advance(LEASE_MS - 1);
      expect((await bench.admit([key], { estimate: 1 })).kind).toBe(
        "rate_limited",
      );
      bench.under.advance(1);
      const next = callOf([key], { estimate: 100 });
      expect(await admitKnowing(bench.store, next)).toMatchObject({
        kind: "admitted",
        lease: 100,
      });
      expect(bench.store.counts().expiredLeases).toBe(1);
      await bench.settle(call.callId, 60);
      await bench.settle(next.callId, 60);
      expect(await bench.admit([key], { estimate: 100 })).toMatchObject({
        lease: 40,
      });
    });

    it("last as long as they are renewed", async () => {
      const key = payer("key:a", { budget: 100 });
      const call = callOf([key], { estimate: 100 });
      await admitKnowing(bench.store, call);
      for (let i = 0; i < 5; i++) {
        bench.under.advance(LEASE_MS - 1_000);
        await bench.store.renew([call.callId, "unknown"]);
        expect((await bench.admit([key], { estimate: 1 })).kind).toBe(
          "budget_held",
        );
      }
      bench.under.advance(LEASE_MS);
      expect((await bench.admit([key], { estimate: 1 })).kind).toBe("admitted");
    });

    it("are taken again when they are renewed late: the call is in flight", async () => {
      const key = payer("key:a", { budget: 100, parallel: 1 });
      const call = callOf([key], { estimate: 100 });
      await admitKnowing(bench.store, call);
      bench.under.advance(LEASE_MS + 1);
      await bench.admit([payer("key:other")]);
      await bench.store.renew([call.callId]);
      expect((await bench.admit([key], { estimate: 1 })).kind).toBe(
        "rate_limited",
      );
      await bench.settle(call.callId, 100);
      expect((await bench.admit([key], { estimate: 1 })).kind).toBe(
        "budget_exceeded",
      );
    });
  });

  describe("the ledger's totals", () => {
    const key = payer("key:a", { budget: 100 });
    const parts = (
      total: number,
      version: number,
      pending: number,
    ): CounterParts => ({
      entity: "key:a",
      window: "all",
      total,
      version,
      pending,
    });
    const spend = async () => {
      const refusal = await bench.admit([payer("key:a", { budget: 1 })]);
      return refusal.kind === "budget_exceeded" ? refusal.spend : 0;
    };

    it("replace the total together with the pending sum", async () => {
      await admitKnowing(bench.store, callOf([key]));
      await bench.settle("x", 70);
      await bench.store.assign([parts(60, 1, 10)]);
      expect(await spend()).toBe(70);
    });

    it("are never replaced by an older version; the pending sum is always assigned", async () => {
      await admitKnowing(bench.store, callOf([key]), {
        "key:a": { total: 50, version: 5 },
      });
      await bench.store.assign([parts(40, 4, 7)]);
      expect(await spend()).toBe(57);
      await bench.store.assign([parts(55, 6, 0)]);
      expect(await spend()).toBe(55);
    });

    it("fall when an admin lowers the spend", async () => {
      await admitKnowing(bench.store, callOf([key]), {
        "key:a": { total: 100, version: 5 },
      });
      expect((await bench.admit([key])).kind).toBe("budget_exceeded");
      await bench.store.assign([parts(0, 6, 0)]);
      expect(await bench.admit([key], { estimate: 200 })).toMatchObject({
        lease: 100,
      });
    });
  });
}
