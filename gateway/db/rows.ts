import { query, type Client, type Pool } from "./pool.ts";

/** A row as its columns' names and values. Names come from code, never from input. */
export type Row = Readonly<Record<string, unknown>>;

/** Columns that hold JSON: node-postgres would send an array as a Postgres array. */
const JSON_COLUMNS = new Set([
  "metadata",
  "aliases",
  "permissions",
  "model_max_budget",
  "model_rpm_limit",
  "model_tpm_limit",
  "model_aliases",
  "before",
  "after",
]);

function parameter(column: string, value: unknown): unknown {
  return JSON_COLUMNS.has(column) && value !== null
    ? JSON.stringify(value)
    : value;
}

/** Inserts a row and answers it as stored; null where `onConflict` made it do nothing. */
export async function insertRow(
  client: Client | Pool,
  table: string,
  row: Row,
  onConflict: "" | "ON CONFLICT DO NOTHING" = "",
): Promise<Row | null> {
  const columns = Object.keys(row).filter(
    (column) => row[column] !== undefined,
  );
  const [stored] = await query<Row>(
    client,
    `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map((_, at) => `$${at + 1}`).join(", ")})
       ${onConflict} RETURNING *`,
    columns.map((column) => parameter(column, row[column])),
  );
  return stored ?? null;
}

/** Sets columns of the rows whose `where` columns have these values; answers them as stored. */
export async function updateRows(
  client: Client | Pool,
  table: string,
  where: Row,
  changes: Row,
): Promise<readonly Row[]> {
  const set = Object.keys(changes).filter(
    (column) => changes[column] !== undefined,
  );
  const by = Object.keys(where);
  return query<Row>(
    client,
    `UPDATE ${table} SET ${[...set.map((column, at) => `${column} = $${at + 1}`), "updated_at = now()"].join(", ")}
       WHERE ${by.map((column, at) => `${column} = $${set.length + at + 1}`).join(" AND ")} RETURNING *`,
    [
      ...set.map((column) => parameter(column, changes[column])),
      ...by.map((column) => where[column]),
    ],
  );
}

/** Rows whose columns have these values. */
export async function findRows(
  client: Client | Pool,
  table: string,
  where: Row,
  order = "",
): Promise<readonly Row[]> {
  const by = Object.keys(where);
  return query<Row>(
    client,
    `SELECT * FROM ${table} WHERE ${by.map((column, at) => `${column} = $${at + 1}`).join(" AND ")} ${order}`,
    by.map((column) => where[column]),
  );
}
