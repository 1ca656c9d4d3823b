import { METRIC_LABELS, type Label, type Metric } from "./metric-labels.ts";

/** Which of LiteLLM's metrics are shown, with which labels. */
export interface MetricSelection {
  /** The metrics to show with the labels to keep (null: all); null: every metric. */
  readonly included: Readonly<Record<string, readonly string[] | null>> | null;
  readonly excludedMetrics: readonly string[];
  readonly excludedLabels: readonly string[];
}

/** The labels of a metric; null: it is not shown. */
export function labelsOf(
  metric: Metric,
  { included, excludedMetrics, excludedLabels }: MetricSelection,
): readonly Label[] | null {
  const kept = included === null ? null : included[metric];
  if (kept === undefined || excludedMetrics.includes(metric)) {
    return null;
  }
  const labels: readonly Label[] = METRIC_LABELS[metric];
  return labels.filter(
    (label) =>
      (kept?.includes(label) ?? true) && !excludedLabels.includes(label),
  );
}
