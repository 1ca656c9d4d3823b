import type { Colour } from "../../../core/charts.ts";
import { drawColumns } from "../../../core/charts.ts";
import { axisMoney, money } from "../../../core/words.ts";
import type { MonthSpend } from "./month-spend.ts";
import { sum } from "../../../core/sum.ts";

interface DayChart {
  /** Markup of numbers and fixed words only. */
  readonly svg: string;
  readonly series: readonly {
    readonly name: string;
    readonly colour: Colour;
    /** Dollars this month. */
    readonly spend: string;
  }[];
}

const COLOURS: readonly Colour[] = ["one", "two", "three", "four"];

/** Dollars per day of this month as columns stacked by alias, the most expensive ones separately; null when nothing was spent. */
export function drawDays(days: MonthSpend["days"]): DayChart | null {
  const last = Math.max(0, ...days.map(({ day }) => day));
  const names = mostExpensiveFirst(days);
  const shown = names.length > 4 ? names.slice(0, 3) : names;
  const groups = [...shown, ...(names.length > shown.length ? ["others"] : [])];
  const groupOf = (model: string) =>
    shown.includes(model) ? shown.indexOf(model) : groups.length - 1;
  const series = groups.map((name, index) => ({
    name: name === "" ? "unknown" : name,
    colour: COLOURS[index] ?? "four",
    values: Array<number>(last).fill(0),
  }));
  for (const { day, model, spend } of days) {
    const { values = [] } = series[groupOf(model)] ?? {};
    values[day - 1] = (values[day - 1] ?? 0) + spend;
  }
  if (series.every(({ values }) => sum(values) === 0)) {
    return null;
  }
  return {
    svg: drawColumns(
      {
        labels: Array.from({ length: last }, (_, index) => String(index + 1)),
        series,
        label: axisMoney,
      },
      "dollars per day, by alias",
    ),
    series: series.map(({ name, colour, values }) => ({
      name,
      colour,
      spend: money(sum(values)),
    })),
  };
}

function mostExpensiveFirst(days: MonthSpend["days"]): readonly string[] {
  const sums = new Map<string, number>();
  for (const { model, spend } of days) {
    sums.set(model, (sums.get(model) ?? 0) + spend);
  }
  return [...sums].toSorted((a, b) => b[1] - a[1]).map(([name]) => name);
}
