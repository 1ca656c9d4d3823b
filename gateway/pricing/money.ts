/** Nano-dollars: an integer count of 1e-9 dollars, exact up to 9,007,199 dollars in a double (and in Lua). */
export type Nanos = number;

const NANOS_PER_DOLLAR = 1_000_000_000;

/** A cost in dollars as nano-dollars, to the nearest; the ledger keeps the unrounded dollars. */
export function nanosFromCost(dollars: number): Nanos {
  return Math.round(dollars * NANOS_PER_DOLLAR);
}

/**
 * Dollars that one call is expected to cost at most. Sums of hundreds of such estimates stay exact: above 2^53 they would
 * not, and reservations of other calls would be lost in the rounding.
 */
const MAX_CALL_DOLLARS = 10_000;

/** The estimate of a call in dollars as nano-dollars; an absurd `max_tokens` may make it infinite, or, without a price, NaN. */
export function nanosFromEstimate(dollars: number): Nanos {
  return nanosFromCost(dollars < MAX_CALL_DOLLARS ? dollars : MAX_CALL_DOLLARS);
}

/** The exact digits of a double: 0.000123 × 1e9 is 123000.00000000001, and must not round up to 123001. */
const SURE_DIGITS = 15;

/** A budget in dollars as nano-dollars; a positive one rounds up, so that 5e-10 still admits one call. */
export function nanosFromBudget(dollars: number): Nanos {
  const known = budgets.get(dollars);
  if (known !== undefined) {
    return known;
  }
  const nanos = Math.ceil(
    Number((dollars * NANOS_PER_DOLLAR).toPrecision(SURE_DIGITS)),
  );
  if (budgets.size >= MAX_BUDGETS) {
    budgets.clear();
  }
  budgets.set(dollars, nanos);
  return nanos;
}

/** All calls use the same few. */
const budgets = new Map<number, Nanos>();
const MAX_BUDGETS = 10_000;

export function dollarsFromNanos(nanos: Nanos): number {
  return nanos / NANOS_PER_DOLLAR;
}
