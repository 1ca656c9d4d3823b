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

export interface SpendPage {
  readonly empty: boolean;
  readonly figures: readonly FigureView[];
  readonly charts: readonly ChartView[];
  readonly tables: readonly TableView[];
}

/** What the template `spend` shows. */
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
