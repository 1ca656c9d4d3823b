import { z } from "zod";
import { query, type Pool } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { invalidParam } from "../http/errors.ts";
import { namesOf } from "./kinds/field.ts";
import type { Kind } from "./kinds/kind.ts";
import { out } from "./kinds/out.ts";

/** Conditions of a statement with their values, joined by AND. The texts come from code, never from input. */
export interface Conditions {
  /** Adds a condition in which `?` is the placeholder of the value, if there is one. */
  and(text: string, ...value: readonly [unknown?]): void;
  /** The placeholder of a value. */
  bind(value: unknown): string;
  /** `WHERE …`, or nothing. */
  where(): string;
  /** Whether a row meets all of them. */
  all(): string;
  readonly values: readonly unknown[];
}

/** `values`: those that other parts of the same statement bind. */
export function conditions(values: unknown[] = []): Conditions {
  const texts: string[] = [];
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
    all: () =>
      texts.length === 0
        ? "true"
        : texts.map((one) => `(${one})`).join(" AND "),
  };
}

/** Conditions of query parameters, by parameter; `?` is the placeholder of the value. */
export type Filters = Readonly<Record<string, string>>;

/** Adds the condition of each parameter that was sent. */
export function applyFilters(
  conditions: Conditions,
  filters: Filters,
  input: Readonly<Record<string, unknown>>,
): void {
  for (const [parameter, condition] of Object.entries(filters)) {
    if (input[parameter] !== undefined) {
      conditions.and(condition, input[parameter]);
    }
  }
}

/** The condition that a column contains a text, in any case. */
export function contains(...columns: readonly string[]): string {
  return `(${columns.map((column) => `strpos(lower(${column}), lower(?)) > 0`).join(" OR ")})`;
}

/** The condition of a `search`. */
export function searchOf({ fields }: Kind): string {
  return contains(...namesOf(fields, "searchable"));
}

/** The condition that one of the fields that a search reads is the text, in any case. */
export function namedBy({ fields }: Kind): string {
  const names = namesOf(fields, "searchable").map((name) => `lower(${name})`);
  return `lower(?) IN (${names.join(", ")})`;
}

/** A page of rows in an answer. */
export function pageOf(rows: string, row: z.ZodType) {
  return z.object({
    [rows]: z.array(row),
    total: out.count,
    page: out.count,
    page_size: out.count,
    total_pages: out.count,
  });
}

interface Page {
  readonly rows: readonly Row[];
  readonly total: number;
  readonly pages: number;
}

interface PageQuery {
  readonly table: string;
  readonly filter: Conditions;
  /** What follows ORDER BY. */
  readonly order: string;
  /** From 1. */
  readonly page: number;
  readonly size: number;
}

/** One page of a table. */
export async function readPage(
  pool: Pool,
  { table, filter, order, page, size }: PageQuery,
): Promise<Page> {
  const where = filter.where();
  const before = (page - 1) * size;
  const rows = await query<Row>(
    pool,
    `SELECT * FROM ${table} ${where} ORDER BY ${order} LIMIT ${size} OFFSET ${before}`,
    filter.values,
  );
  // A page that is not full is the last one: an expensive condition is not evaluated a second time.
  const isLast = rows.length < size && (rows.length > 0 || page === 1);
  const [counted] = isLast
    ? [{ count: before + rows.length }]
    : await query<{ count: number }>(
        pool,
        `SELECT count(*) AS count FROM ${table} ${where}`,
        filter.values,
      );
  const total = counted?.count ?? 0;
  return { rows, total, pages: Math.ceil(total / size) };
}

/** What a list can be sorted by: names and their SQL expressions. */
export type Sortable = Readonly<Record<string, string>>;

/** The fields by which a list can be sorted. */
export function sortableFields({ fields }: Kind): Sortable {
  return Object.fromEntries(
    namesOf(fields, "sortable").map((name) => [name, name]),
  );
}

/** `ORDER BY` of a list; the id makes the order total, so that pages do not overlap. */
export function orderOf(
  sortable: Sortable,
  sortBy: string,
  sortOrder: "asc" | "desc",
  id: string,
): string {
  const names = Object.keys(sortable);
  const expression = Object.hasOwn(sortable, sortBy)
    ? sortable[sortBy]
    : undefined;
  if (expression === undefined) {
    throw invalidParam("sort_by", `must be one of ${names.join(", ")}.`);
  }
  // Never null, and in the order of an index, which has no place for nulls at the other end.
  const nulls = expression === "created_at" ? "" : " NULLS LAST";
  return `${expression} ${sortOrder}${nulls}, ${id} ${sortOrder}`;
}
