import { money } from "../words.ts";
import type { MonthSpend } from "./month-spend.ts";

export type DayChart = {
  /** Markup of numbers and our own words only. */
  readonly svg: string;
  readonly series: readonly {
    readonly name: string;
    readonly colour: string;
    /** Dollars this month. */
    readonly spend: string;
  }[];
};

const colours = ["var(--one)", "var(--two)", "var(--three)", "var(--four)"];
const [width, top, bottom, left] = [600, 40, 210, 44];

/**
 * Dollars a day as stacked columns by alias. Drawn by hand: a chart library would cost the supervisor more memory than all
 * else it does.
 */
export function drawDays(days: MonthSpend["days"]): DayChart | null {
  const last = Math.max(0, ...days.map(({ day }) => day));
  const names = dearestFirst(days);
  const shown = names.length > 4 ? names.slice(0, 3) : names;
  const series = [...shown, ...(names.length > shown.length ? ["others"] : [])];
  const seriesOf = (model: string) =>
    shown.includes(model) ? shown.indexOf(model) : series.length - 1;
  const columns = Array.from({ length: last }, (_, index) => {
    const parts = series.map(() => 0);
    for (const { day, model, spend } of days) {
      const at = seriesOf(model);
      if (day === index + 1) parts[at] = (parts[at] ?? 0) + spend;
    }
    return parts;
  });
  const most = Math.max(0, ...columns.map(sum));
  if (most === 0) return null;
  const peak = roundUp(most);
  const step = (width - left - 4) / last;
  const y = (dollars: number) => bottom - (dollars / peak) * (bottom - top);
  const lines = [0, peak / 2, peak].map(
    (dollars) =>
      `<line x1="${left}" x2="${width - 4}" y1="${y(dollars)}" y2="${y(dollars)}" stroke="var(--line)"/><text x="${left - 6}" y="${y(dollars) + 5}" text-anchor="end">${label(dollars)}</text>`,
  );
  const bars = columns.flatMap((parts, index) => {
    let base = 0;
    return parts.map((dollars, position) => {
      if (dollars === 0) return "";
      const from = y(base);
      base += dollars;
      const x = left + index * step + step * 0.12;
      return `<rect x="${x.toFixed(1)}" y="${y(base).toFixed(1)}" width="${(step * 0.76).toFixed(1)}" height="${(from - y(base)).toFixed(1)}" fill="${colours[position]}"/>`;
    });
  });
  const every = last > 12 ? 5 : last > 6 ? 2 : 1;
  const days0 = columns.flatMap((_, index) =>
    index % every === 0
      ? [
          `<text x="${(left + (index + 0.5) * step).toFixed(1)}" y="232" text-anchor="middle">${index + 1}</text>`,
        ]
      : [],
  );
  return {
    svg: `<svg viewBox="0 26 ${width} 212" role="img" aria-label="dollars a day by alias" fill="var(--soft)" font-size="15">${[...lines, ...bars, ...days0].join("")}</svg>`,
    series: series.map((name, index) => ({
      name: name === "" ? "unknown" : name,
      colour: colours[index] ?? "",
      spend: money(sum(columns.map((parts) => parts[index] ?? 0))),
    })),
  };
}

function dearestFirst(days: MonthSpend["days"]): readonly string[] {
  const sums = new Map<string, number>();
  for (const { model, spend } of days)
    sums.set(model, (sums.get(model) ?? 0) + spend);
  return [...sums].toSorted((a, b) => b[1] - a[1]).map(([name]) => name);
}

/** The next 1, 2 or 5 with zeros. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 5, 10].find((each) => each * power >= value) ?? 10;
  return factor * power;
}

function label(dollars: number): string {
  return dollars === 0 ? "0" : String(Number(dollars.toPrecision(2)));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
