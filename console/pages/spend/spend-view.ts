import {
  callFindings,
  spendVerdict,
} from "../../../supervisor/reports/findings.ts";
import type { Forecast } from "../../../supervisor/reports/forecast.ts";
import {
  chartOf,
  shortName,
  type ChartView,
} from "../../../supervisor/reports/page-parts.ts";
import type { Payer } from "../../../supervisor/reports/payers.ts";
import { daysInFull, type Period } from "../../../supervisor/reports/period.ts";
import { seriesOf, stepsOf } from "../../../supervisor/reports/series.ts";
import type {
  CallSums,
  DaySpend,
} from "../../../supervisor/reports/daily-sums.ts";
import type { Correction } from "../../../supervisor/reports/budgets.ts";
import {
  columnsOf,
  figuresOf,
  growthOf,
  SERIES_COLOURS,
  stepLabel,
  stepNames,
} from "../../../supervisor/reports/spend-parts.ts";
import { changeFrom } from "../../../supervisor/reports/spend-report.ts";
import type { Sums } from "../../../supervisor/reports/sums.ts";
import { drawColumns, drawLines } from "../../../core/charts.ts";
import type { Look } from "../../../core/shapes.ts";
import { axisMoney, grouped, moment, money } from "../../../core/words.ts";
import { MODEL_ADDRESS } from "../models/model-address.ts";
import { callsBehind, callsOfRow } from "./calls-behind.ts";
import {
  DIMENSIONS,
  fieldsOf,
  linkTo,
  MAX_PICKS,
  PERIODS,
  defaultSort,
  type Dimension,
  type SpendChoice,
} from "./spend-choice.ts";
import {
  filterAndSort,
  FIGURE_COLUMNS,
  totalOf,
  type Column,
} from "./spend-table.ts";

/** The data of the page; money in dollars. */
export interface SpendFacts {
  readonly choice: SpendChoice;
  readonly period: Period;
  readonly totals: Sums;
  readonly previous: Sums;
  readonly forecast: Forecast | null;
  readonly calls: readonly CallSums[];
  readonly models: readonly Payer[];
  /** Rows of the selected dimension. */
  readonly rows: readonly Payer[];
  /** Spend per day of the selected rows. */
  readonly picked: readonly DaySpend[];
  readonly corrections: readonly Correction[];
  /** Why the figures are outdated, and since when; null when they are current. */
  readonly stale: { readonly trouble: string; readonly at: number } | null;
  readonly timeZone: string;
}

const ROWS_ON_PAGE = 50;

const periodNames: Readonly<Record<SpendChoice["period"], string>> = {
  today: "Today",
  "7d": "7 days",
  month: "This month",
  "last-month": "Last month",
};

const dimensionNames: Readonly<Record<Dimension, string>> = {
  model: "Model",
  key: "Key",
  user: "User",
  team: "Team",
  provider: "Provider",
  day: "Day",
};

/** Days have no previous period to compare with. */
export function columnsFor(by: Dimension): readonly Column[] {
  return by === "day"
    ? FIGURE_COLUMNS.filter(({ key }) => key !== "previous")
    : FIGURE_COLUMNS;
}

/** The controls above the figures, shown even without figures. Invalid days stay as they were typed. */
export function viewControls(
  choice: SpendChoice,
  today: string,
  period: Period | null,
) {
  const anyDates = choice.from !== "" || choice.until !== "";
  const elsewhere = { page: 1, from: "", until: "" };
  return {
    periods: PERIODS.map((period) => ({
      name: periodNames[period],
      href: linkTo(choice, { ...elsewhere, period }),
      current: !anyDates && period === choice.period,
    })),
    dates: {
      from: period?.from ?? choice.from,
      until: period?.until ?? choice.until,
      most: today,
    },
    datesHidden: fieldsOf({ ...choice, ...elsewhere }).filter(
      ([name]) => name !== "period",
    ),
  };
}

/** The page's title and colour. */
export function verdictOf(facts: SpendFacts): {
  readonly title: string;
  readonly look: Look;
} {
  const { totals, previous, period } = facts;
  const change = changeFrom(previous.spend, totals.spend);
  const findings = callFindings(facts);
  return {
    title: spendVerdict({ totals, period, change }),
    look:
      totals.requests === 0 ? "none" : findings.length === 0 ? "ok" : "warn",
  };
}

/** The data in words and markup, for the template. */
export function viewSpend(facts: SpendFacts) {
  const { choice, period, totals, previous, forecast, timeZone, stale } = facts;
  const change = changeFrom(previous.spend, totals.spend);
  const series = seriesOf(facts.calls, period);
  const empty = totals.requests === 0;
  return {
    subline: daysInFull(period),
    stale:
      stale === null
        ? null
        : `${stale.trouble} Figures from ${moment(stale.at, timeZone)}.`,
    findings: callFindings(facts),
    empty,
    figures: figuresOf({ totals, previous, forecast, change, period }).map(
      (figure) => ({
        ...figure,
        href: hrefOfFigure(figure.name, facts),
      }),
    ),
    charts: empty
      ? []
      : [
          choice.pick.length === 0
            ? columnsOf({ series }, drawColumns)
            : drawPicked(facts),
          growthOf({ series, forecast, period }, drawLines),
        ],
    showAll: choice.pick.length === 0 ? null : linkTo(choice, { pick: [] }),
    table: viewTable(facts),
    corrections: facts.corrections.map(({ at, name, spend }) => ({
      name: shortName(name),
      spend: money(spend),
      at: moment(Date.parse(at), timeZone),
    })),
  };
}

