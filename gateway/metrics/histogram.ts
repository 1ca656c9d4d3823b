/** Counts of observations by upper bound, and their sum. */
export interface Histogram {
  observe(value: number): void;
  readonly bounds: readonly number[];
  /** As many as there are bounds, and one for what is above them all; not cumulated. */
  readonly counts: readonly number[];
  readonly sum: number;
}

export function createHistogram(bounds: readonly number[]): Histogram {
  const counts = new Array<number>(bounds.length + 1).fill(0);
  let sum = 0;
  return {
    bounds,
    counts,
    get sum() {
      return sum;
    },
    observe(value) {
      let at = 0;
      while (at < bounds.length && value > (bounds[at] ?? 0)) {
        at++;
      }
      counts[at] = (counts[at] ?? 0) + 1;
      sum += value;
    },
  };
}
