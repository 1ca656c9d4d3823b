import type {
  AdmitCall,
  Admission,
  CounterParts,
  LimitedEntity,
  LimitState,
  Refusal,
  Settlement,
} from "../limits.ts";
import type { Nanos } from "../money.ts";
import {
  createAccounts,
  type Account,
  type WindowCounter,
  type Allowance,
} from "./accounts.ts";
import { createHeldCalls, type HeldCall } from "./held.ts";
import { createRates } from "./rates.ts";
import type { Share } from "./share.ts";

export interface PendingCounter {
  readonly entity: string;
  readonly window: string;
  readonly pending: Nanos;
}

/**
 * The rules of the limits in this process, in one synchronous step each: the store when there is no Redis, this
 * instance's own parts when there is, and what serves while it is away.
 */
export interface Counters {
  admit(call: AdmitCall, cached: Buffer | null): Admission;
  look(entities: readonly LimitedEntity[]): readonly LimitState[];
  /** Holds what Redis admitted. */
  adopt(call: AdmitCall, hit: boolean): void;
  /** Answers the entities whose money it may have freed. */
  settle(call: Settlement): readonly string[];
  renew(callIds: readonly string[]): void;
  assign(counters: readonly CounterParts[]): void;
  /** From here totals count as unknown, and budgets and rates are kept to a share (null: to the whole). */
  turnOver(share: Share | null): void;
  held(callId: string): HeldCall | undefined;
  allHeld(): IterableIterator<HeldCall>;
  /** Every counter that has spend pending. */
  allPending(): readonly PendingCounter[];
  pendingOf(entity: string, window: string): Nanos;
  reapedLeases(): number;
}

/** A drain moves at most 1,000 rows, each rounded to a nano, from pending into the total. */
const ROUNDING: Nanos = 1_000;
/** What a share keeps back while it is not clear: as many calls of others may be on their way. */
const FEW_CALLS = 20;

/** One entity of a call with its counters as they are before it. */
interface Standing {
  readonly limits: LimitedEntity;
  readonly account: Account | undefined;
  readonly counter: WindowCounter | undefined;
  /** Of the call. */
  readonly estimate: Nanos;
  /** What the call itself holds already. */
  readonly own: Nanos;
}

