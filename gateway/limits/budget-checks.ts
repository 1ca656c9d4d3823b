import type { Nanos } from "../pricing/money.ts";
import type { Account, WindowCounter } from "./accounts.ts";
import { allowanceLeft, isClear } from "./allowance.ts";
import type { LimitedEntity, Refusal } from "./limits.ts";
import type { Share } from "./share.ts";

/** One entity of a call, with its counters as they are before the call. */
export interface EntityState {
  readonly limits: LimitedEntity;
  readonly account: Account | undefined;
  readonly counter: WindowCounter | undefined;
  /** Worst case of the call. */
  readonly estimate: Nanos;
  /** The part of the entity's leases that the call itself already has. */
  readonly own: Nanos;
}

/**
 * Rejects the call when a budget is used up. Whole nanos are compared exactly: a tolerance in favour of the call would
 * admit a call on a budget of 0, and none is needed, because spend never counts twice and budgets are rounded up.
 */
export function overBudget(entities: readonly EntityState[]): Refusal | null {
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

/** Rejects the call when calls in flight have reserved the rest of a budget. */
export function withoutRoom(
  entities: readonly EntityState[],
  estimate: Nanos,
  strict: boolean,
  share: Share | null,
  now: () => number,
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
    const room = remainderOf(entity, budget, share, now);
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

/** The estimate, or what is left of the tightest budget where that is less. */
export function smallestRemainder(
  entities: readonly EntityState[],
  estimate: Nanos,
  share: Share | null,
  now: () => number,
): Nanos {
  return entities.reduce(
    (least, entity) =>
      entity.limits.budget === null
        ? least
        : Math.min(
            least,
            remainderOf(entity, entity.limits.budget, share, now),
          ),
    estimate,
  );
}

/** What is left after spend and calls in flight, within this instance's share. */
function remainderOf(
  entity: EntityState,
  budget: Nanos,
  share: Share | null,
  now: () => number,
): Nanos {
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

/** Whether the total must be read: it is unknown in this epoch, or what may be granted without a reliable total is used up. */
export function lacksTotal(
  entity: EntityState,
  epoch: number,
  share: Share | null,
): boolean {
  const { limits, counter } = entity;
  if (limits.budget === null) {
    return false;
  }
  if (counter?.epoch !== epoch) {
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

export function spendOf(counter: WindowCounter | undefined): Nanos {
  return counter === undefined ? 0 : counter.total + counter.pending;
}
