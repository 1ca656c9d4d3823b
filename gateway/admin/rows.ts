import { withSpend } from "../db/spend.ts";
import type { Row } from "../db/rows.ts";
import type { Gateway } from "../gateway.ts";

/** Rows of keys as every route shows them: creation fields, spend, never the key. */
export async function keyRows(
  gateway: Gateway,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  return withPayerSpend(gateway, rows, (row) => `key:${row["token"]}`);
}

export async function keyRow(gateway: Gateway, row: Row): Promise<Row> {
  const [shown] = await keyRows(gateway, [row]);
  return shown ?? row;
}

export async function userRows(
  gateway: Gateway,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  return withPayerSpend(gateway, rows, (row) => `user:${row["user_id"]}`);
}

export async function teamRows(
  gateway: Gateway,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  return withPayerSpend(gateway, rows, (row) => `team:${row["team_id"]}`);
}

function withPayerSpend(
  gateway: Gateway,
  rows: readonly Row[],
  entityOf: (row: Row) => string,
): Promise<readonly Row[]> {
  return withSpend(
    gateway.pool,
    rows,
    entityOf,
    gateway.config.general.timezone,
    Date.now(),
  );
}
