import { HOUR_MS, MINUTE_MS } from "../../core/duration.ts";
import type { Nanos } from "../pricing/money.ts";

/** Counters of one entity in this process. */
export interface Account {
  readonly entity: string;
  leased: Nanos;
  /** Calls in flight that hold a lease. */
  holders: number;
  slots: number;
  rateStart: number;
  requests: number;
  tokens: number;
  usedAt: number;
  /** null: nothing received from Redis yet. */
  snapshot: Snapshot | null;
  readonly windows: Map<string, WindowCounter>;
}

export interface WindowCounter {
  readonly window: string;
  total: Nanos;
  version: number;
  /** The total counts only in the epoch that it was assigned in. */
  epoch: number;
  assignedAt: number;
  /** Assigned without the ledger: the last known total, which may have grown since. */
  stale: boolean;
  pending: Nanos;
  usedAt: number;
  /** While Redis is unavailable. */
  allowance: Allowance | null;
}

/** The last state of an entity received from Redis, for the time when Redis is unavailable. */
export interface Snapshot {
  readonly leasedByOthers: Nanos;
  readonly windows: SnapshotWindows;
}

/** By name of the window. */
export type SnapshotWindows = ReadonlyMap<string, SnapshotWindow>;

export interface SnapshotWindow {
  /** The ledger's total, and its version. */
  readonly total: Nanos;
  readonly version: number;
  /** The total with everything that is pending, of all instances. */
  readonly spend: Nanos;
}

/** What this instance may commit of a budget while Redis is unavailable. */
export interface Allowance {
  granted: Nanos;
  settled: Nanos;
  budget: Nanos;
  /** Of what was granted: leases that existed already. */
  readonly held: Nanos;
  readonly basis: Basis;
}

/**
 * How well the other instances' spend is known. GUESS: calls that they had in flight when Redis became unavailable may be
 * unknown here. LAST_KNOWN: the ledger cannot be read, so no better total is available. LEDGER: a total read since then.
 */
export type Basis = typeof GUESS | typeof LAST_KNOWN | typeof LEDGER;
export const GUESS = 0;
export const LAST_KNOWN = 1;
export const LEDGER = 2;

const IDLE_MS = 25 * HOUR_MS;
const SUPERSEDED_MS = 10 * MINUTE_MS;

export class Accounts {
  readonly #now: () => number;
  readonly #accounts = new Map<string, Account>();
  #sweeping = this.#accounts.values();

  constructor(now: () => number) {
    this.#now = now;
  }

  find(entity: string): Account | undefined {
    return this.#accounts.get(entity);
  }

  /** Finds or creates the account. */
  open(entity: string): Account {
    const known = this.#accounts.get(entity);
    if (known !== undefined) {
      return known;
    }
    const made: Account = {
      entity,
      leased: 0,
      holders: 0,
      slots: 0,
      rateStart: -Infinity,
      requests: 0,
      tokens: 0,
      usedAt: this.#now(),
      snapshot: null,
      windows: new Map(),
    };
    this.#accounts.set(entity, made);
    return made;
  }

  /** Finds or creates the counter of a window; a new one removes windows that it replaces and that have nothing pending. */
  counter(account: Account, window: string): WindowCounter {
    const known = account.windows.get(window);
    if (known !== undefined) {
      return known;
    }
    const at = this.#now();
    for (const old of account.windows.values()) {
      if (old.pending === 0 && at - old.usedAt > SUPERSEDED_MS) {
        account.windows.delete(old.window);
      }
    }
    const made = {
      window,
      total: 0,
      version: -1,
      epoch: -1,
      assignedAt: -Infinity,
      stale: false,
      pending: 0,
      usedAt: at,
      allowance: null,
    };
    account.windows.set(window, made);
    return made;
  }

  all(): IterableIterator<Account> {
    return this.#accounts.values();
  }

  /** Checks two accounts and removes those unused for a day: a few at each call, never all at once. */
  sweep(): void {
    const at = this.#now();
    for (let looked = 0; looked < 2; looked++) {
      const next = this.#sweeping.next();
      if (next.done === true) {
        this.#sweeping = this.#accounts.values();
      } else if (this.#idle(next.value, at)) {
        this.#accounts.delete(next.value.entity);
      }
    }
  }

  #idle(account: Account, at: number): boolean {
    if (
      at - account.usedAt <= IDLE_MS ||
      account.slots > 0 ||
      account.holders > 0
    ) {
      return false;
    }
    for (const counter of account.windows.values()) {
      if (counter.pending !== 0) {
        return false;
      }
    }
    return true;
  }
}
