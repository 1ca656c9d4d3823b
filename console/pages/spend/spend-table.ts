import type { Value } from "../../../supervisor/reports/csv.ts";
import type { Payer } from "../../../supervisor/reports/payers.ts";
import { addUp, type Sums } from "../../../supervisor/reports/sums.ts";
import { grouped, money, percent } from "../../../core/words.ts";

export const COLUMN_KEYS = [
  "name",
  "spend",
  "share",
  "previous",
  "requests",
  "failed",
  "cacheHits",
  "saved",
  "unpriced",
  "promptTokens",
  "completionTokens",
] as const;
export type ColumnKey = (typeof COLUMN_KEYS)[number];

export interface Column {
  readonly key: Exclude<ColumnKey, "name">;
  readonly label: string;
  readonly write: (value: number) => string;
}

export const FIGURE_COLUMNS: readonly Column[] = [
  { key: "spend", label: "Spend", write: money },
  { key: "share", label: "Share", write: percent },
  { key: "previous", label: "Before", write: money },
  { key: "requests", label: "Calls", write: grouped },
  { key: "failed", label: "Failed", write: grouped },
  { key: "cacheHits", label: "From cache", write: grouped },
  { key: "saved", label: "Saved", write: money },
  { key: "unpriced", label: "Unpriced", write: grouped },
  { key: "promptTokens", label: "Tokens in", write: grouped },
  { key: "completionTokens", label: "Tokens out", write: grouped },
];

/** Ranked rows whose names hold some text, in an order. The ids of days are their order, their names are not. */
export function arrange(
  rows: readonly Payer[],
  {
    by,
    sort,
    order,
    find,
  }: {
    readonly by: string;
    readonly sort: ColumnKey;
    readonly order: "up" | "down";
    readonly find: string;
  },
): readonly Payer[] {
  const wanted = find.toLowerCase();
  const found =
    wanted === ""
      ? rows
      : rows.filter(
          ({ id, name }) =>
            name.toLowerCase().includes(wanted) || id.startsWith(wanted),
        );
  // Ten thousand rows come ranked: what is usual need not be sorted again.
  if (sort === "spend" && order === "down" && by !== "day") {
    return found;
  }
  const sign = order === "up" ? 1 : -1;
  return found.toSorted((a, b) => {
    const key = by === "day" && sort === "name" ? "id" : sort;
    const [left, right] = [a[key], b[key]];
    const compared =
      typeof left === "number" && typeof right === "number"
        ? left - right
        : String(left).localeCompare(String(right));
    return sign * compared || (a.id < b.id ? -1 : 1);
  });
}

/** What all rows add up to, beside what all calls of the period cost. */
export function totalOf(
  rows: readonly Payer[],
  all: number,
): Sums & Pick<Payer, "previous" | "share"> {
  const sums = addUp(rows);
  return {
    ...sums,
    previous: rows.reduce((sum, { previous }) => sum + previous, 0),
    share: all === 0 ? 0 : sums.spend / all,
  };
}

/** The whole table for a spreadsheet: numbers as they are. */
export function csvRows(
  rows: readonly Payer[],
  columns: readonly Column[],
  all: number,
): readonly (readonly Value[])[] {
  const figures = (row: Readonly<Record<Column["key"], number>>) =>
    columns.map(({ key }) => row[key]);
  return [
    ["id", "name", ...columns.map(({ label }) => label)],
    ...rows.map((row) => [row.id, row.name, ...figures(row)]),
    ["", "Total", ...figures(totalOf(rows, all))],
  ];
}
