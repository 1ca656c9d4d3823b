/** Steps that the conditions of a selector may take on one document: about a second. */
const MAX_STEPS = 50_000_000;

/** Bounds the work on one document: a selector can contain any number of comparisons, each with any number of values. */
export interface Budget {
  readonly reset: () => void;
  /** False when the work would exceed the budget; it must then be skipped. */
  readonly spend: (steps: number) => boolean;
  /** Whether any work was skipped: the result of the conditions is then invalid. */
  readonly isSpent: () => boolean;
}

export function openBudget(): Budget {
  let left = MAX_STEPS;
  return {
    reset: () => {
      left = MAX_STEPS;
    },
    spend: (steps) => {
      left -= steps;
      return left >= 0;
    },
    isSpent: () => left < 0,
  };
}
