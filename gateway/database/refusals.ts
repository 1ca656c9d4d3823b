import { DAY_MS } from "../../core/duration.ts";
import { query, transaction, type Pool } from "./pool.ts";

/** A call that was rejected before a provider was called. */
export interface Refused {
  /** Ms since the epoch. */
  readonly at: number;
  /** Hash of the key; empty for the master key. */
  readonly apiKey: string;
  readonly type: string;
  readonly status: number;
  readonly model: string | null;
  readonly message: string;
}

/** How often calls of a key were rejected for one reason in one hour. */
export interface RefusedHour {
  /** Ms since the epoch, the first of the hour. */
  readonly hour: number;
  readonly apiKey: string;
  readonly type: string;
  readonly count: number;
  readonly lastAt: number;
}

/** Full refusals kept for each key. */
export const KEPT_REFUSALS = 20;

const BATCH = 10_000;

/** Writes refusals, oldest first, and deletes all but the last {@link KEPT_REFUSALS} of a key. */
export async function insertRefusals(
  pool: Pool,
  refused: readonly Refused[],
  hours: readonly RefusedHour[],
): Promise<void> {
  await transaction(pool, async (client) => {
    // In one order, so that two instances never wait for each other's rows.
    await query(
      client,
      `INSERT INTO refusal_hours AS h (hour, api_key, type, count, last_at)
         SELECT to_timestamp(hour / 1000.0), api_key, type, count, to_timestamp(last_at / 1000.0)
           FROM unnest($1::float8[], $2::text[], $3::text[], $4::bigint[], $5::float8[]) AS r(hour, api_key, type, count, last_at)
           ORDER BY 1, 2, 3
         ON CONFLICT (hour, api_key, type) DO UPDATE
           SET count = h.count + excluded.count, last_at = greatest(h.last_at, excluded.last_at)`,
      [
        hours.map(({ hour }) => hour),
        hours.map(({ apiKey }) => apiKey),
        hours.map(({ type }) => type),
        hours.map(({ count }) => count),
        hours.map(({ lastAt }) => lastAt),
      ],
    );
    await query(
      client,
      `INSERT INTO refusals (at, api_key, type, status, model, message)
         SELECT to_timestamp(at / 1000.0), api_key, type, status, model, message
           FROM unnest($1::float8[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::text[]) AS r(at, api_key, type, status, model, message)`,
      [
        refused.map(({ at }) => at),
        refused.map(({ apiKey }) => apiKey),
        refused.map(({ type }) => type),
        refused.map(({ status }) => status),
        refused.map(({ model }) => model),
        refused.map(({ message }) => message),
      ],
    );
    await query(
      client,
      `DELETE FROM refusals WHERE id IN (
         SELECT id FROM (
           SELECT id, row_number() OVER (PARTITION BY api_key ORDER BY id DESC) AS place FROM refusals WHERE api_key = ANY($1)) r
         WHERE place > ${KEPT_REFUSALS})`,
      [[...new Set(refused.map(({ apiKey }) => apiKey))]],
    );
  });
}

/** Deletes refusals and their counts that are older than `days`, in small steps. */
export async function dropOldRefusals(
  pool: Pool,
  days: number,
  now: number,
): Promise<void> {
  const before = new Date(now - days * DAY_MS).toISOString();
  await query(pool, "DELETE FROM refusals WHERE at < $1", [before]);
  for (;;) {
    const gone = await query(
      pool,
      `DELETE FROM refusal_hours WHERE (hour, api_key, type) IN (
         SELECT hour, api_key, type FROM refusal_hours WHERE hour < $1 ORDER BY hour LIMIT ${BATCH}) RETURNING 1`,
      [before],
    );
    if (gone.length < BATCH) {
      return;
    }
  }
}
