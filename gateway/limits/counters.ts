import type {
  AdmitCall,
  Admission,
  CounterParts,
  LastKnown,
  LimitedEntity,
  LimitState,
  Settlement,
} from "./limits.ts";
import type { Nanos } from "../pricing/money.ts";
import {
  Accounts,
  type SnapshotWindows,
  type WindowCounter,
} from "./accounts.ts";
import {
  lacksTotal,
  smallestRemainder,
  overBudget,
  spendOf,
  withoutRoom,
  type EntityState,
} from "./budget-checks.ts";
import { Reservations, type ReservedCall } from "./reservations.ts";
import { Rates } from "./rates.ts";
import type { Share } from "./share.ts";
import { newestOf, snapshotOf } from "./snapshots.ts";

export interface PendingCounter {
  readonly entity: string;
  readonly window: string;
  readonly pending: Nanos;
}

/** A drain moves at most 1,000 rows, each rounded to a nano, from pending into the total. */
const ROUNDING: Nanos = 1_000;

/**
 * The rules of the limits in this process, in one synchronous step each: the store without Redis, this instance's own
 * parts with Redis, and the fallback while Redis is away.
 */
export class Counters {
  readonly #now: () => number;
  readonly #accounts: Accounts;
  readonly #calls: Reservations;
  readonly #rates: Rates;
  #share: Share | null = null;
  #epoch = 0;
  #reaped = 0;

