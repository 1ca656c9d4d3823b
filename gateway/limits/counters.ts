import type {
  AdmitCall,
  Admission,
  CounterParts,
  LastKnown,
  LimitedEntity,
  LimitState,
  Refusal,
  Settlement,
} from "./limits.ts";
import type { Nanos } from "../pricing/money.ts";
import {
  createAccounts,
  type Account,
  type SightedWindows,
  type WindowCounter,
} from "./accounts.ts";
import { allowanceLeft, isClear } from "./allowance.ts";
import { createHeldCalls, type HeldCall } from "./held.ts";
import { createRates } from "./rates.ts";
import type { Share } from "./share.ts";
import { newestOf, sightingOf } from "./sightings.ts";

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
  admit(call: AdmitCall): Admission;
  look(entities: readonly LimitedEntity[]): readonly LimitState[];
  /** Holds what Redis admitted. */
  adopt(call: AdmitCall): void;
  /** Answers the entities whose money it may have freed. */
  settle(call: Settlement): readonly string[];
  renew(callIds: readonly string[]): void;
  /** `lastKnown`: the ledger could not be asked. */
  assign(counters: readonly CounterParts[], lastKnown: boolean): void;
  /** The total that was last assigned, however long ago; null: none was. */
  lastKnown(entity: string, window: string): LastKnown | null;
  /** What Redis says of an entity; ignored where the entity is unknown here. `leased` by all instances. */
  sight(entity: string, leased: Nanos, windows: SightedWindows): void;
  /** The parts, with the total that Redis last said where that is newer. */
  newest(parts: CounterParts): CounterParts;
  /** Totals assigned within the last `ms`. */
  recentTotals(ms: number): readonly CounterParts[];
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

  function admit(call: AdmitCall): Admission {
    accounts.sweep();
    reaped += calls.reap();
    const { estimate, tokens } = call;
    const inFlight = calls.find(call.callId);
    const entities = call.entities.map((limits) =>
      standing(limits, estimate, inFlight),
    );

    const missing = entities.filter(lacksTotal);
    if (missing.length > 0) {
      return {
        kind: "totals_missing",
        counters: missing.map(({ limits: { entity, window } }) => ({
          entity,
          window,
        })),
      };
    }
    const refusal =
      overBudget(entities) ??
      (inFlight === undefined ? rates.refusal(call.entities, share) : null) ??
      (estimate > 0 ? withoutRoom(entities, estimate, call.strict) : null);
    if (refusal !== null) {
      return refusal;
    }

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
    };
  }

  function standing(
    limits: LimitedEntity,
    estimate: Nanos,
    inFlight: HeldCall | undefined,
  ): Standing {
    const account = accounts.find(limits.entity);
    const counter = account?.windows.get(limits.window);
    if (counter !== undefined) {
      counter.usedAt = now();
    }
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
      if (limits.budget === null || spendOf(counter) < limits.budget) {
        continue;
      }
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
    if (strict) {
      for (const { limits, counter } of entities) {
        if (limits.budget === null) {
          continue;
        }
        const remaining = limits.budget - spendOf(counter);
        if (estimate > remaining) {
          return {
            kind: "estimate_too_large",
            entity: limits.entity,
            estimate,
            remaining,
          };
        }
      }
    }
    for (const entity of entities) {
      const { budget, entity: name } = entity.limits;
      if (budget === null) {
        continue;
      }
      const room = roomOf(entity, budget);
      if (room <= 0 || (strict && estimate > room)) {
        return {
          kind: "budget_held",
          entity: name,
          inFlight: entity.account?.holders ?? 0,
        };
      }
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
    if (share === null || counter === undefined) {
      return room;
    }
    const { estimate } = entity;
    const budgeted = { account, counter, budget, leased, estimate };
    return Math.min(room, allowanceLeft(budgeted, share, now()));
  }

  /** The total is not known, or what could be granted without knowing it well is used up: it is read again. */
  function lacksTotal(entity: Standing): boolean {
    const { limits, counter } = entity;
    if (limits.budget === null) {
      return false;
    }
    if (counter?.era !== era) {
      return true;
    }
    if (share === null || share.clearSince === null) {
      return false;
    }
    const { allowance } = counter;
    if (allowance === null || isClear(counter, share)) {
      return false;
    }
    const leased = entity.account?.leased ?? 0;
    return allowance.granted - allowance.settled - leased <= 0;
  }

  function setPending(counter: WindowCounter, pending: Nanos): void {
    // Pending spend falls only when a drain has brought it into the ledger; each rise is spend of this instance.
    if (counter.allowance !== null) {
      counter.allowance.settled += Math.max(0, pending - counter.pending);
    }
    counter.pending = pending;
  }

  function assignOne(
    { entity, window, total, version, pending }: CounterParts,
    lastKnown: boolean,
  ): void {
    const counter = accounts.counter(accounts.open(entity), window);
    const before = counter.era === era ? spendOf(counter) : 0;
    setPending(counter, pending);
    counter.usedAt = now();
    if (version < counter.version) {
      return;
    }
    counter.total = total;
    counter.version = version;
    counter.era = era;
    counter.assignedAt = now();
    counter.stale = lastKnown;
    // An admin has lowered the spend: there is more to share. (A drain's own rounding never comes to so much.)
    if (spendOf(counter) < before - ROUNDING) {
      counter.allowance = null;
    }
  }

  return {
    admit,
    look: (entities) => rates.look(entities, share),
    adopt(call) {
      accounts.sweep();
      reaped += calls.reap();
      calls.hold(call.callId, call.entities, call.estimate, 0, null);
    },
    settle({ callId, tokens, pending }) {
      const released = calls.release(callId, tokens);
      for (const part of pending) {
        setPending(
          accounts.counter(accounts.open(part.entity), part.window),
          part.pending,
        );
      }
      return released;
    },
    renew(callIds) {
      for (const callId of callIds) {
        calls.renew(callId);
      }
    },
    assign(counters, lastKnown) {
      for (const counter of counters) {
        assignOne(counter, lastKnown);
      }
    },
    lastKnown(entity, window) {
      const counter = accounts.find(entity)?.windows.get(window);
      if (counter === undefined || counter.version < 0) {
        return null;
      }
      return { total: counter.total, version: counter.version };
    },
    sight(entity, leased, windows) {
      const account = accounts.find(entity);
      if (account === undefined) {
        return;
      }
      account.sighting = sightingOf(account, leased, windows);
    },
    newest: (parts) => newestOf(parts, accounts.find(parts.entity)),
    recentTotals(ms) {
      const recent: CounterParts[] = [];
      const from = now() - ms;
      for (const { entity, windows } of accounts.all()) {
        for (const counter of windows.values()) {
          const { window, total, version, pending, assignedAt } = counter;
          if (assignedAt >= from) {
            recent.push({ entity, window, total, version, pending });
          }
        }
      }
      return recent;
    },
    turnOver(next) {
      share?.end();
      share = next;
      era++;
      for (const account of accounts.all()) {
        for (const counter of account.windows.values()) {
          counter.allowance = null;
        }
      }
    },
    held: (callId) => calls.find(callId),
    allHeld() {
      reaped += calls.reap();
      return calls.all();
    },
    allPending() {
      const all: PendingCounter[] = [];
      for (const { entity, windows } of accounts.all()) {
        for (const { window, pending } of windows.values()) {
          if (pending !== 0) {
            all.push({ entity, window, pending });
          }
        }
      }
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
