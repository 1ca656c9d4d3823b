import type { Look } from "../../../core/shapes.ts";
import { grouped, money } from "../../../core/words.ts";
import { viewBudget, type Budgeted, type BudgetView } from "./budget.ts";

export interface NounColumn<Row> {
  readonly title: string;
  /** The gateway's sort key, if it can sort by this column. */
  readonly sort?: string;
  /** Sorts from A to Z first; amounts and times from the largest. */
  readonly ascending?: boolean;
  readonly number?: boolean;
  readonly cell: (row: Row, at: CellContext) => Cell;
}

export interface CellContext {
  /** IANA name. */
  readonly timeZone: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

export type Cell =
  | {
      readonly kind: "name";
      readonly href: string;
      readonly text: string;
      readonly note: string;
    }
  | {
      readonly kind: "state";
      readonly look: Look;
      readonly word: string;
      readonly note?: string;
    }
  | {
      /** A button, for those who may press it. */
      readonly kind: "act";
      readonly label: string;
      /** For those who do not see its row. */
      readonly name: string;
      readonly action: string;
    }
  | { readonly kind: "budget"; readonly budget: BudgetView }
  | { readonly kind: "number" | "text"; readonly text: string };

export function nameColumn<Row>(
  cell: (row: Row) => {
    readonly href: string;
    readonly text: string;
    readonly note: string;
  },
  title: string,
  sort?: string,
): NounColumn<Row> {
  return {
    title,
    ...(sort === undefined ? {} : { sort }),
    ascending: true,
    cell: (row) => ({ kind: "name", ...cell(row) }),
  };
}

export function stateColumn<Row>(
  stateOf: (
    row: Row,
    timeZone: string,
    now: number,
  ) => { readonly look: Look; readonly word: string },
): NounColumn<Row> {
  return {
    title: "State",
    cell: (row, { timeZone, now }) => ({
      kind: "state",
      ...stateOf(row, timeZone, now),
    }),
  };
}

/** Spend, and its share of the budget. */
export function budgetColumns(
  spentTitle: string = "Spent",
): readonly [NounColumn<Budgeted>, NounColumn<Budgeted>] {
  return [
    {
      title: spentTitle,
      sort: "spend",
      number: true,
      cell: ({ spend }) => ({ kind: "number", text: money(spend) }),
    },
    {
      title: "Budget used",
      sort: "budget_used",
      number: true,
      cell: (row, { timeZone, now }) => ({
        kind: "budget",
        budget: viewBudget(row, timeZone, now),
      }),
    },
  ];
}

export function textColumn<Row>(
  title: string,
  text: (row: Row, at: CellContext) => string,
): NounColumn<Row> {
  return { title, cell: (row, at) => ({ kind: "text", text: text(row, at) }) };
}

export function countColumn<Row>(
  title: string,
  count: (row: Row) => number,
): NounColumn<Row> {
  return {
    title,
    number: true,
    cell: (row) => ({ kind: "number", text: grouped(count(row)) }),
  };
}

/** The rows of a table, cell by cell. */
export function cellsOf<Row>(
  columns: readonly NounColumn<Row>[],
  rows: readonly Row[],
  at: CellContext,
): readonly (readonly Cell[])[] {
  return rows.map((row) => columns.map(({ cell }) => cell(row, at)));
}
