import { MINUTE_MS } from "../../core/duration.ts";
import type { Nanos } from "../pricing/money.ts";
import type { InstanceState } from "./instances.ts";

/**
 * The limits of every payer of a call, checked and taken in one atomic step.
 *
 * A budget counter has three parts, each assigned and never incremented: the ledger's total (with its version), one
 * pending sum for each instance (settled, not yet in the ledger), and the leases of calls in flight. Spend is total + all
 * pending. `budget_exceeded` compares spend alone, so no call is rejected while spend is below the budget; leases only
 * ever make a call wait (`budget_held`).
 *
 * A lease is the estimate, or what remains of the tightest budget when that is less. Against later calls the *whole*
 * estimate is held, in every budget of the call: were only the clipped lease reserved, money released by another call
 * would admit a second call that may cross the budget, and a team would overshoot by the amounts clipped by its members'
 * small budgets. So everything admitted fits before the last call of it, and a budget is overshot by at most that one.
 *
 * Tokens/min work alike: a call is admitted while something remains of the minute, and takes its whole estimate.
 */
export interface LimitStore {
  readonly kind: "memory" | "redis";
  /**
   * Takes parallel slots, rates and budget leases of all entities, or nothing at all.
   * For a call that is in flight already (a more expensive fallback) it only raises the lease to the new estimate, or lowers it
   * if it may, or changes nothing; it takes no second slot, request or tokens.
   */
  admit(call: AdmitCall): Promise<Admission>;
  /** What is left of the minutes and slots of entities now; takes nothing. While Redis is away: of this instance's share. */
  look(entities: readonly LimitedEntity[]): Promise<readonly LimitState[]>;
  /**
   * Releases the lease, corrects the token count, assigns this instance's pending sums. Counts once, even for an expired lease.
   * Resolves when it is on its way to Redis: what this instance sends later arrives after it.
   */
  settle(call: Settlement): Promise<void>;
  /** Prolongs this instance's leases in one batch; a lease that expired meanwhile is taken again, as its call is in flight. */
  renew(callIds: readonly string[]): Promise<void>;
  /**
   * Assigns ledger totals together with this instance's pending sums: after a drain's commit, when `totals_missing`
   * requested a total, and when an admin changed a spend. An older version of a total never replaces a newer one;
   * the pending sum is assigned in any case. The caller makes sure that a total does not hold spend that its pending
   * sum holds too (totals are not read between a drain's commit and its assign).
   * "last known": the ledger cannot be read, and these are the totals of {@link lastKnown}; calls continue with the newest
   * total that any instance has reported.
   */
  assign(
    counters: readonly CounterParts[],
    source?: "ledger" | "last known",
  ): Promise<void>;
  /** The ledger returned to an earlier state: every instance reads totals again before it uses them. */
  forgetTotals(): Promise<void>;
  /** Keeps totals on this instance for a time in which the ledger cannot be read. */
  remember(counters: readonly CounterParts[]): void;
  /** The total that was last assigned or remembered on this instance; null: none was. */
  lastKnown(entity: string, window: string): LastKnown | null;
  /** Resolves when a settlement on this instance may have released budget of the entity, or after `ms`. */
  released(entity: string, ms: number): Promise<void>;
  close(): Promise<void>;
}

/** One payer of a call with what limits it now. Entities with neither budget nor limit are left out by the caller. */
export interface LimitedEntity {
  /** `key:<hash>`, `user:<id>`, `team:<id>`, `member:<team>/<user>`, `organization:<id>`, `end_user:<id>`, `tag:<name>`, `key_model:<hash>/<alias>`, `proxy:` */
  readonly entity: string;
  /** null: no budget. 0 rejects the first call. */
  readonly budget: Nanos | null;
  /** The budget in dollars, as it was set; for messages. */
  readonly maxBudget?: number | null;
  /** Name of the budget's window, `all` without `budget_duration` (ledger/budget-windows.ts). Part of the counter's name. */
  readonly window: string;
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly parallel: number | null;
}

export interface AdmitCall {
  readonly callId: string;
  /** In the order of accounting.md §3: the first that rejects is named. Each entity once. */
  readonly entities: readonly LimitedEntity[];
  /** Worst case that the call is expected to cost. 0 needs no lease. */
  readonly estimate: Nanos;
  /** Tokens taken from tokens/min until settled. */
  readonly tokens: number;
  /** `budget_mode: strict`: the lease must be the whole estimate. */
  readonly strict: boolean;
  /** The lease of a call in flight becomes the estimate, also where that is less; absent: it is only raised. */
  readonly mayLower?: true;
}

