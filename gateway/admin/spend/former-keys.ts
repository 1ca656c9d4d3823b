import { query, type Pool } from "../../database/pool.ts";
import type { Admin } from "../admin-route.ts";
import type { Conditions } from "../paging.ts";
import { keepReachable } from "../reachable-rows.ts";

/** All hashes under which a key ever paid, the one it has now first: its rows stay under the hash of their time. */
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

/** Keeps rows that a key paid, under whatever hash. */
export async function ofKey(
  pool: Pool,
  filter: Conditions,
  column: string,
  token: string,
): Promise<void> {
  const [first, ...former] = await hashesOf(pool, token);
  // One value leaves an index in its order, a list of values does not.
  if (former.length === 0) {
    filter.and(`${column} = ?`, first);
  } else {
    filter.and(`${column} = ANY(?)`, [first, ...former]);
  }
}

/** Keeps rows of the ledger, or of its daily sums, that whoever asks may see: all that its key paid, under whatever hash. */
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
  keepReachable(filter, actor, { prefix, key: "api_key" }, tokens);
}

/** To be joined to rows with `api_key`: the hash that their key has now is `KEY_NOW`. */
export const RENAMED =
  "LEFT JOIN rotated_keys renamed ON renamed.old_token = api_key";
export const KEY_NOW = "coalesce(renamed.token, api_key)";

/** What the keys in `dearest` ever paid as: `paid_as`, with the `name` they have now. A key that was rotated on that day is there once. */
export const PAID_AS = `WITH now AS (SELECT DISTINCT coalesce(token, name) AS name FROM dearest LEFT JOIN rotated_keys ON old_token = name)
  SELECT name, name AS paid_as FROM now UNION ALL SELECT token, old_token FROM rotated_keys JOIN now ON token = name`;
