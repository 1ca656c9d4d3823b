import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  LEASE_MS,
  RATE_WINDOW_MS,
  type Admission,
  type AdmitCall,
  type CounterParts,
  type LimitedEntity,
} from "../limits.ts";
import type { Limits } from "./create.ts";
import { admitWaiting } from "./waiting.ts";

/** A store with a clock and a cache in a test's hands. */
export interface StoreUnderTest {
  readonly store: Limits;
  advance(ms: number): void;
  cache(key: string, value: Buffer): Promise<void>;
  close(): Promise<void>;
}

export function payer(
  entity: string,
  limits: Partial<LimitedEntity> = {},
): LimitedEntity {
  return {
    entity,
    budget: null,
    window: "all",
    requestsPerMinute: null,
    tokensPerMinute: null,
    parallel: null,
    ...limits,
  };
}

let lastId = 0;

export function callOf(
  entities: readonly LimitedEntity[],
  call: Partial<AdmitCall> = {},
): AdmitCall {
  return {
    callId: `call-${++lastId}`,
    entities,
    estimate: 0,
    tokens: 0,
    strict: false,
    cacheKey: null,
    ...call,
  };
}

/** Admits as a gateway does: totals that are asked for are taken from `totals`, 0 when not there. */
export async function admitKnowing(
  store: Limits,
  call: AdmitCall,
  totals: Readonly<Record<string, Partial<CounterParts>>> = {},
): Promise<Admission> {
  for (let loads = 0; ; loads++) {
    const admission = await store.admit(call);
    if (admission.kind !== "totals_missing" || loads === 3) return admission;
    await store.assign(
      admission.counters.map(({ entity, window }) => ({
        entity,
        window,
        total: 0,
        version: 0,
        pending: 0,
        ...totals[entity],
      })),
    );
  }
}

