import type { Nanos } from "../pricing/money.ts";

/** The share of this instance while Redis is unavailable: 1/instances of what is left. */
export interface Share {
  readonly instances: number;
  /** Since when Redis is unavailable, ms since the epoch. */
  readonly since: number;
  /** A share of requests, tokens or slots: at least 1, unless the limit itself is 0. */
  limit(whole: number): number;
  /** A share of what is left of a budget, of which `taken` is known to be spent or leased. */
  free(budget: Nanos, taken: Nanos): Nanos;
  /**
   * Ms since the epoch: a total read from then on includes the calls that others had in flight when Redis became
   * unavailable. null: not yet.
   */
  readonly clearSince: number | null;
  end(): void;
}

/**
 * A second for others to bring what they had in flight into the ledger. Counted in turns of the event loop rather than by
 * the clock: while a machine is suspended, no instance writes to the ledger.
 */
const CLEAR_AFTER_TICKS = 10;
const TICK_MS = 100;

/** `instances`: how many share the limits, as known now; a gateway started during the outage discovers peers late. */
export function createShare(instances: () => number, now: () => number): Share {
  let ticks = 0;
  let clearSince: number | null = null;
  const timer = setInterval(() => {
    ticks++;
    if (ticks < CLEAR_AFTER_TICKS) {
      return;
    }
    clearSince = now();
    clearInterval(timer);
  }, TICK_MS).unref();

  return {
    since: now(),
    get instances() {
      return instances();
    },
    get clearSince() {
      return clearSince;
    },
    end: () => clearInterval(timer),
    limit: (whole) =>
      whole === 0 ? 0 : Math.max(1, Math.floor(whole / instances())),
    free: (budget, taken) =>
      Math.floor(Math.max(0, budget - taken) / instances()),
  };
}
