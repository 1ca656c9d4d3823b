import { query, type Pool } from "../../database/pool.ts";
import type { Admin } from "../admin-route.ts";
import type { Conditions } from "../paging.ts";
import { keepReachable } from "../reachable-rows.ts";

/** All hashes of a key, the current one first: rows keep the hash of their time. */
export async function hashesOf(
  pool: Pool,
  token: string,
): Promise<readonly string[]> {
  const former = await query<{ old_token: string }>(
    pool,
    "SELECT old_token FROM rotated_keys WHERE token = $1",
    [token],
  );
  return [token, ...former.map((row) => row.old_token)];
}

/** Keeps the rows of a key, under any of its hashes. */
export async function ofKey(
  pool: Pool,
  filter: Conditions,
  column: string,
  token: string,
): Promise<void> {
  const [first, ...former] = await hashesOf(pool, token);
  // Equality with one value keeps the order of an index; a list of values does not.
  if (former.length === 0) {
    filter.and(`${column} = ?`, first);
  } else {
    filter.and(`${column} = ANY(?)`, [first, ...former]);
  }
}

/** Keeps the rows of the ledger or of its daily sums that the caller may see, under any hash of its key. */
export async function keepReachableSpend(
  admin: Admin,
  filter: Conditions,
  prefix = "",
): Promise<void> {
  if (admin.reachesAll) {
    return;
  }
  const { actor, pool } = admin;
  const tokens = actor.token === null ? [] : await hashesOf(pool, actor.token);
  keepReachable(filter, admin, { prefix, key: "api_key" }, tokens);
}

/** A join for rows with `api_key`; `KEY_NOW` is the current hash of their key. */
export const RENAMED =
  "LEFT JOIN rotated_keys renamed ON renamed.old_token = api_key";
export const KEY_NOW = "coalesce(renamed.token, api_key)";

/** All hashes (`paid_as`) of the keys in `most_expensive`, with their current one (`name`). A key rotated on that day appears once. */
export const PAID_AS = `WITH now AS (SELECT DISTINCT coalesce(token, name) AS name FROM most_expensive LEFT JOIN rotated_keys ON old_token = name)
  SELECT name, name AS paid_as FROM now UNION ALL SELECT token, old_token FROM rotated_keys JOIN now ON token = name`;
