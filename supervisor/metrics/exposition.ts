/** One metric in Prometheus' text format (version 0.0.4). */
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

export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The text that a Prometheus server collects; metrics without samples are left out. */
export function exposeMetrics(metrics: readonly Metric[]): string {
  return metrics
    .filter(({ samples }) => samples.length > 0)
    .flatMap(({ name, help, type, samples }) => [
      `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
      `# TYPE ${name} ${type}`,
      ...samples.map(
        ({ labels, value }) => `${name}${labelText(labels)} ${value}`,
      ),
    ])
    .map((line) => `${line}\n`)
    .join("");
}

function labelText(labels: Sample["labels"]): string {
  const pairs = Object.entries(labels ?? {}).map(
    ([name, value]) => `${name}="${escape(value)}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escape(value: string): string {
  return value
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"')
    .replaceAll("\n", "\\n");
}
