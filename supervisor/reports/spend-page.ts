import { grouped, moment, money, percent } from "../../core/words.ts";
import { drawColumns, drawLines } from "../../core/charts.ts";
import {
  shortName,
  tableOf,
  type ChartView,
  type TableView,
} from "./page-parts.ts";
import type { Payer } from "./payers.ts";
import {
  columnsOf,
  figuresOf,
  growthOf,
  type FigureView,
} from "./spend-parts.ts";
import type { SpendReport } from "./spend-report.ts";

interface SpendPage {
  readonly empty: boolean;
  readonly figures: readonly FigureView[];
  readonly charts: readonly ChartView[];
  readonly tables: readonly TableView[];
}

/** The values of the template `spend`. */
export function viewSpend(report: SpendReport): SpendPage {
  const { totals } = report;
  const empty = totals.requests === 0;
  return {
    empty,
    figures: figuresOf(report),
    charts: empty
      ? []
      : [columnsOf(report, drawColumns), growthOf(report, drawLines)],
    tables: tablesOf(report),
  };
}

function tablesOf(report: SpendReport): readonly TableView[] {
  return [
    budgetTable(report),
    payerTable("By user", "User", report.users),
    payerTable("By key", "Key", report.keys),
    payerTable("By team", "Team", report.teams),
    payerTable("By alias", "Alias", report.models),
    payerTable("By provider", "Provider", report.providers),
    correctionTable(report),
  ].filter(({ rows }) => rows.length > 0);
}

/** Without rows if no call has a payer of this kind. */
function payerTable(
  label: string,
  kind: string,
  payers: readonly Payer[],
): TableView {
  const isEmpty = payers.every(({ id }) => id === "");
  return tableOf(
    label,
    [kind, "#Spend", "#Share", "#Before", "#Calls", "#Failed", "#Cached"],
    (isEmpty ? [] : payers).map((payer) => [
      shortName(payer.name),
      money(payer.spend),
      percent(payer.share),
      money(payer.previous),
      grouped(payer.requests),
      grouped(payer.failed),
      grouped(payer.cacheHits),
    ]),
  );
}

function budgetTable({ budgets, timeZone }: SpendReport): TableView {
  return tableOf(
    "Budgets",
    ["Of", "#Used", "#Spend", "#Budget", "#Resets"],
    budgets.map(({ kind, name, spend, budget, used, resetsAt }) => [
      shortName(`${kind} ${name}`),
      used === null ? "—" : percent(used),
      money(spend),
      money(budget),
      resetsAt === null ? "never" : moment(Date.parse(resetsAt), timeZone),
    ]),
  );
}

function correctionTable({ corrections, timeZone }: SpendReport): TableView {
  return tableOf(
    "Corrections by an admin, not included above",
    ["Of", "#Dollars", "#At"],
    corrections.map(({ at, name, spend }) => [
      shortName(name),
      money(spend),
      moment(Date.parse(at), timeZone),
    ]),
  );
}
