import type { Labels, Sample } from "../family.ts";
import { createHistogram, type Histogram } from "../histogram.ts";
import { LATENCY_BOUNDS } from "./call-tally.ts";
import type { Label } from "./metric-labels.ts";
import { NONE, type Series, type SeriesSet } from "./series.ts";

type Values = Readonly<Partial<Record<Label, string>>>;

/** The values of these labels. */
export function project(values: Values, labels: readonly Label[]): Labels {
  const projected: Record<string, string> = {};
  for (const label of labels) {
    projected[label] = values[label] ?? NONE;
  }
  return projected;
}

interface Group<Value> {
  readonly labels: Labels;
  readonly values: Value[];
}

/** Records that have the same values of these labels, together. */
function grouped<Value>(
  set: SeriesSet<Value>,
  labels: readonly Label[],
): Iterable<Group<Value>> {
  const groups = new Map<string, Group<Value>>();
  for (const series of set.all()) {
    const name = nameOf(series, labels);
    const known = groups.get(name);
    if (known === undefined) {
      groups.set(name, {
        labels: project(series.labels, labels),
        values: [series.value],
      });
    } else {
      known.values.push(series.value);
    }
  }
  return groups.values();
}

function nameOf(
  { labels: values }: Series<unknown>,
  labels: readonly Label[],
): string {
  let name = "";
  for (const label of labels) {
    name += `${(values as Values)[label] ?? NONE}\0`;
  }
  return name;
}

/** Sums by these labels; those that are 0 are left out. */
export function sums<Value>(
  set: SeriesSet<Value>,
  labels: readonly Label[],
  value: (record: Value) => number,
): readonly Sample[] {
  const samples: Sample[] = [];
  for (const { labels: own, values } of grouped(set, labels)) {
    const sum = values.reduce((total, record) => total + value(record), 0);
    if (sum > 0) {
      samples.push([own, sum]);
    }
  }
  return samples;
}

/** The least value by these labels; records without one are left out. */
export function least<Value>(
  set: SeriesSet<Value>,
  labels: readonly Label[],
  value: (record: Value) => number | null,
): readonly Sample[] {
  const samples: Sample[] = [];
  for (const { labels: own, values } of grouped(set, labels)) {
    const known = values.map(value).filter((one) => one !== null);
    if (known.length > 0) {
      samples.push([own, Math.min(...known)]);
    }
  }
  return samples;
}

/** Histograms by these labels. */
export function histograms<Value>(
  set: SeriesSet<Value>,
  labels: readonly Label[],
  value: (record: Value) => Histogram | null,
): readonly (readonly [Labels, Histogram])[] {
  const found: (readonly [Labels, Histogram])[] = [];
  for (const { labels: own, values } of grouped(set, labels)) {
    const known = values.map(value).filter((one) => one !== null);
    const [first] = known;
    if (first !== undefined) {
      found.push([own, known.length === 1 ? first : merged(known)]);
    }
  }
  return found;
}

/** All of them have LiteLLM's bounds. */
function merged(histograms: readonly Histogram[]): Histogram {
  return {
    ...createHistogram(LATENCY_BOUNDS),
    counts: LATENCY_BOUNDS.concat(Infinity).map((_, at) =>
      histograms.reduce((sum, { counts }) => sum + (counts[at] ?? 0), 0),
    ),
    sum: histograms.reduce((total, { sum }) => total + sum, 0),
  };
}

/** Of samples with equal labels one, with the value that `pick` chooses: Prometheus rejects a sample that comes twice. */
export function distinct(
  samples: readonly Sample[],
  pick: (one: number, other: number) => number,
): readonly Sample[] {
  const found = new Map<string, Sample>();
  for (const [labels, value] of samples) {
    const name = Object.values(labels).join("\0");
    const known = found.get(name);
    found.set(name, [
      labels,
      known === undefined ? value : pick(known[1], value),
    ]);
  }
  return [...found.values()];
}
