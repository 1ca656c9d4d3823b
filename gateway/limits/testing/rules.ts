import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { HOUR_MS } from "../../../core/duration.ts";
import { admitWaiting } from "../waiting.ts";
import {
  admitKnowing,
  callOf,
  createBench,
  payer,
  type StoreUnderTest,
} from "./bench.ts";
import { describeBudgets } from "./rules-budgets.ts";
import { describeRates } from "./rules-rates.ts";

/** The rules of every store. */
export function describeRules(
  name: string,
  open: () => Promise<StoreUnderTest>,
): void {
  describe(name, () => {
    const bench = createBench(open);
    describeBudgets(bench);
    describeRates(bench);

    it("forgets entities unused for a day, and asks for the total again", async () => {
      const key = payer("key:a", { budget: 10 });
      await admitKnowing(bench.store, callOf([key]), { "key:a": { total: 4 } });
      const busy = callOf([payer("key:b", { budget: 10 })], { estimate: 3 });
      await admitKnowing(bench.store, busy);
      for (let hour = 0; hour < 27; hour++) {
        bench.under.advance(HOUR_MS);
        await bench.store.renew([busy.callId]);
      }
      for (let i = 0; i < 5; i++) {
        await bench.admit([payer("key:other", { requestsPerMinute: 100 })]);
        await sleep(20);
      }
      expect((await bench.store.admit(callOf([key]))).kind).toBe(
        "totals_missing",
      );
      expect(
        await bench.admit([payer("key:b", { budget: 10 })], { estimate: 9 }),
      ).toMatchObject({ lease: 7 });
    });

    it("accepts names with any characters", async () => {
      const names = ["tag:ü\n\0|x", "end_user:{}[]*?\\", "tag:💸", "tag: "];
      const entities = names.map((name) =>
        payer(name, { budget: 10, window: `w:${name}`, parallel: 1 }),
      );
      const call = callOf(entities, { estimate: 3 });
      expect((await admitKnowing(bench.store, call)).kind).toBe("admitted");
      await bench.store.settle({
        callId: call.callId,
        tokens: 0,
        pending: entities.map(({ entity, window }) => ({
          entity,
          window,
          pending: 10,
        })),
      });
      for (const entity of entities) {
        expect(await bench.admit([entity])).toMatchObject({
          kind: "budget_exceeded",
          entity: entity.entity,
          spend: 10,
        });
      }
    });

    it("serves simultaneous calls on a key with budget for ten: none rejected with money left, no overshoot beyond one call", async () => {
      const cost = 7;
      const key = payer("key:a", { budget: 10 * cost });
      let spent = 0;
      let phantoms = 0;
      const answers = new Map<string, number>();
      await admitKnowing(bench.store, callOf([key]));
      await Promise.all(
        Array.from({ length: 200 }, async () => {
          const call = callOf([key], { estimate: cost + 2 });
          const admission = await admitWaiting(bench.store, call);
          answers.set(admission.kind, (answers.get(admission.kind) ?? 0) + 1);
          if (admission.kind === "budget_exceeded" && spent < 10 * cost) {
            phantoms++;
          }
          if (admission.kind !== "admitted") {
            return;
          }
          await sleep(5);
          spent += cost;
          await bench.settle(call.callId, spent);
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
