import { z } from "zod";
import { unknownName } from "../../core/config/problem.ts";
import { problemAt, type Reading } from "../../core/config/reading.ts";
import { LABELS, METRIC_LABELS } from "../metrics/litellm/metric-labels.ts";
import type { MetricSelection } from "../metrics/litellm/selection.ts";
import { hasCallback, type CallbacksConfig } from "./callbacks.ts";

/** LiteLLM's metrics at `/metrics`, as `proxy_settings` configures them. */
export interface LitellmMetricsConfig extends MetricSelection {
  /** Whether the label `end_user` has values. */
  readonly endUsers: boolean;
}

/** Of `proxy_settings`. */
interface Settings {
  readonly litellm_metrics?: boolean | undefined;
  readonly prometheus_metrics_config?: unknown;
  readonly prometheus_exclude_metrics?: readonly string[] | undefined;
  readonly prometheus_exclude_labels?: readonly string[] | undefined;
  readonly enable_end_user_cost_tracking_prometheus_only?: boolean | undefined;
}

const SECTION = "proxy_settings";

const metricsConfig = z.array(
  z.object({
    group: z.string().optional(),
    metrics: z.array(z.string()),
    include_labels: z.array(z.string()).nullish(),
  }),
);

/** null: off. `litellm_metrics` decides, and without it the callback `prometheus`. */
export function readLitellmMetrics(
  reading: Reading,
  proxy: Settings,
  callbacks: CallbacksConfig,
): LitellmMetricsConfig | null {
  const selection = {
    endUsers: proxy.enable_end_user_cost_tracking_prometheus_only ?? false,
    included: readIncluded(reading, proxy.prometheus_metrics_config),
    excludedMetrics: proxy.prometheus_exclude_metrics ?? [],
    excludedLabels: proxy.prometheus_exclude_labels ?? [],
  };
  warnAboutNames(reading, selection);
  return (proxy.litellm_metrics ?? hasCallback(callbacks, "prometheus"))
    ? selection
    : null;
}

function readIncluded(
  reading: Reading,
  written: unknown,
): MetricSelection["included"] {
  if (written == null) {
    return null;
  }
  const parsed = metricsConfig.safeParse(written);
  if (!parsed.success) {
    reading.problems.push(
      problemAt(
        reading,
        [SECTION, "prometheus_metrics_config"],
        "must be a list of groups such as - { group: spend, metrics: [litellm_spend_metric], include_labels: [team] }",
      ),
    );
    return null;
  }
  return Object.fromEntries(
    parsed.data.flatMap(({ metrics, include_labels: labels }) =>
      metrics.map((metric) => [metric, labels ?? null]),
    ),
  );
}

/** LiteLLM has metrics and labels that have no meaning here: their names are no mistake that could hide others. */
function warnAboutNames(
  reading: Reading,
  { included, excludedMetrics, excludedLabels }: MetricSelection,
): void {
  const metrics = Object.keys(METRIC_LABELS);
  const groups = "prometheus_metrics_config";
  const named = Object.entries(included ?? {});
  const check = (
    noun: string,
    setting: string,
    names: readonly string[],
    known: readonly string[],
  ) => {
    for (const name of new Set(names)) {
      if (!known.includes(name)) {
        reading.warnings.push(
          problemAt(
            reading,
            [SECTION, setting],
            `${unknownName(noun, name, known)}; it has no effect`,
          ),
        );
      }
    }
  };
  check("metric", groups, Object.keys(included ?? {}), metrics);
  check(
    "label",
    groups,
    named.flatMap(([, labels]) => labels ?? []),
    LABELS,
  );
  check("metric", "prometheus_exclude_metrics", excludedMetrics, metrics);
  check("label", "prometheus_exclude_labels", excludedLabels, LABELS);
}