/** The rules that every store keeps. */
export function describeRules(
  name: string,
  open: () => Promise<StoreUnderTest>,
): void {
  describe(name, () => {
    let under: StoreUnderTest;
    let store: Limits;

    beforeEach(async () => {
      under = await open();
      store = under.store;
    });
    afterEach(() => under.close());

    const admit = (
      entities: readonly LimitedEntity[],
      call: Partial<AdmitCall> = {},
      totals: Readonly<Record<string, Partial<CounterParts>>> = {},
    ) => admitKnowing(store, callOf(entities, call), totals);
    const settle = (
      callId: string,
      pending: number,
      tokens = 0,
      of = "key:a",
    ) =>
      store.settle({
        callId,
        tokens,
        pending: [{ entity: of, window: "all", pending }],
      });

    describe("budgets", () => {
      it("asks for every total that it does not know, once", async () => {
        const call = callOf([
          payer("key:a", { budget: 10, window: "2026-01" }),
          payer("team:b", { budget: 10 }),
          payer("user:c", { requestsPerMinute: 5 }),
        ]);
        const asked = await store.admit(call);
        expect(asked).toEqual({
          kind: "totals_missing",
          counters: [
            { entity: "key:a", window: "2026-01" },
            { entity: "team:b", window: "all" },
          ],
        });
        expect((await admitKnowing(store, call)).kind).toBe("admitted");
        expect((await admit(call.entities)).kind).toBe("admitted");
      });

      it("leases the estimate, or what remains of the tightest budget", async () => {
        const key = payer("key:a", { budget: 100 });
        const team = payer("team:b", { budget: 40 });
        expect(await admit([key], { estimate: 30 })).toMatchObject({
          kind: "admitted",
          lease: 30,
        });
        expect(await admit([key, team], { estimate: 50 })).toMatchObject({
          kind: "admitted",
          lease: 40,
        });
      });

      it("refuses when spend has reached the budget, and names the first such payer with its spend", async () => {
        const refusal = await admit(
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

      it("refuses the first call on a budget of 0, and lets one in on the smallest budget", async () => {
        expect((await admit([payer("key:a", { budget: 0 })])).kind).toBe(
          "budget_exceeded",
        );
        expect(
          await admit([payer("key:b", { budget: 1 })], { estimate: 9 }),
        ).toMatchObject({
          kind: "admitted",
          lease: 1,
        });
      });

      it("makes a call wait, not fail, when only calls in flight stand in its way", async () => {
        const key = payer("key:a", { budget: 100 });
        const first = callOf([key], { estimate: 60 });
        await admitKnowing(store, first);
        await admit([key], { estimate: 60 });
        expect(await admit([key], { estimate: 1 })).toEqual({
          kind: "budget_held",
          entity: "key:a",
          inFlight: 2,
        });
        await settle(first.callId, 10);
        expect(await admit([key], { estimate: 50 })).toMatchObject({
          lease: 30,
        });
      });

      it("holds the whole estimate of a call whose lease was clipped, so that only one call can cross", async () => {
        const key = payer("key:a", { budget: 100 });
        const first = callOf([key], { estimate: 50 });
        await admitKnowing(store, first);
        expect(await admit([key], { estimate: 100 })).toMatchObject({
          lease: 50,
        });
        await settle(first.callId, 10);
        // 90 are not spent, but the second call may need 100.
        expect((await admit([key], { estimate: 100 })).kind).toBe(
          "budget_held",
        );
      });

      it("holds the whole estimate in a team whose members' budgets are small", async () => {
        const team = payer("team:b", { budget: 100 });
        const member = (name: string) =>
          payer(`member:b/${name}`, { budget: 1 });
        expect((await admit([member("x"), team], { estimate: 60 })).kind).toBe(
          "admitted",
        );
        expect((await admit([member("y"), team], { estimate: 60 })).kind).toBe(
          "admitted",
        );
        expect(
          await admit([member("z"), team], { estimate: 60 }),
        ).toMatchObject({
          kind: "budget_held",
          entity: "team:b",
        });
      });

      it("lets calls that cost nothing pass while others hold the rest", async () => {
        const key = payer("key:a", { budget: 10 });
        await admit([key], { estimate: 10 });
        expect(await admit([key])).toMatchObject({
          kind: "admitted",
          lease: 0,
        });
        expect((await admit([key], { estimate: 1 })).kind).toBe("budget_held");
      });

      it("counts settled spend at once, and gives the lease back", async () => {
        const key = payer("key:a", { budget: 100 });
        const call = callOf([key], { estimate: 100 });
        await admitKnowing(store, call);
        await settle(call.callId, 99);
        expect(await admit([key], { estimate: 50 })).toMatchObject({
          lease: 1,
        });
        await settle("other", 100);
        expect(await admit([key], { estimate: 50 })).toMatchObject({
          kind: "budget_exceeded",
          spend: 100,
        });
      });

      it("settles a call once, however often it is said", async () => {
        const key = payer("key:a", { budget: 100, parallel: 2 });
        const [first, second] = [
          callOf([key], { estimate: 40 }),
          callOf([key], { estimate: 40 }),
        ];
        await admitKnowing(store, first);
        await admitKnowing(store, second);
        await settle(first.callId, 10);
        await settle(first.callId, 10);
        expect((await admit([key], { estimate: 1 })).kind).toBe("admitted");
        expect(await admit([key], { estimate: 1 })).toMatchObject({
          kind: "rate_limited",
          limit: "parallel",
        });
      });

      it("takes nothing from anyone when one payer refuses", async () => {
        const key = payer("key:a", {
          budget: 100,
          requestsPerMinute: 2,
          tokensPerMinute: 100,
          parallel: 1,
        });
        const team = payer("team:b", { budget: 50 });
        await admit([team], { estimate: 50 });
        for (let i = 0; i < 5; i++)
          expect(
            (await admit([key, team], { estimate: 10, tokens: 60 })).kind,
          ).toBe("budget_held");
        expect(await admit([key], { estimate: 100, tokens: 60 })).toMatchObject(
          {
            kind: "admitted",
            lease: 100,
            rates: [{ requests: { remaining: 1 }, tokens: { remaining: 40 } }],
          },
        );
      });

      it("counts a lease against every window of the payer, as the call ends in a later one", async () => {
        const key = (window: string) => payer("key:a", { budget: 100, window });
        const call = callOf([key("monday")], { estimate: 70 });
        await admitKnowing(store, call);
        expect(await admit([key("tuesday")], { estimate: 100 })).toMatchObject({
          lease: 30,
        });
        await store.settle({
          callId: call.callId,
          tokens: 0,
          pending: [{ entity: "key:a", window: "tuesday", pending: 70 }],
        });
        expect(
          await admit([key("wednesday")], { estimate: 100 }),
        ).toMatchObject({
          kind: "budget_held",
        });
        expect(await admit([key("tuesday")], { estimate: 1 })).toMatchObject({
          kind: "budget_held",
        });
      });

      it("keeps sums beyond 2^50 nanos exact", async () => {
        const budget = 9_007_199_254_740_000;
        const key = payer("key:a", { budget });
        const total = budget - 3;
        const call = callOf([key], { estimate: 1 });
        expect(
          await admitKnowing(store, call, { "key:a": { total } }),
        ).toMatchObject({ lease: 1 });
        expect(await admit([key], { estimate: 10 })).toMatchObject({
          lease: 2,
        });
        await settle(call.callId, 3);
        expect(await admit([key])).toEqual({
          kind: "budget_exceeded",
          entity: "key:a",
          spend: budget,
          budget,
        });
      });

      it("follows a raised budget at once", async () => {
        await admit(
          [payer("key:a", { budget: 10 })],
          { estimate: 10 },
          { "key:a": { total: 5 } },
        );
        expect(
          (await admit([payer("key:a", { budget: 10 })], { estimate: 1 })).kind,
        ).toBe("budget_held");
        expect(
          await admit([payer("key:a", { budget: 20 })], { estimate: 100 }),
        ).toMatchObject({ lease: 5 });
      });
    });

    describe("strict", () => {
      const strict = { strict: true };

      it("leases the whole estimate or nothing", async () => {
        const key = payer("key:a", { budget: 100 });
        expect(await admit([key], { ...strict, estimate: 60 })).toMatchObject({
          lease: 60,
        });
        expect(await admit([key], { ...strict, estimate: 60 })).toEqual({
          kind: "budget_held",
          entity: "key:a",
          inFlight: 1,
        });
        expect(await admit([key], { ...strict, estimate: 40 })).toMatchObject({
          lease: 40,
        });
      });

      it("says when the worst case can never fit", async () => {
        const key = payer("key:a", { budget: 100 });
        expect(
          await admit(
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

    describe("a dearer fallback", () => {
      it("raises the lease of the call, and takes no second slot, request or tokens", async () => {
        const key = payer("key:a", {
          budget: 100,
          requestsPerMinute: 9,
          tokensPerMinute: 90,
          parallel: 1,
        });
        const call = callOf([key], { estimate: 30, tokens: 5 });
        await admitKnowing(store, call);
        expect(await store.admit({ ...call, estimate: 80 })).toMatchObject({
          kind: "admitted",
          lease: 80,
          rates: [{ requests: { remaining: 8 }, tokens: { remaining: 85 } }],
        });
        const free = payer("key:a", { budget: 100 });
        expect(await admit([free], { estimate: 50 })).toMatchObject({
          lease: 20,
        });
        await settle(call.callId, 0);
        expect(await admit([free], { estimate: 80 })).toMatchObject({
          lease: 50,
        });
      });

      it("is refused when others hold the rest, and the lease stays as it was", async () => {
        const key = payer("key:a", { budget: 100 });
        const call = callOf([key], { estimate: 30 });
        await admitKnowing(store, call);
        const other = callOf([key], { estimate: 100 });
        await admitKnowing(store, other);
        expect((await store.admit({ ...call, estimate: 80 })).kind).toBe(
          "budget_held",
        );
        await settle(other.callId, 0);
        expect(await admit([key], { estimate: 100 })).toMatchObject({
          lease: 70,
        });
      });

      it("holds money of payers that the call did not have before, and gives all of it back", async () => {
        const key = payer("key:a", { budget: 100 });
        const cheap = payer("key_model:a/cheap", { budget: 100 });
        const dear = payer("key_model:a/dear", { budget: 100 });
        const call = callOf([key, cheap], { estimate: 30 });
        await admitKnowing(store, call);
        await admitKnowing(store, {
          ...call,
          entities: [key, dear],
          estimate: 80,
        });
        for (const entity of [key, cheap, dear])
          expect(await admit([entity], { estimate: 0 })).toMatchObject({
            kind: "admitted",
          });
        const probe = callOf([cheap], { estimate: 100 });
        expect(await admitKnowing(store, probe)).toMatchObject({ lease: 20 });
        await store.settle({ callId: probe.callId, tokens: 0, pending: [] });
        await settle(call.callId, 0);
        for (const entity of [key, cheap, dear])
          expect(await admit([entity], { estimate: 100 })).toMatchObject({
            lease: 100,
          });
      });
    });

    describe("rates", () => {
      it("counts requests in a minute from its first call", async () => {
        const key = payer("key:a", { requestsPerMinute: 2 });
        expect(await admit([key])).toMatchObject({
          rates: [
            {
              entity: "key:a",
              requests: { limit: 2, remaining: 1, resetInMs: RATE_WINDOW_MS },
              tokens: null,
            },
          ],
        });
        under.advance(20_000);
        await admit([key]);
        expect(await admit([key])).toEqual({
          kind: "rate_limited",
          entity: "key:a",
          limit: "requests",
          allowed: 2,
          resetInMs: RATE_WINDOW_MS - 20_000,
        });
        under.advance(39_999);
        expect((await admit([key])).kind).toBe("rate_limited");
        under.advance(1);
        expect((await admit([key])).kind).toBe("admitted");
      });

      it("takes estimated tokens, and corrects them when the call settles in the same minute", async () => {
        const key = payer("key:a", { tokensPerMinute: 100 });
        const call = callOf([key], { tokens: 500 });
        expect(await store.admit(call)).toMatchObject({
          rates: [{ tokens: { limit: 100, remaining: 0 } }],
        });
        expect(await admit([key], { tokens: 1 })).toMatchObject({
          kind: "rate_limited",
          limit: "tokens",
          allowed: 100,
        });
        await settle(call.callId, 0, 30);
        expect(await admit([key], { tokens: 10 })).toMatchObject({
          rates: [{ tokens: { remaining: 60 } }],
        });
      });

      it("leaves the next minute alone when a call of the last one settles", async () => {
        const key = payer("key:a", { tokensPerMinute: 100 });
        const call = callOf([key], { tokens: 80 });
        await store.admit(call);
        under.advance(RATE_WINDOW_MS);
        await admit([key], { tokens: 50 });
        await settle(call.callId, 0, 10);
        expect(await admit([key], { tokens: 10 })).toMatchObject({
          rates: [{ tokens: { remaining: 40 } }],
        });
      });

      it("frees parallel slots when calls settle", async () => {
        const key = payer("key:a", { parallel: 1 });
        const call = callOf([key]);
        await store.admit(call);
        expect(await admit([key])).toEqual({
          kind: "rate_limited",
          entity: "key:a",
          limit: "parallel",
          allowed: 1,
          resetInMs: 1_000,
        });
        await settle(call.callId, 0);
        expect((await admit([key])).kind).toBe("admitted");
      });

      it("refuses everything at a limit of 0", async () => {
        for (const limits of [
          { requestsPerMinute: 0 },
          { tokensPerMinute: 0 },
          { parallel: 0 },
        ])
          expect(
            (await admit([payer(`key:${JSON.stringify(limits)}`, limits)]))
              .kind,
          ).toBe("rate_limited");
      });

      it("checks budgets before rates", async () => {
        const key = payer("key:a", { budget: 0, requestsPerMinute: 0 });
        expect((await admit([key])).kind).toBe("budget_exceeded");
      });
    });

    describe("leases", () => {
      it("expire when nobody renews them, and give back money and slots; the settle after that still counts once", async () => {
        const key = payer("key:a", { budget: 100, parallel: 1 });
        const call = callOf([key], { estimate: 100 });
        await admitKnowing(store, call);
        under.advance(LEASE_MS - 1);
        expect((await admit([key], { estimate: 1 })).kind).toBe("rate_limited");
        under.advance(1);
        const next = callOf([key], { estimate: 100 });
        expect(await admitKnowing(store, next)).toMatchObject({
          kind: "admitted",
          lease: 100,
        });
        expect(store.counts().reapedLeases).toBe(1);
        await settle(call.callId, 60);
        await settle(next.callId, 60);
        expect(await admit([key], { estimate: 100 })).toMatchObject({
          lease: 40,
        });
      });

      it("last as long as they are renewed", async () => {
        const key = payer("key:a", { budget: 100 });
        const call = callOf([key], { estimate: 100 });
        await admitKnowing(store, call);
        for (let i = 0; i < 5; i++) {
          under.advance(LEASE_MS - 1_000);
          await store.renew([call.callId, "unknown"]);
          expect((await admit([key], { estimate: 1 })).kind).toBe(
            "budget_held",
          );
        }
        under.advance(LEASE_MS);
        expect((await admit([key], { estimate: 1 })).kind).toBe("admitted");
      });

      it("are taken again when they are renewed too late: the call is in flight", async () => {
        const key = payer("key:a", { budget: 100, parallel: 1 });
        const call = callOf([key], { estimate: 100 });
        await admitKnowing(store, call);
        under.advance(LEASE_MS + 1);
        await admit([payer("key:other")]);
        await store.renew([call.callId]);
        expect((await admit([key], { estimate: 1 })).kind).toBe("rate_limited");
        await settle(call.callId, 100);
        expect((await admit([key], { estimate: 1 })).kind).toBe(
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
        const refusal = await admit([payer("key:a", { budget: 1 })]);
        return refusal.kind === "budget_exceeded" ? refusal.spend : 0;
      };

      it("replace the total together with the pending sum", async () => {
        await admitKnowing(store, callOf([key]));
        await settle("x", 70);
        await store.assign([parts(60, 1, 10)]);
        expect(await spend()).toBe(70);
      });

      it("never go back to an older version; the pending sum is assigned in any case", async () => {
        await admitKnowing(store, callOf([key]), {
          "key:a": { total: 50, version: 5 },
        });
        await store.assign([parts(40, 4, 7)]);
        expect(await spend()).toBe(57);
        await store.assign([parts(55, 6, 0)]);
        expect(await spend()).toBe(55);
      });

      it("fall when an admin lowers the spend", async () => {
        await admitKnowing(store, callOf([key]), {
          "key:a": { total: 100, version: 5 },
        });
        expect((await admit([key])).kind).toBe("budget_exceeded");
        await store.assign([parts(0, 6, 0)]);
        expect(await admit([key], { estimate: 200 })).toMatchObject({
          lease: 100,
        });
      });
    });

    describe("the cache", () => {
      const value = Buffer.from([0, 255, 10, 13, 128]);

      it("is asked in the same step; a hit holds no money and no tokens", async () => {
        await under.cache("proxy.cache:x", value);
        const key = payer("key:a", { budget: 10, tokensPerMinute: 10 });
        expect(
          await admit([key], {
            estimate: 5,
            tokens: 8,
            cacheKey: "proxy.cache:x",
          }),
        ).toMatchObject({
          kind: "admitted",
          lease: 0,
          cached: value,
          rates: [{ tokens: { remaining: 10 } }],
        });
        expect(
          await admit([key], {
            estimate: 50,
            tokens: 8,
            cacheKey: "proxy.cache:y",
          }),
        ).toMatchObject({
          lease: 10,
          cached: null,
        });
        expect(
          (await admit([key], { estimate: 50, cacheKey: "proxy.cache:x" }))
            .kind,
        ).toBe("admitted");
      });

      it("does not serve who is over budget or over a rate", async () => {
        await under.cache("proxy.cache:x", value);
        const cacheKey = "proxy.cache:x";
        expect(
          (await admit([payer("key:a", { budget: 0 })], { cacheKey })).kind,
        ).toBe("budget_exceeded");
        expect(
          (
            await admit([payer("key:b", { requestsPerMinute: 0 })], {
              cacheKey,
            })
          ).kind,
        ).toBe("rate_limited");
      });
    });

    it("forgets who is unused for a day, and asks for the total again", async () => {
      const key = payer("key:a", { budget: 10 });
      await admitKnowing(store, callOf([key]), { "key:a": { total: 4 } });
      const busy = callOf([payer("key:b", { budget: 10 })], { estimate: 3 });
      await admitKnowing(store, busy);
      for (let hour = 0; hour < 27; hour++) {
        under.advance(60 * 60_000);
        await store.renew([busy.callId]);
      }
      for (let i = 0; i < 5; i++) {
        await admit([payer("key:other", { requestsPerMinute: 100 })]);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      expect((await store.admit(callOf([key]))).kind).toBe("totals_missing");
      expect(
        await admit([payer("key:b", { budget: 10 })], { estimate: 9 }),
      ).toMatchObject({ lease: 7 });
    });

    it("takes names with any characters", async () => {
      const names = ["tag:ü\n\0|x", "end_user:{}[]*?\\", "tag:💸", "tag: "];
      const entities = names.map((name) =>
        payer(name, { budget: 10, window: `w:${name}`, parallel: 1 }),
      );
      const call = callOf(entities, { estimate: 3 });
      expect((await admitKnowing(store, call)).kind).toBe("admitted");
      await store.settle({
        callId: call.callId,
        tokens: 0,
        pending: entities.map(({ entity, window }) => ({
          entity,
          window,
          pending: 10,
        })),
      });
      for (const entity of entities)
        expect(await admit([entity])).toMatchObject({
          kind: "budget_exceeded",
          entity: entity.entity,
          spend: 10,
        });
    });

    it("finishes a crowd on a key with money for ten: no phantom, no overshoot beyond one call", async () => {
      const cost = 7;
      const key = payer("key:a", { budget: 10 * cost });
      let spent = 0;
      let phantoms = 0;
      const answers = new Map<string, number>();
      await admitKnowing(store, callOf([key]));
      await Promise.all(
        Array.from({ length: 200 }, async () => {
          const call = callOf([key], { estimate: cost + 2 });
          const admission = await admitWaiting(store, call);
          answers.set(admission.kind, (answers.get(admission.kind) ?? 0) + 1);
          if (admission.kind === "budget_exceeded" && spent < 10 * cost)
            phantoms++;
          if (admission.kind !== "admitted") return;
          await new Promise((resolve) => setTimeout(resolve, 5));
          spent += cost;
          await settle(call.callId, spent);
        }),
      );
      expect(phantoms).toBe(0);
      expect(spent).toBe(10 * cost);
      expect(answers).toEqual(
        new Map([
          ["admitted", 10],
          ["budget_exceeded", 190],
        ]),
      );
    });
  });
}
