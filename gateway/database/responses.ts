import { appendItems, type Addition } from "./conversations.ts";
import { timeOf, UNEXPIRED } from "./expiry.ts";
import {
  CALL_DEADLINE_MS,
  query,
  transaction,
  within,
  type Client,
  type Pool,
} from "./pool.ts";

/** A stored response. */
export interface ResponseRow {
  readonly response_id: string;
  readonly owner: string;
  readonly previous_id: string | null;
  readonly root_id: string;
  readonly conversation_id: string | null;
  readonly status: string;
  readonly bytes: number;
  readonly sealed: string;
}

interface NewResponse extends ResponseRow {
  /** Ms since the epoch, as the next. */
  readonly createdAt: number;
  /** null: never. */
  readonly expiresAt: number | null;
  /** How long it counts as running, by the clock of Postgres; null: not in background. */
  readonly leaseMs: number | null;
  readonly itemIds: readonly string[];
}

const COLUMNS =
  "response_id, owner, previous_id, root_id, conversation_id, status, bytes, sealed";
/** Statuses of a response in background that has not ended. */
export const RUNNING = "status IN ('queued', 'in_progress')";

/** Stores a response; with `addition`, its conversation gets its items at the same time. */
export async function insertResponse(
  pool: Pool,
  row: NewResponse,
  addition: Addition | null,
): Promise<void> {
  if (addition === null) {
    await insertRow(pool, row);
    return;
  }
  const both = transaction(pool, async (client) => {
    await insertRow(client, row);
    await appendItems(client, row.owner, addition);
  });
  await within(CALL_DEADLINE_MS, both);
}

function insertRow(
  pool: Pool | Client,
  row: NewResponse,
): Promise<readonly object[]> {
  return query(
    pool,
    `INSERT INTO responses (${COLUMNS}, created_at, expires_at, runs_until, item_ids)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now() + $11::float8 * interval '1 ms', $12)`,
    [
      row.response_id,
      row.owner,
      row.previous_id,
      row.root_id,
      row.conversation_id,
      row.status,
      row.bytes,
      row.sealed,
      timeOf(row.createdAt),
      timeOf(row.expiresAt),
      row.leaseMs,
      row.itemIds,
    ],
  );
}

/** Ends a response in background; false: it had ended already, or was deleted. */
export async function endResponse(
  pool: Pool,
  row: Pick<
    NewResponse,
    "response_id" | "owner" | "status" | "bytes" | "sealed" | "itemIds"
  >,
  addition: Addition | null,
): Promise<boolean> {
  const ending = transaction(pool, async (client) => {
    const ended = await query(
      client,
      `UPDATE responses SET status = $2, bytes = $3, sealed = $4, item_ids = $5, runs_until = NULL
         WHERE response_id = $1 AND ${RUNNING} RETURNING 1`,
      [row.response_id, row.status, row.bytes, row.sealed, row.itemIds],
    );
    if (ended.length > 0 && addition !== null) {
      await appendItems(client, row.owner, addition);
    }
    return ended.length > 0;
  });
  return within(CALL_DEADLINE_MS, ending);
}

/** Marks responses in background as running, for `leaseMs` from now; answers those that had not ended. */
export async function extendRunning(
  pool: Pool,
  ids: readonly string[],
  leaseMs: number,
): Promise<ReadonlySet<string>> {
  const rows = await query<{ response_id: string }>(
    pool,
    `UPDATE responses SET status = 'in_progress', runs_until = now() + $2::float8 * interval '1 ms'
       WHERE response_id = ANY($1) AND ${RUNNING} RETURNING response_id`,
    [ids, leaseMs],
  );
  return new Set(rows.map(({ response_id }) => response_id));
}

/** A response with whether it runs in background without a sign of its gateway. */
export async function findResponse(
  pool: Pool,
  owner: string,
  id: string,
): Promise<(ResponseRow & { readonly abandoned: boolean }) | null> {
  const [row] = await query<ResponseRow & { readonly abandoned: boolean }>(
    pool,
    `SELECT ${COLUMNS}, ${RUNNING} AND runs_until < now() AS abandoned
       FROM responses WHERE response_id = $1 AND owner = $2 AND ${UNEXPIRED}`,
    [id, owner],
  );
  return row ?? null;
}

/**
 * A response and those that it continues, the first one first. Empty: there is none. Ends after the last one that is
 * there, or that `most` permits.
 */
export async function chainOf(
  pool: Pool,
  owner: string,
  id: string,
  most: { readonly responses: number; readonly bytes: number },
): Promise<readonly ResponseRow[]> {
  return query<ResponseRow>(
    pool,
    `WITH RECURSIVE chain AS (
         SELECT ${COLUMNS}, 1 AS depth, bytes::bigint AS sum
           FROM responses WHERE response_id = $1 AND owner = $2 AND ${UNEXPIRED}
         UNION ALL
         SELECT r.response_id, r.owner, r.previous_id, r.root_id, r.conversation_id, r.status, r.bytes, r.sealed,
             c.depth + 1, c.sum + r.bytes
           FROM chain c JOIN responses r ON r.response_id = c.previous_id AND r.owner = $2
           WHERE c.depth < $3 AND c.sum <= $4
       )
       SELECT ${COLUMNS} FROM chain ORDER BY depth DESC`,
    [id, owner, most.responses, most.bytes],
  );
}

/** The newest responses that have items of these ids, with those of the ids that they have. */
export async function responsesWithItems(
  pool: Pool,
  owner: string,
  itemIds: readonly string[],
  most: number,
): Promise<readonly { readonly id: string; readonly has: string[] }[]> {
  return query(
    pool,
    `SELECT response_id AS id, ARRAY(SELECT unnest(item_ids) INTERSECT SELECT unnest($2::text[])) AS has FROM responses
       WHERE item_ids && $2 AND owner = $1 AND ${UNEXPIRED} ORDER BY created_at DESC LIMIT $3`,
    [owner, itemIds, most],
  );
}

export async function responsesOf(
  pool: Pool,
  ids: readonly string[],
): Promise<readonly ResponseRow[]> {
  return query<ResponseRow>(
    pool,
    `SELECT ${COLUMNS} FROM responses WHERE response_id = ANY($1)`,
    [ids],
  );
}
