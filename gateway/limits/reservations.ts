import {
  LEASE_MS,
  RATE_WINDOW_MS,
  type AdmitCall,
  type LimitedEntity,
} from "./limits.ts";
import type { Nanos } from "../pricing/money.ts";
import type { Account, Accounts } from "./accounts.ts";

/** Fields of a call's reservation at an entity; the Lua scripts use the same numbers. */
const TAKES_BUDGET = 1;
const TAKES_SLOT = 2;
const TAKES_TOKENS = 4;

/** A call in flight with its reservations. */
export interface ReservedCall {
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
export class Reservations {
  readonly #accounts: Accounts;
  readonly #now: () => number;
  readonly #calls = new Map<string, ReservedCall>();
  /** Expired, but neither settled nor long gone: when the process was stopped for a minute, their calls may still be there. */
  readonly #lapsed = new Map<string, ReservedCall>();

  constructor(accounts: Accounts, now: () => number) {
    this.#accounts = accounts;
    this.#now = now;
  }

  find(callId: string): ReservedCall | undefined {
    return this.#calls.get(callId);
  }

  holdsBudget(call: ReservedCall, entity: string): boolean {
    return call.accounts.some(
      (account, i) =>
        account.entity === entity &&
        ((call.takes[i] ?? 0) & TAKES_BUDGET) !== 0,
    );
  }

  /** Reserves the estimate and slots of every entity; changes the reservation of a call in flight. */
  hold(
    { callId, entities, estimate, mayLower }: AdmitCall,
    tokens: number,
    rateStarts: readonly number[] | null,
  ): void {
    const standing = this.#calls.get(callId);
    if (standing !== undefined) {
      const least = mayLower === true ? 0 : standing.estimate;
      this.#reserve(standing, entities, Math.max(least, estimate));
      this.#prolong(standing);
      return;
    }
    this.#lapsed.delete(callId);
    const call: ReservedCall = {
      callId,
      estimate,
      tokens,
      expires: 0,
      accounts: entities.map(({ entity }) => this.#accounts.open(entity)),
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
    this.#take(call, 1);
    this.#prolong(call);
  }

  /** Releases everything and corrects the tokens; unknown calls are ignored. Returns the entities. */
  release(callId: string, tokens: number): readonly string[] {
    this.#lapsed.delete(callId);
    const call = this.#calls.get(callId);
    if (call === undefined) {
      return [];
    }
    this.#calls.delete(callId);
    this.#take(call, -1);
    this.#correctTokens(call, tokens);
    return call.accounts.map(({ entity }) => entity);
  }

  renew(callId: string): void {
    const call = this.#calls.get(callId) ?? this.#lapsed.get(callId);
    if (call === undefined) {
      return;
    }
    if (this.#lapsed.delete(callId)) {
      this.#take(call, 1);
    }
    this.#prolong(call);
  }

  /** Drops leases that were not renewed. Returns how many. */
  reap(): number {
    const at = this.#now();
    let reaped = 0;
    for (const call of this.#calls.values()) {
      if (call.expires > at) {
        break;
      }
      this.#calls.delete(call.callId);
      this.#take(call, -1);
      this.#lapsed.set(call.callId, call);
      reaped++;
    }
    for (const call of this.#lapsed.values()) {
      if (call.expires + 10 * LEASE_MS > at) {
        break;
      }
      this.#lapsed.delete(call.callId);
    }
    return reaped;
  }

  all(): IterableIterator<ReservedCall> {
    return this.#calls.values();
  }

  #change(account: Account, takes: number, by: Nanos, holders: number): void {
    if ((takes & TAKES_BUDGET) === 0) {
      return;
    }
    account.leased += by;
    account.holders += holders;
  }

  #take(call: ReservedCall, sign: 1 | -1): void {
    const at = this.#now();
    for (const [i, account] of call.accounts.entries()) {
      const takes = call.takes[i] ?? 0;
      this.#change(
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

  #reserve(
    call: ReservedCall,
    entities: readonly LimitedEntity[],
    estimate: Nanos,
  ): void {
    const before = call.estimate;
    call.estimate = estimate;
    const more = estimate - before;
    const holders = Math.sign(estimate) - Math.sign(before);
    for (const [i, account] of call.accounts.entries()) {
      this.#change(account, call.takes[i] ?? 0, more, holders);
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
      const account = call.accounts[at] ?? this.#accounts.open(entity);
      if (at >= 0) {
        call.takes[at] = (call.takes[at] ?? 0) | TAKES_BUDGET;
      } else {
        call.accounts.push(account);
        call.takes.push(TAKES_BUDGET);
        call.rateStarts.push(0);
      }
      this.#change(
        account,
        TAKES_BUDGET,
        call.estimate,
        call.estimate > 0 ? 1 : 0,
      );
    }
  }

  #correctTokens(call: ReservedCall, used: number): void {
    const at = this.#now();
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

  #prolong(call: ReservedCall): void {
    // Every lease lasts equally long: last into the map means last to expire.
    this.#calls.delete(call.callId);
    call.expires = this.#now() + LEASE_MS;
    this.#calls.set(call.callId, call);
  }
}
