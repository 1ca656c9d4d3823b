import { UNEXPIRED } from "./expiry.ts";
import { query, type Pool } from "./pool.ts";
import { RUNNING } from "./responses.ts";

/** Events of a response that were written together. */
interface EventRow {
  /** `sequence_number` of the last one. */
  readonly last_number: number;
  readonly sealed: string;
}

/** A response as one that follows it sees it. */
interface FollowedRow {
  /** false: it has ended, or its gateway is lost; no events will be added. */
  readonly isRunning: boolean;
  readonly events: readonly EventRow[];
}

/** Adds events to a response in background; false: it has ended, or was deleted. */
export async function appendEvents(
  pool: Pool,
  id: string,
  { last_number, sealed }: EventRow,
): Promise<boolean> {
  // The lock lets the end of the response wait: after it, no event is added.
  const added = await query(
    pool,
    `INSERT INTO response_events (response_id, last_number, sealed)
       SELECT response_id, $2, $3 FROM responses WHERE response_id = $1 AND ${RUNNING} FOR SHARE RETURNING 1`,
    [id, last_number, sealed],
  );
  return added.length > 0;
}

/** The rows with events after a number, the first ones first, at most `limit`; null: there is no such response. */
export async function eventsAfter(
  pool: Pool,
  owner: string,
  id: string,
  after: number,
  limit: number,
): Promise<FollowedRow | null> {
  const rows = await query<{
    readonly running: boolean;
    readonly last_number: number | null;
    readonly sealed: string;
  }>(
    pool,
    `SELECT ${RUNNING} AND runs_until >= now() AS running, last_number, e.sealed
       FROM responses r LEFT JOIN response_events e ON e.response_id = r.response_id AND e.last_number > $3
       WHERE r.response_id = $1 AND owner = $2 AND ${UNEXPIRED} ORDER BY last_number LIMIT $4`,
    [id, owner, after, limit],
  );
  const [first] = rows;
  return first === undefined
    ? null
    : {
        isRunning: first.running,
        events: rows.flatMap(({ last_number, sealed }) =>
          last_number === null ? [] : [{ last_number, sealed }],
        ),
      };
}

/** The number of the last event of a response; null: it was not created with `stream`. */
export async function lastEvent(
  pool: Pool,
  id: string,
): Promise<number | null> {
  const [row] = await query<{ readonly last: number | null }>(
    pool,
    "SELECT max(last_number) AS last FROM response_events WHERE response_id = $1",
    [id],
  );
  return row?.last ?? null;
}
