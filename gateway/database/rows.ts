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
  "params",
  "info",
  "credential_info",
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

/** Sets columns of the rows whose `where` columns have these values, null to the column's default; answers them as stored. */
export async function updateRows(
  client: Client | Pool,
  table: string,
  where: Row,
  changes: Row,
): Promise<readonly Row[]> {
  const columns = Object.keys(changes).filter(
    (column) => changes[column] !== undefined,
  );
  const values: unknown[] = [];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const set = columns.map((column) =>
    changes[column] === null
      ? `${column} = DEFAULT`
      : `${column} = ${bind(parameter(column, changes[column]))}`,
  );
  const by = Object.keys(where).map(
    (column) => `${column} = ${bind(where[column])}`,
  );
  return query<Row>(
    client,
    `UPDATE ${table} SET ${[...set, "updated_at = now()"].join(", ")} WHERE ${by.join(" AND ")} RETURNING *`,
    values,
  );
}

/** Deletes the rows whose `where` columns have these values; answers them as they were. */
export async function deleteRows(
  client: Client | Pool,
  table: string,
  where: Row,
): Promise<readonly Row[]> {
  const by = Object.keys(where);
  return query<Row>(
    client,
    `DELETE FROM ${table} WHERE ${by.map((column, at) => `${column} = $${at + 1}`).join(" AND ")} RETURNING *`,
    by.map((column) => where[column]),
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
