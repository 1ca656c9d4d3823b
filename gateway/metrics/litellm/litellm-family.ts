import { counter, type Family } from "../family.ts";
import type { Label, Metric } from "./metric-labels.ts";
import { sums } from "./projection.ts";
import type { SeriesSet } from "./series.ts";

/** A metric under LiteLLM's name; its samples have the given labels only. */
export interface LitellmFamily {
  readonly metric: Metric;
  create(labels: readonly Label[]): Family;
}

/** A counter of records. Its samples have the suffix that LiteLLM's client library adds. */
export function total<Value>(
  metric: Metric,
  help: string,
  set: SeriesSet<Value>,
  value: (record: Value) => number,
): LitellmFamily {
  return {
    metric,
    create: (labels) =>
      counter(`${metric}_total`, help, () => sums(set, labels, value)),
  };
}
