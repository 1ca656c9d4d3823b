import { OTHER } from "../labels.ts";
import { CALL_LABELS, type CallLabel } from "./metric-labels.ts";

/** The value of a label that a call lacks, as in LiteLLM: Prometheus drops labels that are empty. */
export const NONE = "None";

/** Values of the labels of a call; those without one are {@link NONE}. */
export type CallLabels = Readonly<Partial<Record<CallLabel, string>>>;

/** One record with the labels that it counts. */
export interface Series<Value> {
  readonly labels: CallLabels;
  readonly value: Value;
}

const OF_CALLERS: readonly CallLabel[] = [
  "hashed_api_key",
  "api_key_alias",
  "team",
  "team_alias",
  "user",
  "end_user",
  "org_id",
];

/**
 * Records by combination of labels, at most `max` of them: further combinations are counted without their caller (`other`), and
 * when there are as many of those, as one.
 */
export class SeriesSet<Value> {
  readonly #max: number;
  readonly #create: () => Value;
  readonly #series = new Map<string, Series<Value>>();

  constructor(max: number, create: () => Value) {
    this.#max = max;
    this.#create = create;
  }

  of(labels: CallLabels): Value {
    const own = this.#find(labels, this.#max);
    if (own !== null) {
      return own;
    }
    return (
      this.#find(withoutCaller(labels), 2 * this.#max) ??
      this.#find(EVERYTHING_ELSE, Infinity) ??
      this.#create()
    );
  }

  all(): Iterable<Series<Value>> {
    return this.#series.values();
  }

  /** The record of the labels, created while there are fewer than `max`; null: there are too many. */
  #find(labels: CallLabels, max: number): Value | null {
    const name = nameOf(labels);
    const known = this.#series.get(name);
    if (known !== undefined) {
      return known.value;
    }
    if (this.#series.size >= max) {
      return null;
    }
    const value = this.#create();
    this.#series.set(name, { labels, value });
    return value;
  }
}

const EVERYTHING_ELSE: CallLabels = Object.fromEntries(
  CALL_LABELS.map((label) => [label, OTHER]),
);

function withoutCaller(labels: CallLabels): CallLabels {
  const others = OF_CALLERS.filter((label) => labels[label] !== undefined);
  return {
    ...labels,
    ...Object.fromEntries(others.map((label) => [label, OTHER])),
  };
}

/** Names cannot contain NUL. */
function nameOf(labels: CallLabels): string {
  let name = "";
  for (const label of CALL_LABELS) {
    name += `${labels[label] ?? ""}\0`;
  }
  return name;
}
