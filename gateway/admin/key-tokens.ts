import { hashKey, isKeyHash } from "../access/keys.ts";
import { query, type Client, type Pool } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { Admin } from "./admin-route.ts";
import { KEY } from "./kinds/key.ts";
import { findOne } from "./payers.ts";

/** The hash that an argument names: a key itself or its hash. */
export function tokenOf(keyOrHash: string): string {
  return isKeyHash(keyOrHash) ? keyOrHash : hashKey(keyOrHash);
}

/** The hashes of the keys that arguments name: one is found by a secret that it had before, too. */
export async function tokensNow(
  from: Pool | Client,
  named: readonly string[],
): Promise<readonly string[]> {
  const rows = await query<{ token: string }>(
    from,
    `SELECT coalesce(renamed.token, hash) AS token
      FROM unnest($1::text[]) WITH ORDINALITY AS given (hash, at)
      LEFT JOIN rotated_keys renamed ON renamed.old_token = hash ORDER BY at`,
    [named.map(tokenOf)],
  );
  return rows.map((row) => row.token);
}

/**
 * Throws 404 for a former secret that opens nothing any more: who stops what it leaked does not mean the key that goes on
 * under another.
 */
export async function refuseReplaced(
  { now }: Admin,
  from: Pool | Client,
  param: "key" | "keys",
  named: readonly string[],
): Promise<void> {
  const ended = await query<{ old_token: string }>(
    from,
    "SELECT old_token FROM rotated_keys WHERE old_token = ANY($1) AND valid_until <= $2",
    [named.map(tokenOf), new Date(now)],
  );
  const one = named.find((name) =>
    ended.some((row) => row.old_token === tokenOf(name)),
  );
  if (one !== undefined) {
    throw new CallError(
      "unknown_object",
      `The secret ending in ${one.slice(-4)} was replaced and opens nothing any more. To stop the key itself, name it by its secret or hash of now: GET /key/info?key= with the former hash tells it.`,
      { param },
    );
  }
}

export async function findKey(
  from: Pool | Client,
  keyOrHash: string,
): Promise<Row> {
  const [token] = await tokensNow(from, [keyOrHash]);
  try {
    return await findOne(from, KEY, { token });
  } catch (error) {
    // Never the key itself: sentences end up in logs.
    if (error instanceof CallError) {
      throw new CallError(
        "unknown_object",
        `There is no key ending in ${keyOrHash.slice(-4)}. List those there are with GET /key/list.`,
        { param: "key" },
      );
    }
    throw error;
  }
}