export function createCounters(now: () => number): Counters {
  const accounts = createAccounts(now);
  const calls = createHeldCalls(accounts, now);
  const rates = createRates(accounts, now);
  let share: Share | null = null;
  let era = 0;
  let reaped = 0;

  function admit(call: AdmitCall, cached: Buffer | null): Admission {
    accounts.sweep();
    reaped += calls.reap();
    const estimate = cached === null ? call.estimate : 0;
    const tokens = cached === null ? call.tokens : 0;
    const inFlight = calls.find(call.callId);
    const entities = call.entities.map((limits) =>
      standing(limits, estimate, inFlight),
    );

    const missing = entities.filter(lacksTotal);
    if (missing.length > 0)
      return {
        kind: "totals_missing",
        counters: missing.map(({ limits: { entity, window } }) => ({
          entity,
          window,
        })),
      };
    const refusal =
      overBudget(entities) ??
      (inFlight === undefined ? rates.refusal(call.entities, share) : null) ??
      (estimate > 0 ? withoutRoom(entities, estimate, call.strict) : null);
    if (refusal !== null) return refusal;

    const lease = estimate === 0 ? 0 : leastRoom(entities, estimate);
    const starts =
      inFlight === undefined ? rates.take(call.entities, tokens) : [];
    calls.hold(call.callId, call.entities, estimate, tokens, starts);
    return {
      kind: "admitted",
      lease,
      rates: rates.states(call.entities, share),
      spends: entities.flatMap(({ limits, counter }) =>
        limits.budget === null
          ? []
          : [{ entity: limits.entity, spend: spendOf(counter) }],
      ),
      cached,
    };
  }

  function standing(
    limits: LimitedEntity,
    estimate: Nanos,
    inFlight: HeldCall | undefined,
  ): Standing {
    const account = accounts.find(limits.entity);
    const counter = account?.windows.get(limits.window);
    if (counter !== undefined) counter.usedAt = now();
    const holds =
      limits.budget !== null &&
      inFlight !== undefined &&
      calls.holdsBudget(inFlight, limits.entity);
    const own = holds ? inFlight.estimate : 0;
    return { limits, account, counter, estimate, own };
  }

  // Whole nanos are compared exactly: a tolerance in favour of the call would admit a call on a budget of 0, and none is
  // needed, because spend never counts twice and budgets are rounded up.
  function overBudget(entities: readonly Standing[]): Refusal | null {
    for (const { limits, counter } of entities) {
      if (limits.budget === null || spendOf(counter) < limits.budget) continue;
      return {
        kind: "budget_exceeded",
        entity: limits.entity,
        spend: spendOf(counter),
        budget: limits.budget,
      };
    }
    return null;
  }

  function withoutRoom(
    entities: readonly Standing[],
    estimate: Nanos,
    strict: boolean,
  ): Refusal | null {
    if (strict)
      for (const { limits, counter } of entities) {
        if (limits.budget === null) continue;
        const remaining = limits.budget - spendOf(counter);
        if (estimate > remaining)
          return {
            kind: "estimate_too_large",
            entity: limits.entity,
            estimate,
            remaining,
          };
      }
    for (const entity of entities) {
      const { budget, entity: name } = entity.limits;
      if (budget === null) continue;
      const room = roomOf(entity, budget);
      if (room <= 0 || (strict && estimate > room))
        return {
          kind: "budget_held",
          entity: name,
          inFlight: entity.account?.holders ?? 0,
        };
    }
    return null;
  }

  function leastRoom(entities: readonly Standing[], estimate: Nanos): Nanos {
    return entities.reduce(
      (least, entity) =>
        entity.limits.budget === null
          ? least
          : Math.min(least, roomOf(entity, entity.limits.budget)),
      estimate,
    );
  }

  /** What neither spend nor a call in flight takes, within this instance's share. */
  function roomOf(entity: Standing, budget: Nanos): Nanos {
    const { account, counter, own } = entity;
    const leased = (account?.leased ?? 0) - own;
    const room = budget - spendOf(counter) - leased;
    if (share === null || counter === undefined) return room;
    const allowance = allowanceOf(entity, counter, budget, share);
    if (allowance.budget !== budget) {
      allowance.granted += Math.floor(
        (budget - allowance.budget) / share.instances,
      );
      allowance.budget = budget;
    }
    return Math.min(room, allowance.granted - allowance.settled - leased);
  }

  /**
   * Until it is clear what others had in flight when Redis went away, the last calls of a share are kept back: they may
   * have been made already. Then it is fixed, from what was spent before the outage; what others have spent in it so far
   * is taken for earlier spend, which errs on the side of the budget.
   */
  function allowanceOf(
    { limits, account, own, estimate }: Standing,
    counter: WindowCounter,
    budget: Nanos,
    of: Share,
  ): Allowance {
    const known = counter.allowance;
    const clear = isClear(counter, of);
    if (known !== null && (known.final || !clear)) return known;
    const settled = known?.settled ?? 0;
    const held = known?.held ?? (account?.leased ?? 0) - own;
    const free = of.free(
      limits.entity,
      limits.window,
      budget,
      spendOf(counter) - settled + held,
    );
    const granted =
      held + (clear ? free : Math.max(0, free - FEW_CALLS * estimate));
    counter.allowance = { granted, settled, budget, held, final: clear };
    return counter.allowance;
  }

  function isClear(counter: WindowCounter, of: Share): boolean {
    if (of.instances === 1) return true;
    return of.clearSince !== null && counter.assignedAt >= of.clearSince;
  }

  /** The total is not known, or what could be granted without knowing it well is used up: it is read again. */
  function lacksTotal(entity: Standing): boolean {
    const { limits, counter } = entity;
    if (limits.budget === null) return false;
    if (counter?.era !== era) return true;
    if (share === null || share.clearSince === null) return false;
    const { allowance } = counter;
    if (allowance === null || isClear(counter, share)) return false;
    const leased = entity.account?.leased ?? 0;
    return allowance.granted - allowance.settled - leased <= 0;
  }

  function setPending(counter: WindowCounter, pending: Nanos): void {
    // Pending spend falls only when a drain has brought it into the ledger; each rise is spend of this instance.
    if (counter.allowance !== null)
      counter.allowance.settled += Math.max(0, pending - counter.pending);
    counter.pending = pending;
  }

  function assignOne({
    entity,
    window,
    total,
    version,
    pending,
  }: CounterParts): void {
    const counter = accounts.counter(accounts.open(entity), window);
    const before = counter.era === era ? spendOf(counter) : 0;
    setPending(counter, pending);
    if (version < counter.version) return;
    counter.total = total;
    counter.version = version;
    counter.era = era;
    counter.assignedAt = now();
    // An admin has lowered the spend: there is more to share. (A drain's own rounding never comes to so much.)
    if (spendOf(counter) < before - ROUNDING) counter.allowance = null;
  }

  return {
    admit,
    look: (entities) => rates.look(entities, share),
    adopt(call, hit) {
      accounts.sweep();
      reaped += calls.reap();
      calls.hold(call.callId, call.entities, hit ? 0 : call.estimate, 0, null);
    },
    settle({ callId, tokens, pending }) {
      const released = calls.release(callId, tokens);
      for (const part of pending)
        setPending(
          accounts.counter(accounts.open(part.entity), part.window),
          part.pending,
        );
      return released;
    },
    renew(callIds) {
      for (const callId of callIds) calls.renew(callId);
    },
    assign(counters) {
      for (const counter of counters) assignOne(counter);
    },
    turnOver(next) {
      share?.end();
      share = next;
      era++;
      for (const account of accounts.all())
        for (const counter of account.windows.values())
          counter.allowance = null;
    },
    held: (callId) => calls.find(callId),
    allHeld() {
      reaped += calls.reap();
      return calls.all();
    },
    allPending() {
      const all: PendingCounter[] = [];
      for (const { entity, windows } of accounts.all())
        for (const { window, pending } of windows.values())
          if (pending !== 0) all.push({ entity, window, pending });
      return all;
    },
    pendingOf: (entity, window) =>
      accounts.find(entity)?.windows.get(window)?.pending ?? 0,
    reapedLeases: () => reaped,
  };
}

function spendOf(counter: WindowCounter | undefined): Nanos {
  return counter === undefined ? 0 : counter.total + counter.pending;
}
