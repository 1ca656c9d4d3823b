import type { Nanos } from "../money.ts";
import { LEASE_MS } from "../limits.ts";

/** What this instance may do alone while Redis is away: 1/instances of what is left. */
export interface Share {
  readonly instances: number;
  /** A share of requests, tokens or slots: at least 1, unless the limit itself is 0. */
  limit(whole: number): number;
  /**
   * What is left of a budget for one instance, beside its own leases in flight.
   *
   * `committed` is what this instance knows to be spent or held: the ledger's total, its own pending sum and its own
   * leases. What Redis last said of the counter is a second lower bound, which knows the other instances' leases; the
   * greater of the two is taken off. So shares add up to the budget as far as anyone can know.
   */
  free(entity: string, window: string, budget: Nanos, committed: Nanos): Nanos;
  /**
   * Ms since the epoch: a total read from then on holds what others had in flight, unseen from here, when Redis went away.
   * null: not yet.
   */
  readonly clearSince: number | null;
  end(): void;
}

/** Spend and leases of all instances, as Redis last said them to this one. */
export interface Sighting {
  readonly window: string;
  readonly spend: Nanos;
  readonly leased: Nanos;
  readonly at: number;
}

/**
 * A second for others to bring what they had in flight into the ledger. Counted in turns of the event loop rather than by
 * the clock: on a machine that stood still, nobody brought anything anywhere.
 */
const CLEAR_AFTER_TICKS = 10;
const TICK_MS = 100;

/** `instances`: how many share the limits, as known now; a gateway that starts in the outage learns it late. */
export function createShare(
  instances: () => number,
  sighted: ReadonlyMap<string, Sighting>,
  now: () => number,
): Share {
  /** A sighting older than a lease says nothing more: its calls have ended, and the ledger's total holds them. */
  function lastSaid(entity: string, window: string): Nanos {
    const sighting = sighted.get(entity);
    if (sighting === undefined || now() - sighting.at > LEASE_MS) return 0;
    return sighting.leased + (sighting.window === window ? sighting.spend : 0);
  }

  let ticks = 0;
  let clearSince: number | null = null;
  const timer = setInterval(() => {
    ticks++;
    if (ticks < CLEAR_AFTER_TICKS) return;
    clearSince = now();
    clearInterval(timer);
  }, TICK_MS).unref();

  return {
    get instances() {
      return instances();
    },
    get clearSince() {
      return clearSince;
    },
    end: () => clearInterval(timer),
    limit: (whole) =>
      whole === 0 ? 0 : Math.max(1, Math.floor(whole / instances())),
    free: (entity, window, budget, committed) =>
      Math.floor(
        Math.max(0, budget - Math.max(committed, lastSaid(entity, window))) /
          instances(),
      ),
  };
}