export type Admission =
  | {
      readonly kind: "admitted";
      readonly lease: Nanos;
      readonly rates: readonly RateState[];
      /** Of each budget, before this call. */
      readonly spends: readonly {
        readonly entity: string;
        readonly spend: Nanos;
      }[];
    }
  | Refusal
  /** Totals unknown to the store: the caller reads them from the ledger, calls `assign`, and retries. */
  | {
      readonly kind: "totals_missing";
      readonly counters: readonly {
        readonly entity: string;
        readonly window: string;
      }[];
    }
  /** Neither Redis nor a share in process can answer (`fail_closed`). */
  | { readonly kind: "unavailable" };

export type Refusal =
  | {
      readonly kind: "budget_exceeded";
      readonly entity: string;
      readonly spend: Nanos;
      readonly budget: Nanos;
    }
  /**
   * `inFlight`: calls that have reserved the rest. 0 when it is reserved otherwise: by spend that may be on its way into
   * the ledger, or, while Redis is away, because this instance's share of the budget is used up.
   */
  | {
      readonly kind: "budget_held";
      readonly entity: string;
      readonly inFlight: number;
    }
  /**
   * strict only: spend is below the budget, but the worst case of this call exceeds what is neither reserved nor about to
   * be released.
   */
  | {
      readonly kind: "estimate_too_large";
      readonly entity: string;
      readonly estimate: Nanos;
      readonly remaining: Nanos;
    }
  | {
      readonly kind: "rate_limited";
      readonly entity: string;
      readonly limit: "requests" | "tokens" | "parallel";
      readonly allowed: number;
      /** Until the minute's window ends; 1,000 for parallel slots. */
      readonly resetInMs: number;
    };

/** What an admitted call left of one entity's minute, for the `x-ratelimit-*` headers. null: not limited. */
export interface RateState {
  readonly entity: string;
  readonly requests: {
    readonly limit: number;
    readonly remaining: number;
    readonly resetInMs: number;
  } | null;
  readonly tokens: {
    readonly limit: number;
    readonly remaining: number;
    readonly resetInMs: number;
  } | null;
}

/** {@link RateState} with the calls in flight. `resetInMs` is 0 where nothing was used in the last minute. */
export interface LimitState extends RateState {
  readonly parallel: {
    readonly limit: number;
    readonly remaining: number;
  } | null;
}

export interface Settlement {
  readonly callId: string;
  /** Tokens really used; replaces the estimate in the minute it was taken from. */
  readonly tokens: number;
  /** This instance's pending sums after the call, of every entity with a budget. */
  readonly pending: readonly {
    readonly entity: string;
    readonly window: string;
    readonly pending: Nanos;
  }[];
}

export interface CounterParts {
  readonly entity: string;
  readonly window: string;
  readonly total: Nanos;
  /** Grows with every change of the total in the ledger; 0 when the ledger has no row yet. */
  readonly version: number;
  readonly pending: Nanos;
}

export type LastKnown = Pick<CounterParts, "total" | "version">;

export const LEASE_MS = MINUTE_MS;
export const RENEW_EVERY_MS = 20_000;
export const RATE_WINDOW_MS = MINUTE_MS;
export type LimitsMode = "memory" | "redis" | "redis_away";
export interface LimitCounts {
  /** Outages of Redis. */
  readonly outages: number;
  /** Times that this instance set its parts in Redis: at its start, after a flush, after an outage. */
  readonly arrivals: number;
  /** Instances alive, including this one, when Redis last answered. */
  readonly instances: number;
  /** Leases that expired without renewal. */
  readonly expiredLeases: number;
  /** Calls checked in process while Redis was away. */
  readonly servedAway: number;
  /** Calls rejected because Redis was away (`fail_closed`). */
  readonly rejectedAway: number;
}
export interface Limits extends LimitStore {
  mode(): LimitsMode;
  counts(): LimitCounts;
  /**
   * Drops the pending spend of an instance that will never come back (its journal is lost). Until then that spend counts,
   * in windows that never end permanently: it was spent, and the instance writes it to the ledger when it returns.
   * Throws while Redis is unavailable, and for an instance that is unknown or running.
   */
  forgetInstance(instance: string): Promise<void>;
  /** The gateways registered in Redis; none without Redis. Throws while it is unavailable. */
  instances(): Promise<readonly InstanceState[]>;
  /**
   * The journal of previous processes of this instance is in the ledger: whatever is still pending in Redis from
   * them is dropped, now or when Redis is available.
   */
  previousProcessDrained(): void;
}