/** The figures above the charts that calls are behind. */
const FIGURES = {
  Spend: "spend",
  Calls: "requests",
  Failed: "failed",
} as const;

function hrefOfFigure(
  name: string,
  { period, totals }: Pick<SpendFacts, "period" | "totals">,
): string | null {
  const column = Object.hasOwn(FIGURES, name)
    ? FIGURES[name as keyof typeof FIGURES]
    : null;
  return column === null ? null : callsBehind(column, period, totals[column]);
}

/** A line for each selected row. */
function drawPicked({ choice, period, picked, rows }: SpendFacts): ChartView {
  const { unit, firsts, placeOf } = stepsOf(period);
  const series = choice.pick.map((id, index) => ({
    name: shortName(rows.find((row) => row.id === id)?.name ?? "no calls"),
    colour: SERIES_COLOURS[index % SERIES_COLOURS.length] ?? "one",
    values: firsts.map(() => 0),
  }));
  for (const { id, day, spend } of picked) {
    const { values } = series[choice.pick.indexOf(id)] ?? {};
    const place = placeOf(day);
    if (values !== undefined && place >= 0) {
      values[place] = (values[place] ?? 0) + spend;
    }
  }
  return chartOf(
    `Dollars per ${unit}, selected rows`,
    stepNames[unit],
    drawLines,
    {
      labels: firsts.map((first) => stepLabel(unit, first)),
      series,
      label: axisMoney,
    },
    money,
  );
}

function viewTable({ choice, rows, totals, period }: SpendFacts) {
  const { by, sort, order, pick } = choice;
  const columns = columnsFor(by);
  const found = filterAndSort(rows, choice);
  const pages = Math.max(1, Math.ceil(found.length / ROWS_ON_PAGE));
  const page = Math.min(choice.page, pages);
  const first = (page - 1) * ROWS_ON_PAGE;
  const shown = found.slice(first, first + ROWS_ON_PAGE);
  const total = totalOf(found, totals.spend);
  const turn = (key: SpendChoice["sort"]) =>
    linkTo(choice, {
      sort: key,
      order: sort === key && order === "down" ? "up" : "down",
      page: 1,
    });
  const head = (key: SpendChoice["sort"], label: string) => ({
    label,
    figure: key !== "name",
    href: turn(key),
    sorted: key !== sort ? null : order === "up" ? "ascending" : "descending",
  });
  const onPage = new Set(shown.map(({ id }) => id));
  return {
    by: dimensionNames[by],
    tabs: DIMENSIONS.map((dimension) => ({
      name: dimensionNames[dimension],
      href: linkTo(switchTo(choice, dimension)),
      current: dimension === by,
    })),
    pickable: by !== "day",
    maxPicks: MAX_PICKS,
    heads: [
      head("name", dimensionNames[by]),
      ...columns.map(({ key, label }) => head(key, label)),
    ],
    rows: shown.map((row) => viewRow(row, columns, choice, period)),
    total: columns.map(({ key, write }) => ({
      text: write(total[key]),
      // Of all rows, so not of a filtered table.
      href: choice.find === "" ? callsBehind(key, period, total[key]) : null,
    })),
    range:
      found.length === 0
        ? "0 of 0"
        : `${grouped(first + 1)} to ${grouped(first + shown.length)} of ${grouped(found.length)}`,
    before: page > 1 ? linkTo(choice, { page: page - 1 }) : null,
    after: page < pages ? linkTo(choice, { page: page + 1 }) : null,
    csv: linkTo(choice, { page: 1, pick: [] }, "/spend.csv"),
    find: choice.find,
    findHidden: fieldsOf({ ...choice, find: "", page: 1 }),
    // Selections on other pages of the table stay.
    pickHidden: fieldsOf({
      ...choice,
      pick: pick.filter((id) => !onPage.has(id)),
    }),
  };
}

function viewRow(
  row: Payer,
  columns: readonly Column[],
  { by, pick }: SpendChoice,
  period: Period,
) {
  return {
    id: row.id,
    name: shortName(row.name),
    href: hrefOf(by, row.id),
    picked: pick.includes(row.id),
    cells: columns.map(({ key, write }) => ({
      text: write(row[key]),
      href: callsOfRow(by, row.id, key, row[key], period),
    })),
  };
}

/** Another dimension has other rows: filter, order and selection are reset. */
function switchTo(choice: SpendChoice, by: Dimension): SpendChoice {
  return {
    ...choice,
    by,
    sort: defaultSort(by),
    order: "down",
    find: "",
    pick: [],
    page: 1,
  };
}

/** The page with details of a row. */
function hrefOf(by: Dimension, id: string): string | null {
  if (id === "") {
    return null;
  }
  switch (by) {
    case "key":
      return `/keys/${encodeURIComponent(id)}`;
    case "model":
      return MODEL_ADDRESS.href(id);
    case "user":
    case "team":
    case "provider":
    case "day":
      return null;
  }
}
