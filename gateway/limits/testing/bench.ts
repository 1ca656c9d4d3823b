import { afterEach, beforeEach } from "vitest";
import type {
  Admission,
  AdmitCall,
  CounterParts,
  LimitedEntity,
} from "../limits.ts";
import type { Limits } from "../limits.ts";

/** A store with a clock controlled by a test. */
export interface StoreUnderTest {
  readonly store: Limits;
  advance(ms: number): void;
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
    ...call,
  };
}

/** Admits as a gateway does: requested totals are taken from `totals`, default 0. */
export async function admitKnowing(
  store: Limits,
  call: AdmitCall,
  totals: Readonly<Record<string, Partial<CounterParts>>> = {},
): Promise<Admission> {
  for (let loads = 0; ; loads++) {
    const admission = await store.admit(call);
    if (admission.kind !== "totals_missing" || loads === 3) {
      return admission;
    }
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

/** A store for each test, with short helpers. */
export interface Bench {
  readonly under: StoreUnderTest;
  readonly store: Limits;
  admit(
    entities: readonly LimitedEntity[],
    call?: Partial<AdmitCall>,
    totals?: Readonly<Record<string, Partial<CounterParts>>>,
  ): Promise<Admission>;
  /** Settles a call with this instance's pending sum of `key:a`. */
  settle(callId: string, pending: number, tokens?: number): Promise<void>;
}

export function createBench(open: () => Promise<StoreUnderTest>): Bench {
  let under: StoreUnderTest;
  beforeEach(async () => {
    under = await open();
  });
  afterEach(() => under.close());
  return {
    get under() {
      return under;
    },
    get store() {
      return under.store;
    },
    admit: (entities, call = {}, totals = {}) =>
      admitKnowing(under.store, callOf(entities, call), totals),
    settle: (callId, pending, tokens = 0) =>
      under.store.settle({
        callId,
        tokens,
        pending: [{ entity: "key:a", window: "all", pending }],
      }),
  };
}