  readonly #lacksTotal = (entity: EntityState): boolean =>
    lacksTotal(entity, this.#epoch, this.#share);

  constructor(now: () => number) {
    this.#now = now;
    this.#accounts = new Accounts(now);
    this.#calls = new Reservations(this.#accounts, now);
    this.#rates = new Rates(this.#accounts, now);
  }

  admit(call: AdmitCall): Admission {
    this.#accounts.sweep();
    this.#reaped += this.#calls.reap();
    const { estimate, tokens } = call;
    const inFlight = this.#calls.find(call.callId);
    const entities = call.entities.map((limits) =>
      this.#stateOf(limits, estimate, inFlight),
    );

    const missing = entities.filter(this.#lacksTotal);
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
      (inFlight === undefined
        ? this.#rates.refusal(call.entities, this.#share)
        : null) ??
      (estimate > 0
        ? withoutRoom(entities, estimate, call.strict, this.#share, this.#now)
        : null);
    if (refusal !== null) {
      return refusal;
    }

    const lease =
      estimate === 0
        ? 0
        : smallestRemainder(entities, estimate, this.#share, this.#now);
    const starts =
      inFlight === undefined ? this.#rates.take(call.entities, tokens) : [];
    this.#calls.hold(call, tokens, starts);
    return {
      kind: "admitted",
      lease,
      rates: this.#rates.states(call.entities, this.#share),
      spends: entities.flatMap(({ limits, counter }) =>
        limits.budget === null
          ? []
          : [{ entity: limits.entity, spend: spendOf(counter) }],
      ),
    };
  }

  look(entities: readonly LimitedEntity[]): readonly LimitState[] {
    return this.#rates.look(entities, this.#share);
  }

  /** Reserves what Redis admitted. */
  adopt(call: AdmitCall): void {
    this.#accounts.sweep();
    this.#reaped += this.#calls.reap();
    this.#calls.hold(call, 0, null);
  }

  /** Returns the entities that may have released budget. */
  settle({ callId, tokens, pending }: Settlement): readonly string[] {
    const released = this.#calls.release(callId, tokens);
    for (const part of pending) {
      this.#setPending(
        this.#accounts.counter(this.#accounts.open(part.entity), part.window),
        part.pending,
      );
    }
    return released;
  }

  renew(callIds: readonly string[]): void {
    for (const callId of callIds) {
      this.#calls.renew(callId);
    }
  }

  /** `lastKnown`: the ledger could not be read. */
  assign(counters: readonly CounterParts[], lastKnown: boolean): void {
    for (const counter of counters) {
      this.#assignOne(counter, lastKnown);
    }
  }

  /** The last assigned total, however old; null: none was assigned. */
  lastKnown(entity: string, window: string): LastKnown | null {
    const counter = this.#accounts.find(entity)?.windows.get(window);
    if (counter === undefined || counter.version < 0) {
      return null;
    }
    return { total: counter.total, version: counter.version };
  }

  /** Stores the state of an entity received from Redis; ignored where the entity is unknown here. `leased` by all instances. */
  recordSnapshot(
    entity: string,
    leased: Nanos,
    windows: SnapshotWindows,
  ): void {
    const account = this.#accounts.find(entity);
    if (account === undefined) {
      return;
    }
    account.snapshot = snapshotOf(account, leased, windows);
  }

  /** The parts, with the total last received from Redis where that is newer. */
  newest(parts: CounterParts): CounterParts {
    return newestOf(parts, this.#accounts.find(parts.entity));
  }

  /** Totals assigned from that time on, in ms since the epoch. */
  totalsSince(from: number): readonly CounterParts[] {
    const recent: CounterParts[] = [];
    for (const { entity, windows } of this.#accounts.all()) {
      for (const counter of windows.values()) {
        const { window, total, version, pending, assignedAt } = counter;
        if (assignedAt >= from) {
          recent.push({ entity, window, total, version, pending });
        }
      }
    }
    return recent;
  }

  /** Starts an epoch: totals count as unknown, and budgets and rates are limited to a share (null: to the whole). */
  changeEpoch(next: Share | null): void {
    this.#share?.end();
    this.#share = next;
    this.#epoch++;
    for (const account of this.#accounts.all()) {
      for (const counter of account.windows.values()) {
        counter.allowance = null;
      }
    }
  }

  /** Totals count as unknown until they are assigned again. */
  forgetTotals(): void {
    this.#epoch++;
  }

  held(callId: string): ReservedCall | undefined {
    return this.#calls.find(callId);
  }

  allReserved(): IterableIterator<ReservedCall> {
    this.#reaped += this.#calls.reap();
    return this.#calls.all();
  }

  /** Every counter that has spend pending. */
  allPending(): readonly PendingCounter[] {
    const all: PendingCounter[] = [];
    for (const { entity, windows } of this.#accounts.all()) {
      for (const { window, pending } of windows.values()) {
        if (pending !== 0) {
          all.push({ entity, window, pending });
        }
      }
    }
    return all;
  }

  pendingOf(entity: string, window: string): Nanos {
    return this.#accounts.find(entity)?.windows.get(window)?.pending ?? 0;
  }

  reapedLeases(): number {
    return this.#reaped;
  }

  #stateOf(
    limits: LimitedEntity,
    estimate: Nanos,
    inFlight: ReservedCall | undefined,
  ): EntityState {
    const account = this.#accounts.find(limits.entity);
    const counter = account?.windows.get(limits.window);
    if (counter !== undefined) {
      counter.usedAt = this.#now();
    }
    const holds =
      limits.budget !== null &&
      inFlight !== undefined &&
      this.#calls.holdsBudget(inFlight, limits.entity);
    const own = holds ? inFlight.estimate : 0;
    return { limits, account, counter, estimate, own };
  }

  #setPending(counter: WindowCounter, pending: Nanos): void {
    // Pending spend falls only when a drain has brought it into the ledger; each rise is spend of this instance.
    if (counter.allowance !== null) {
      counter.allowance.settled += Math.max(0, pending - counter.pending);
    }
    counter.pending = pending;
  }

  #assignOne(
    { entity, window, total, version, pending }: CounterParts,
    lastKnown: boolean,
  ): void {
    const counter = this.#accounts.counter(this.#accounts.open(entity), window);
    const before = counter.epoch === this.#epoch ? spendOf(counter) : 0;
    this.#setPending(counter, pending);
    counter.usedAt = this.#now();
    if (version < counter.version) {
      return;
    }
    counter.total = total;
    counter.version = version;
    counter.epoch = this.#epoch;
    counter.assignedAt = this.#now();
    counter.stale = lastKnown;
    // An admin has lowered the spend: there is more to share. (The rounding of a drain is always less.)
    if (spendOf(counter) < before - ROUNDING) {
      counter.allowance = null;
    }
  }
}
