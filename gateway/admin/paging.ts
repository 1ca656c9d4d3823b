import { query, type Pool } from "../db/pool.ts";
import type { Row } from "../db/rows.ts";
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

/** `ORDER BY` of a list, from what a caller may ask for; the id makes it the same each time. */
export function orderOf(
  sortable: readonly string[],
  sortBy: string | undefined,
  sortOrder: "asc" | "desc",
  id: string,
): string {
  const column = sortBy ?? sortable[0] ?? id;
  if (!sortable.includes(column))
    throw new CallError(
      "invalid_request",
      `\`sort_by\` is not right: it may be ${sortable.join(", ")}.`,
      { param: "sort_by" },
    );
  return `${column} ${sortOrder} NULLS LAST, ${id} ${sortOrder}`;
}
