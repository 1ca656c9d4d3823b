import { LEASE_MS, RATE_WINDOW_MS, type LimitedEntity } from "./limits.ts";
import type { Nanos } from "../pricing/money.ts";
import type { Account, Accounts } from "./accounts.ts";

/** What a call takes of an entity; the numbers are those of the Lua scripts. */
export const TAKES_BUDGET = 1;
export const TAKES_SLOT = 2;
export const TAKES_TOKENS = 4;

/** A call in flight: what it holds of whom. */
export interface HeldCall {
  readonly callId: string;
  estimate: Nanos;
  readonly tokens: number;
  expires: number;
  readonly accounts: Account[];
  /** For each account: a sum of TAKES_…. */
  readonly takes: number[];
  /** For each account: start of the minute that the tokens were taken from. */
  readonly rateStarts: number[];
}

/** Calls in flight in this process, the next to expire first. */
export interface HeldCalls {
  find(callId: string): HeldCall | undefined;
  holdsBudget(call: HeldCall, entity: string): boolean;
  /** Holds the estimate, and slots, of every entity; raises what a call in flight holds. */
  hold(
    callId: string,
    entities: readonly LimitedEntity[],
    estimate: Nanos,
    tokens: number,
    rateStarts: readonly number[] | null,
  ): void;
  /** Gives everything back and corrects the tokens; unknown calls are left alone. Answers the entities. */
  release(callId: string, tokens: number): readonly string[];
  renew(callId: string): void;
  /** Drops leases that nobody renewed. Answers how many. */
  reap(): number;
  all(): IterableIterator<HeldCall>;
}

export function createHeldCalls(
  accounts: Accounts,
  now: () => number,
): HeldCalls {
  const calls = new Map<string, HeldCall>();
  /** Expired, but neither settled nor long gone: when the process was stopped for a minute, their calls may still be there. */
  const lapsed = new Map<string, HeldCall>();

  function change(
    account: Account,
    takes: number,
    by: Nanos,
    holders: number,
  ): void {
    if ((takes & TAKES_BUDGET) === 0) {
      return;
    }
    account.leased += by;
    account.holders += holders;
  }

  function take(call: HeldCall, sign: 1 | -1): void {
    const at = now();
    for (const [i, account] of call.accounts.entries()) {
      const takes = call.takes[i] ?? 0;
      change(
        account,
        takes,
        sign * call.estimate,
        call.estimate > 0 ? sign : 0,
      );
      if ((takes & TAKES_SLOT) !== 0) {
        account.slots += sign;
      }
      account.usedAt = at;
    }
  }

  function raise(
    call: HeldCall,
    entities: readonly LimitedEntity[],
    estimate: Nanos,
  ): void {
    const before = call.estimate;
    call.estimate = Math.max(before, estimate);
    const more = call.estimate - before;
    for (const [i, account] of call.accounts.entries()) {
      change(
        account,
        call.takes[i] ?? 0,
        more,
        before === 0 && more > 0 ? 1 : 0,
      );
    }
    for (const { entity, budget } of entities) {
      if (budget === null) {
        continue;
      }
      const at = call.accounts.findIndex(
        (account) => account.entity === entity,
      );
      if (at >= 0 && ((call.takes[at] ?? 0) & TAKES_BUDGET) !== 0) {
        continue;
      }
      const account = call.accounts[at] ?? accounts.open(entity);
      if (at >= 0) {
        call.takes[at] = (call.takes[at] ?? 0) | TAKES_BUDGET;
      } else {
        call.accounts.push(account);
        call.takes.push(TAKES_BUDGET);
        call.rateStarts.push(0);
      }
      change(account, TAKES_BUDGET, call.estimate, call.estimate > 0 ? 1 : 0);
    }
  }

  function correctTokens(call: HeldCall, used: number): void {
    const at = now();
    for (const [i, account] of call.accounts.entries()) {
      const start = call.rateStarts[i] ?? 0;
      if (
        ((call.takes[i] ?? 0) & TAKES_TOKENS) === 0 ||
        account.rateStart !== start
      ) {
        continue;
      }
      if (at < start + RATE_WINDOW_MS) {
        account.tokens = Math.max(0, account.tokens + used - call.tokens);
      }
    }
  }

  function prolong(call: HeldCall): void {
    // Every lease lasts equally long: last into the map means last to expire.
    calls.delete(call.callId);
    call.expires = now() + LEASE_MS;
    calls.set(call.callId, call);
  }

  return {
    find: (callId) => calls.get(callId),
    holdsBudget: (call, entity) =>
      call.accounts.some(
        (account, i) =>
          account.entity === entity &&
          ((call.takes[i] ?? 0) & TAKES_BUDGET) !== 0,
      ),
    hold(callId, entities, estimate, tokens, rateStarts) {
      const standing = calls.get(callId);
      if (standing !== undefined) {
        raise(standing, entities, estimate);
        prolong(standing);
        return;
      }
      lapsed.delete(callId);
      const call: HeldCall = {
        callId,
        estimate,
        tokens,
        expires: 0,
        accounts: entities.map(({ entity }) => accounts.open(entity)),
        takes: entities.map(
          (limits) =>
            (limits.budget === null ? 0 : TAKES_BUDGET) |
            (limits.parallel === null ? 0 : TAKES_SLOT) |
            (limits.tokensPerMinute === null || rateStarts === null
              ? 0
              : TAKES_TOKENS),
        ),
        rateStarts: entities.map((_, i) => rateStarts?.[i] ?? 0),
      };
      take(call, 1);
      prolong(call);
    },
    release(callId, tokens) {
      lapsed.delete(callId);
      const call = calls.get(callId);
      if (call === undefined) {
        return [];
      }
      calls.delete(callId);
      take(call, -1);
      correctTokens(call, tokens);
      return call.accounts.map(({ entity }) => entity);
    },
    renew(callId) {
      const call = calls.get(callId) ?? lapsed.get(callId);
      if (call === undefined) {
        return;
      }
      if (lapsed.delete(callId)) {
        take(call, 1);
      }
      prolong(call);
    },
    reap() {
      const at = now();
      let reaped = 0;
      for (const call of calls.values()) {
        if (call.expires > at) {
          break;
        }
        calls.delete(call.callId);
        take(call, -1);
        lapsed.set(call.callId, call);
        reaped++;
      }
      for (const call of lapsed.values()) {
        if (call.expires + 10 * LEASE_MS > at) {
          break;
        }
        lapsed.delete(call.callId);
      }
      return reaped;
    },
    all: () => calls.values(),
  };
}
