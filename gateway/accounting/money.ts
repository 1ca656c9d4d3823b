/** Nano-dollars: an integer count of 1e-9 dollars, exact up to 9,007,199 dollars in a double (and in Lua). */
export type Nanos = number;

export const NANOS_PER_DOLLAR = 1_000_000_000;

/** A cost in dollars as nano-dollars, to the nearest; the ledger keeps the unrounded dollars. */
export function nanosFromCost(dollars: number): Nanos {
  return Math.round(dollars * NANOS_PER_DOLLAR);
}

/** A budget in dollars as nano-dollars; a positive one rounds up, so that 5e-10 still admits one call. */
export function nanosFromBudget(dollars: number): Nanos {
  return Math.ceil(dollars * NANOS_PER_DOLLAR);
}

export function dollarsFromNanos(nanos: Nanos): number {
  return nanos / NANOS_PER_DOLLAR;
}
