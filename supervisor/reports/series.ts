import type { CallSums } from "./daily-sums.ts";
import {
  addDays,
  daysBetween,
  firstOf,
  type Period,
  type PeriodUnit,
} from "./period.ts";
import { exact } from "./sums.ts";

/** Sums of days, weeks or months, with the most expensive aliases separately. */
export interface Series {
  readonly unit: PeriodUnit;
  readonly aliases: readonly string[];
  readonly steps: readonly {
    readonly from: string;
    readonly spend: number;
    readonly requests: number;
    /** Dollars of each of `aliases`, in their order. */
    readonly byAlias: readonly number[];
  }[];
}

const APART = 4;

/** The steps of a chart of a period: their unit and first days, and the step of a day. */
export function stepsOf({ from, until }: Pick<Period, "from" | "until">): {
  readonly unit: PeriodUnit;
  readonly firsts: readonly string[];
  readonly placeOf: (day: string) => number;
} {
  const days = daysBetween(from, until) + 1;
  const unit = days <= 45 ? "day" : days <= 200 ? "week" : "month";
  const firstIn = (day: string) => {
    const first = firstOf(unit, day);
    return first < from ? from : first;
  };
  const firsts: string[] = [];
  for (let day = from; day <= until; day = addDays(day, 1)) {
    const first = firstIn(day);
    if (first !== firsts.at(-1)) {
      firsts.push(first);
    }
  }
  const places = new Map(firsts.map((first, place) => [first, place]));
  return { unit, firsts, placeOf: (day) => places.get(firstIn(day)) ?? -1 };
}

export function seriesOf(
  calls: readonly CallSums[],
  period: Pick<Period, "from" | "until">,
): Series {
  const { unit, firsts, placeOf } = stepsOf(period);
  const spendByAlias = new Map<string, number>();
  for (const { alias, sums } of calls) {
    spendByAlias.set(alias, (spendByAlias.get(alias) ?? 0) + sums.spend);
  }
  const aliases = [...spendByAlias]
    .filter(([, spend]) => spend > 0)
    .toSorted((a, b) => b[1] - a[1])
    .slice(0, APART)
    .map(([name]) => name);
  const steps = firsts.map((from) => ({
    from,
    spend: 0,
    requests: 0,
    byAlias: aliases.map(() => 0),
  }));
  for (const { day, alias, sums } of calls) {
    const step = steps[placeOf(day)];
    if (step === undefined) {
      continue;
    }
    step.spend = exact(step.spend + sums.spend);
    step.requests += sums.requests;
    const place = aliases.indexOf(alias);
    if (place >= 0) {
      step.byAlias[place] = exact((step.byAlias[place] ?? 0) + sums.spend);
    }
  }
  return { unit, aliases, steps };
}
