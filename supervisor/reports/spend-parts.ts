import { axisMoney, grouped, money, percent } from "../../core/words.ts";
import type { Colour } from "../../core/charts.ts";
import { changeWords } from "./findings.ts";
import { chartOf, shortName, type ChartView, type Draw } from "./page-parts.ts";
import {
  endOfMonth,
  inFull,
  inShort,
  monthName,
  type PeriodUnit,
} from "./period.ts";
import type { SpendReport } from "./spend-report.ts";
import type { Sums } from "./sums.ts";
import { sum } from "../../core/sum.ts";

// Shared by the page of a report and the console's spend page.

export interface FigureView {
  readonly name: string;
  readonly value: string;
  readonly note: string;
}

/** Colours of series, most expensive first. */
export const SERIES_COLOURS: readonly Colour[] = [
  "one",
  "two",
  "three",
  "four",
];

export function figuresOf(
  report: Pick<
    SpendReport,
    "totals" | "previous" | "forecast" | "change" | "period"
  >,
): readonly FigureView[] {
  const { totals, previous, forecast, change, period } = report;
  const share = (count: number) =>
    totals.requests === 0
      ? "no calls"
      : `${percent(count / totals.requests)} of all calls`;
  return [
    {
      name: "Spend",
      value: money(totals.spend),
      note:
        change === null
          ? `nothing in ${period.previous.label}`
          : `${changeWords(change, period.previous.label)} (${money(previous.spend)})`,
    },
    ...(forecast === null
      ? []
      : [
          {
            name: `Forecast to ${inFull(forecast.until)}`,
            value: money(forecast.spend),
            note: `at ${money(forecast.perDay)} a day, as in the last ${forecast.basis} days`,
          },
        ]),
    {
      name: "Calls",
      value: grouped(totals.requests),
      note: `${grouped(totals.promptTokens)} tokens in, ${grouped(totals.completionTokens)} out`,
    },
    {
      name: "Saved by caches",
      value: money(totals.saved),
      note: `${grouped(totals.cacheHits)} answers, ${share(totals.cacheHits)}; ${cachedInput(totals)}`,
    },
    {
      name: "Failed",
      value: grouped(totals.failed),
      note: `${share(totals.failed)}${totals.interrupted === 0 ? "" : `; ${grouped(totals.interrupted)} interrupted`}`,
    },
    {
      name: "Without a price",
      value: grouped(totals.unpriced),
      note:
        totals.unpriced === 0 ? "all calls were priced" : "they count as free",
    },
  ];
}

function cachedInput({ cachedTokens, promptTokens }: Sums): string {
  return promptTokens === 0
    ? "no input"
    : `${percent(cachedTokens / promptTokens)} of the input read from caches of providers`;
}

/** Column headers of steps. */
export const stepNames = {
  day: "day",
  week: "week from",
  month: "month",
} as const;

export function stepLabel(unit: PeriodUnit, from: string): string {
  return unit === "month"
    ? `${monthName(from, false).slice(0, 3)} ${from.slice(2, 4)}`
    : inShort(from);
}

/** Dollars of each step, stacked by alias. */
export function columnsOf(
  { series }: Pick<SpendReport, "series">,
  draw: Draw,
): ChartView {
  const { unit, aliases, steps } = series;
  const others = steps.map(({ spend, byAlias }) => spend - sum(byAlias));
  // Rounding errors are not spend.
  const hasOthers = others.some((spend) => spend > 1e-9);
  return chartOf(
    `Dollars per ${unit}, by alias`,
    stepNames[unit],
    draw,
    {
      labels: steps.map(({ from }) => stepLabel(unit, from)),
      series: [
        ...aliases.map((name, at) => ({
          name: name === "" ? "—" : shortName(name),
          colour: SERIES_COLOURS[at] ?? "four",
          values: steps.map(({ byAlias }) => byAlias[at] ?? 0),
        })),
        ...(hasOthers
          ? [{ name: "others", colour: "none" as const, values: others }]
          : []),
      ],
      label: axisMoney,
    },
    money,
  );
}

/** Cumulative spend and its forecast. */
export function growthOf(
  {
    series,
    forecast,
    period,
  }: Pick<SpendReport, "series" | "forecast" | "period">,
  draw: Draw,
): ChartView {
  let sum = 0;
  const grown = series.steps.map(({ spend }) => (sum += spend));
  const labels = series.steps.map(({ from }) => stepLabel(series.unit, from));
  const isMonth =
    forecast !== null &&
    series.unit === "day" &&
    period.from === `${period.until.slice(0, 8)}01`;
  const days = isMonth ? Number(endOfMonth(period.until).slice(8)) : 0;
  const left = Math.max(0, days - labels.length);
  const ahead =
    isMonth && left > 0
      ? Array.from(
          { length: left + 1 },
          (_, at) => sum + ((forecast.spend - sum) * at) / left,
        )
      : [];
  const month = period.until.slice(0, 8);
  return chartOf(
    "Dollars since the start",
    stepNames[series.unit],
    draw,
    {
      labels: [
        ...labels,
        ...Array.from({ length: left }, (_, at) =>
          inShort(`${month}${String(labels.length + at + 1).padStart(2, "0")}`),
        ),
      ],
      series: [
        {
          name: "spent",
          colour: "one",
          values: [...grown, ...Array.from({ length: left }, () => null)],
        },
        ...(ahead.length === 0
          ? []
          : [
              {
                name: "forecast",
                colour: "two" as const,
                values: [...grown.slice(1).map(() => null), ...ahead],
              },
            ]),
      ],
      label: axisMoney,
    },
    money,
  );
}
