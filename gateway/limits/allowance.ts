import { LEASE_MS } from "./limits.ts";
import type { Nanos } from "../pricing/money.ts";
import {
  GUESS,
  LAST_KNOWN,
  LEDGER,
  type Account,
  type Allowance,
  type Basis,
  type WindowCounter,
} from "./accounts.ts";
import type { Share } from "./share.ts";

/** Calls of a share that are kept back while the others' spend is a guess; without the ledger, at most half of the share. */
const FEW_CALLS = 20;
/** By then, calls that others had in flight have ended and are in the ledger. */
const SNAPSHOT_VALID_MS = 10 * LEASE_MS;

/** One budget of a call, and its state on this instance. */
interface Budgeted {
  readonly account: Account | undefined;
  readonly counter: WindowCounter;
  readonly budget: Nanos;
  /** Leases of this instance, without the call itself. */
  readonly leased: Nanos;
  readonly estimate: Nanos;
}

/** What is left of this instance's share of a budget. */
export function allowanceLeft(of: Budgeted, share: Share, now: number): Nanos {
  const allowance = allowanceOf(of, share, now);
  if (allowance.budget !== of.budget) {
    allowance.granted += Math.floor(
      (of.budget - allowance.budget) / share.instances,
    );
    allowance.budget = of.budget;
  }
  return allowance.granted - allowance.settled - of.leased;
}

/**
 * Fixed at the first call, and again once the basis improves. Spend of others since then is treated as earlier spend,
 * which errs in favour of the budget.
 */
function allowanceOf(of: Budgeted, share: Share, now: number): Allowance {
  const { counter, budget } = of;
  const known = counter.allowance;
  const basis = basisOf(counter, share);
  if (known !== null && known.basis >= basis) {
    return known;
  }
  const settled = known?.settled ?? 0;
  const held = known?.held ?? of.leased;
  const spend = counter.total + counter.pending - settled;
  const taken = held + Math.max(spend, snapshotSpend(of, share, now));
  const free = share.free(budget, taken);
  const granted = held + free - keptBack(basis, free, of.estimate);
  counter.allowance = { granted, settled, budget, held, basis };
  return counter.allowance;
}

function basisOf(counter: WindowCounter, share: Share): Basis {
  if (!isClear(counter, share)) {
    return GUESS;
  }
  return counter.stale && share.instances > 1 ? LAST_KNOWN : LEDGER;
}

/** The total was read after it included the calls that others had in flight when Redis became unavailable. */
export function isClear(counter: WindowCounter, share: Share): boolean {
  if (share.instances === 1) {
    return true;
  }
  return share.clearSince !== null && counter.assignedAt >= share.clearSince;
}

function keptBack(basis: Basis, free: Nanos, estimate: Nanos): Nanos {
  if (basis === LEDGER) {
    return 0;
  }
  const calls = FEW_CALLS * estimate;
  return Math.min(calls, basis === GUESS ? free : Math.floor(free / 2));
}

/** All instances' spend and the other instances' leases, as last received from Redis. */
function snapshotSpend(
  { account, counter }: Budgeted,
  share: Share,
  now: number,
): Nanos {
  const snapshot = account?.snapshot ?? null;
  if (snapshot === null || share.instances === 1) {
    return 0;
  }
  if (!counter.stale && now - share.since > SNAPSHOT_VALID_MS) {
    return 0;
  }
  const window = snapshot.windows.get(counter.window);
  return snapshot.leasedByOthers + (window?.spend ?? 0);
}
