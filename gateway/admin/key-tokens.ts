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

/** The current hashes of the keys that arguments name, also by a previous secret or hash. */
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
 * Throws 404 for a previous secret that no longer works: a caller that blocks a leaked secret does not mean the key that
 * continues under another one.
 */
export async function rejectReplaced(
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
      `The secret ending in ${one.slice(-4)} was replaced and no longer works. To stop the key itself, name it by its current secret or hash: GET /key/info?key= with the previous hash shows it.`,
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
    // Never the key itself: messages end up in logs.
    if (error instanceof CallError) {
      throw new CallError(
        "unknown_object",
        `Key ending in ${keyOrHash.slice(-4)} not found. GET /key/list lists the keys.`,
        { param: "key" },
      );
    }
    throw error;
  }
}
