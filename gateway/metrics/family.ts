import type { Counts } from "./call-metrics.ts";
import type { Histogram } from "./histogram.ts";
import { valuesIn } from "./labels.ts";

export type Labels = Readonly<Record<string, string>>;
export type Sample = readonly [labels: Labels, value: number];

/** `max` and `min`: all workers know the same, or one that differs decides. */
type Together = "sum" | "max" | "min";

/** One metric: what it means, and its samples at a scrape. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** How the values of several workers become one. */
  readonly together: Together;
  samples(): readonly Sample[];
}

/** A metric without labels. */
export function one(value: () => number): () => readonly Sample[] {
  return () => [[{}, value()]];
}

export function counter(
  name: string,
  help: string,
  samples: () => readonly Sample[],
): Family {
  return { name, help, type: "counter", together: "sum", samples };
}

export function gauge(
  name: string,
  help: string,
  samples: () => readonly Sample[],
  together: Together = "sum",
): Family {
  return { name, help, type: "gauge", together, samples };
}

export function histogram(
  name: string,
  help: string,
  all: () => readonly (readonly [Labels, Histogram])[],
): Family {
  return {
    name,
    help,
    type: "histogram",
    together: "sum",
    samples: () =>
      all().flatMap(([labels, seen]) => histogramSamples(name, labels, seen)),
  };
}

function histogramSamples(
  name: string,
  labels: Labels,
  { bounds, counts, sum }: Histogram,
): readonly Sample[] {
  let below = 0;
  const buckets = counts.map((count, at): Sample => {
    below += count;
    const le = at < bounds.length ? String(bounds[at]) : "+Inf";
    return [{ ...labels, le, __name: `${name}_bucket` }, below];
  });
  return [
    ...buckets,
    [{ ...labels, __name: `${name}_sum` }, sum],
    [{ ...labels, __name: `${name}_count` }, below],
  ];
}

/** Counts whose names are the joined values of these labels. */
export function counted(
  counts: Counts,
  ...labels: readonly string[]
): () => readonly Sample[] {
  return () =>
    [...counts].map(([name, count]) => {
      const values = valuesIn(name);
      return [
        Object.fromEntries(
          labels.map((label, at) => [label, values[at] ?? ""]),
        ),
        count,
      ];
    });
}
