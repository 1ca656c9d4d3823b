import { query, type Pool } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";

/** Conditions of a statement with their values, joined by AND. The texts come from code, never from input. */
export interface Conditions {
  /** Adds a condition in which `?` stands for the value, if there is one. */
  and(text: string, ...value: readonly [unknown?]): void;
  /** The value's place in the statement. */
  bind(value: unknown): string;
  /** `WHERE …`, or nothing. */
  where(): string;
  readonly values: readonly unknown[];
}

export function conditions(): Conditions {
  const texts: string[] = [];
  const values: unknown[] = [];
  const bind = (value: unknown) => `$${values.push(value)}`;
  return {
    bind,
    values,
    and(text, ...value) {
      texts.push(
        value.length === 0 ? text : text.replaceAll("?", bind(value[0])),
      );
    },
    where: () => (texts.length === 0 ? "" : `WHERE ${texts.join(" AND ")}`),
  };
}

export interface Page {
  readonly rows: readonly Row[];
  readonly total: number;
  readonly pages: number;
}

/** One page of a table, pages from 1. */
export async function readPage(
  pool: Pool,
  table: string,
  filter: Conditions,
  order: string,
  page: number,
  size: number,
): Promise<Page> {
  const where = filter.where();
  const [rows, [counted]] = await Promise.all([
    query<Row>(
      pool,
      `SELECT * FROM ${table} ${where} ORDER BY ${order} LIMIT ${size} OFFSET ${(page - 1) * size}`,
      filter.values,
    ),
    query<{ count: number }>(
      pool,
      `SELECT count(*) AS count FROM ${table} ${where}`,
      filter.values,
    ),
  ]);
  const total = counted?.count ?? 0;
  return { rows, total, pages: Math.ceil(total / size) };
}

/** What a list may be sorted by: names and the expressions they stand for. */
export type Sortable = Readonly<Record<string, string>>;

export function columns(...names: readonly string[]): Sortable {
  return Object.fromEntries(names.map((name) => [name, name]));
}

/** `ORDER BY` of a list, by the first of `sortable` unless a caller asks for another; the id makes it the same each time. */
export function orderOf(
  sortable: Sortable,
  sortBy: string | undefined,
  sortOrder: "asc" | "desc",
  id: string,
): string {
  const names = Object.keys(sortable);
  const wanted = sortBy ?? names[0] ?? id;
  const expression = Object.hasOwn(sortable, wanted)
    ? sortable[wanted]
    : undefined;
  if (expression === undefined) {
    throw new CallError(
      "invalid_request",
      `\`sort_by\` is not right: it may be ${names.join(", ")}.`,
      { param: "sort_by" },
    );
  }
  return `${expression} ${sortOrder} NULLS LAST, ${id} ${sortOrder}`;
}

/** Keeps rows with `text` in one of these columns, in whatever case. */
export function containing(
  filter: Conditions,
  text: string,
  among: readonly string[],
): void {
  filter.and(
    `(${among.map((column) => `strpos(lower(${column}), lower(?)) > 0`).join(" OR ")})`,
    text,
  );
}
