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
  "cachedTokens",
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
  { key: "cachedTokens", label: "Tokens cached", write: grouped },
];

/** Filters ranked rows by name and sorts them; days are sorted by id. */
export function filterAndSort(
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
  const needle = find.toLowerCase();
  const found =
    needle === ""
      ? rows
      : rows.filter(
          ({ id, name }) =>
            name.toLowerCase().includes(needle) || id.startsWith(needle),
        );
  // Rows come ranked: the default order of ten thousand rows needs no sort.
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

type Total = Sums & Pick<Payer, "previous" | "share">;

/** Of rows that are cached, too: ten thousand are added up once, not for each page. */
const totals = new WeakMap<readonly Payer[], Omit<Total, "share">>();

/** The sum of all rows, and its share of the cost of all calls of the period. */
export function totalOf(rows: readonly Payer[], all: number): Total {
  const sums = totals.get(rows) ?? {
    ...addUp(rows),
    previous: rows.reduce((sum, { previous }) => sum + previous, 0),
  };
  totals.set(rows, sums);
  return { ...sums, share: all === 0 ? 0 : sums.spend / all };
}

/** The whole table for a spreadsheet, with unformatted numbers. */
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
