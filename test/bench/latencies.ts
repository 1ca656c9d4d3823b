/** Milliseconds. */
export interface Latency {
  readonly p50: number;
  readonly p99: number;
  /** null below {@link MIN_P999_VALUES} values, which do not tell it from the maximum. */
  readonly p999: number | null;
  readonly max: number;
}

const MIN_P999_VALUES = 1_000;

/** null without values. */
export function latencyOf(values: readonly number[]): Latency | null {
  if (values.length === 0) {
    return null;
  }
  const sorted = Float64Array.from(values).sort();
  const at = (share: number) =>
    rounded(
      sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)],
    );
  return {
    p50: at(0.5),
    p99: at(0.99),
    p999: sorted.length < MIN_P999_VALUES ? null : at(0.999),
    max: rounded(sorted.at(-1)),
  };
}

function rounded(value: number | undefined): number {
  return Math.round((value ?? 0) * 1_000) / 1_000;
}
