import {
  RATE_WINDOW_MS,
  type LimitedEntity,
  type LimitState,
  type RateState,
  type Refusal,
} from "./limits.ts";
import type { Account, Accounts } from "./accounts.ts";
import type { Share } from "./share.ts";

/** Requests and tokens in the minute of each account, and its parallel slots. */
export class Rates {
  readonly #accounts: Accounts;
  readonly #now: () => number;

  constructor(accounts: Accounts, now: () => number) {
    this.#accounts = accounts;
    this.#now = now;
  }

  refusal(
    entities: readonly LimitedEntity[],
    share: Share | null,
  ): Refusal | null {
    const at = this.#now();
    for (const limits of entities) {
      if (!isRated(limits) && limits.parallel === null) {
        continue;
      }
      const refusal = this.#refusalOf(limits, share, at);
      if (refusal !== null) {
        return refusal;
      }
    }
    return null;
  }

  /** Counts a call. Answers the start of each entity's minute, 0 where no rate is limited. */
  take(entities: readonly LimitedEntity[], tokens: number): readonly number[] {
    const at = this.#now();
    return entities.map((limits) => {
      if (!isRated(limits)) {
        return 0;
      }
      const account = this.#accounts.open(limits.entity);
      const minute = minuteOf(account, at);
      account.rateStart = minute.start;
      account.requests = minute.requests + 1;
      account.tokens = minute.tokens + tokens;
      return minute.start;
    });
  }

  states(
    entities: readonly LimitedEntity[],
    share: Share | null,
  ): readonly RateState[] {
    const at = this.#now();
    return entities
      .filter(isRated)
      .map((limits) => this.#stateOf(limits, share, at));
  }

  look(
    entities: readonly LimitedEntity[],
    share: Share | null,
  ): readonly LimitState[] {
    const at = this.#now();
    return entities.map((limits) => {
      const account = this.#accounts.find(limits.entity);
      const { start, requests, tokens } = minuteOf(account, at);
      return limitState(limits, share, {
        requests,
        tokens,
        // A minute that begins with the next call has nothing to reset.
        resetInMs: requests === 0 ? 0 : start + RATE_WINDOW_MS - at,
        slots: account?.slots ?? 0,
      });
    });
  }

  #refusalOf(
    limits: LimitedEntity,
    share: Share | null,
    at: number,
  ): Refusal | null {
    const account = this.#accounts.find(limits.entity);
    const rate = minuteOf(account, at);
    const left = rate.start + RATE_WINDOW_MS - at;
    const slots = account?.slots ?? 0;
    const checks = [
      ["requests", limits.requestsPerMinute, rate.requests, left],
      ["tokens", limits.tokensPerMinute, rate.tokens, left],
      ["parallel", limits.parallel, slots, 1_000],
    ] as const;
    for (const [limit, whole, used, resetInMs] of checks) {
      const allowed = shared(whole, share);
      if (allowed !== null && used >= allowed) {
        return {
          kind: "rate_limited",
          entity: limits.entity,
          limit,
          allowed,
          resetInMs,
        };
      }
    }
    return null;
  }

  #stateOf(limits: LimitedEntity, share: Share | null, at: number): RateState {
    const { start, requests, tokens } = minuteOf(
      this.#accounts.find(limits.entity),
      at,
    );
    const resetInMs = start + RATE_WINDOW_MS - at;
    const state = (whole: number | null, used: number) => {
      const limit = shared(whole, share);
      return limit === null
        ? null
        : { limit, remaining: Math.max(0, limit - used), resetInMs };
    };
    return {
      entity: limits.entity,
      requests: state(limits.requestsPerMinute, requests),
      tokens: state(limits.tokensPerMinute, tokens),
    };
  }
}

/** The used part of an entity's limits. */
interface Used {
  readonly requests: number;
  readonly tokens: number;
  readonly resetInMs: number;
  readonly slots: number;
}

export function limitState(
  limits: LimitedEntity,
  share: Share | null,
  { requests, tokens, resetInMs, slots }: Used,
): LimitState {
  const left = (whole: number | null, used: number) => {
    const limit = shared(whole, share);
    return limit === null
      ? null
      : { limit, remaining: Math.max(0, limit - used) };
  };
  const minute = (state: ReturnType<typeof left>) =>
    state === null ? null : { ...state, resetInMs };
  return {
    entity: limits.entity,
    requests: minute(left(limits.requestsPerMinute, requests)),
    tokens: minute(left(limits.tokensPerMinute, tokens)),
    parallel: left(limits.parallel, slots),
  };
}

/** The minute that is running, or a new one. */
function minuteOf(
  account: Account | undefined,
  at: number,
): { start: number; requests: number; tokens: number } {
  if (
    account === undefined ||
    at >= account.rateStart + RATE_WINDOW_MS ||
    at < account.rateStart
  ) {
    return { start: at, requests: 0, tokens: 0 };
  }
  const { rateStart: start, requests, tokens } = account;
  return { start, requests, tokens };
}

function isRated(limits: LimitedEntity): boolean {
  return limits.requestsPerMinute !== null || limits.tokensPerMinute !== null;
}

function shared(limit: number | null, share: Share | null): number | null {
  return limit === null || share === null ? limit : share.limit(limit);
}
