import { grouped, moment, money, percent } from "../pages/words.ts";
import type { Colour } from "./charts.ts";
import { changeWords } from "./findings.ts";
import {
  chartOf,
  shortName,
  tableOf,
  type ChartView,
  type TableView,
} from "./page-parts.ts";
import { endOfMonth, inFull, inShort, monthName } from "./period.ts";
import type { Payer, SpendReport } from "./spend-report.ts";

export type SpendPage = {
  readonly empty: boolean;
  readonly figures: readonly {
    readonly name: string;
    readonly value: string;
    readonly note: string;
  }[];
  readonly charts: readonly ChartView[];
  readonly tables: readonly TableView[];
};

const colours: readonly Colour[] = ["one", "two", "three", "four"];

/** What the template `spend` shows. */
export function viewSpend(report: SpendReport): SpendPage {
  const { totals } = report;
  const empty = totals.requests === 0;
  return {
    empty,
    figures: figuresOf(report),
    charts: empty ? [] : [columnsOf(report), growthOf(report)],
    tables: tablesOf(report),
  };
}

function figuresOf(report: SpendReport): SpendPage["figures"] {
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
      name: "Saved by the cache",
      value: money(totals.saved),
      note: `${grouped(totals.cacheHits)} answers, ${share(totals.cacheHits)}`,
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

const units = { day: "day", week: "week from", month: "month" } as const;

function stepLabel(report: SpendReport, from: string): string {
  return report.series.unit === "month"
    ? `${monthName(from, false).slice(0, 3)} ${from.slice(2, 4)}`
    : inShort(from);
}

function columnsOf(report: SpendReport): ChartView {
  const { unit, aliases, steps } = report.series;
  const others = steps.map(
    ({ spend, byAlias }) => spend - byAlias.reduce((sum, own) => sum + own, 0),
  );
  // What is left of rounding is no spend.
  const hasOthers = others.some((spend) => spend > 1e-9);
  return chartOf(
    `Dollars a ${unit}, by alias`,
    units[unit],
    "columns",
    {
      labels: steps.map(({ from }) => stepLabel(report, from)),
      series: [
        ...aliases.map((name, at) => ({
          name: name === "" ? "—" : shortName(name),
          colour: colours[at] ?? "four",
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

/** How the sum grew, beside where it goes on its way to the forecast. */
function growthOf(report: SpendReport): ChartView {
  const { series, forecast, period } = report;
  let sum = 0;
  const grown = series.steps.map(({ spend }) => (sum += spend));
  const labels = series.steps.map(({ from }) => stepLabel(report, from));
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
    "Dollars since the beginning",
    units[series.unit],
    "lines",
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

function axisMoney(value: number): string {
  return value === 0 ? "0" : `$ ${Number(value.toPrecision(3))}`;
}

function tablesOf(report: SpendReport): readonly TableView[] {
  const payers = (label: string, what: string, all: readonly Payer[]) =>
    all.every(({ id }) => id === "")
      ? []
      : [
          tableOf(
            label,
            [
              what,
              "#Spend",
              "#Share",
              "#Before",
              "#Calls",
              "#Failed",
              "#Cached",
            ],
            all.map((payer) => [
              shortName(payer.name),
              money(payer.spend),
              percent(payer.share),
              money(payer.previous),
              grouped(payer.requests),
              grouped(payer.failed),
              grouped(payer.cacheHits),
            ]),
          ),
        ];
  const { budgets, corrections, timeZone } = report;
  return [
    ...(budgets.length === 0
      ? []
      : [
          tableOf(
            "Budgets",
            ["Of", "#Used", "#Spend", "#Budget", "#Begins anew"],
            budgets.map(({ kind, name, spend, budget, used, resetsAt }) => [
              shortName(`${kind} ${name}`),
              used === null ? "—" : percent(used),
              money(spend),
              money(budget),
              resetsAt === null
                ? "never"
                : moment(Date.parse(resetsAt), timeZone),
            ]),
          ),
        ]),
    ...payers("By user", "User", report.users),
    ...payers("By key", "Key", report.keys),
    ...payers("By team", "Team", report.teams),
    ...payers("By alias", "Alias", report.models),
    ...payers("By provider", "Provider", report.providers),
    ...(corrections.length === 0
      ? []
      : [
          tableOf(
            "Corrected by an admin, in no sum above",
            ["Of", "#Dollars", "#At"],
            corrections.map(({ at, name, spend }) => [
              shortName(name),
              money(spend),
              moment(Date.parse(at), timeZone),
            ]),
          ),
        ]),
  ];
}
