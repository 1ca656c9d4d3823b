import type { Registry } from "prom-client";

/** One metric in Prometheus' text format. */
export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

/**
 * The text that a Prometheus server collects; metrics without samples are omitted. The library is loaded with the first
 * collection, because most installations have no Prometheus server.
 */
export async function exposeMetrics(
  metrics: readonly Metric[],
): Promise<Exposition> {
  const { Counter, Gauge, Registry } = await import("prom-client");
  const registry: Registry = new Registry();
  for (const { name, help, type, samples } of metrics) {
    if (samples.length === 0) {
      continue;
    }
    const labelNames = Object.keys(samples[0]?.labels ?? {});
    const options = { name, help, labelNames, registers: [registry] };
    const metric =
      type === "counter" ? new Counter(options) : new Gauge(options);
    for (const { labels = {}, value } of samples) {
      metric.inc(labels, value);
    }
  }
  return { contentType: registry.contentType, text: await registry.metrics() };
}
