/** Steps that the conditions of a selector may take on one document: about a second. */
const MAX_STEPS = 50_000_000;

/** Bounds the work on one document: a selector can ask for any number of comparisons. */
export interface Budget {
  readonly reset: () => void;
  /** False when the work would exceed what is left; it is then not to be done. */
  readonly spend: (steps: number) => boolean;
  /** Whether anything was left out: what the conditions then say does not count. */
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
