import { DAY_MS } from "../../core/duration.ts";
import { partitionOf } from "./partitions.ts";
import {
  longQuery,
  query,
  transaction,
  type Client,
  type Pool,
} from "./pool.ts";
import { limitLockWaits, lockLedger, lockWithin } from "./totals.ts";

/** The lock of instances that archive. */
const ARCHIVE_LOCK = 0x68_65_61_64;
const LOCK_TIMEOUT_MS = 1_000;
/** Half of what a drain waits: one behind it in the queue of the table gets its turn, also when a `pg_dump` keeps this from its. */
const TABLE_LOCK_MS = 500;
/** Archiving a month of ten million rows takes about a minute. */
const ARCHIVE_TIMEOUT_MS = 900_000;
/** Windows shorter than a day are closed and forgotten before their rows are. */
const AT_LEAST_MS = 2 * DAY_MS;
const DELETED_AT_ONCE = 10_000;

/**
 * Drops the monthly partitions of `spend_log` whose last day is more than `days` ago, once their sums are in
 * `spend_archive`: every total stays the sum of its rows. Answers the months dropped, `2026-01`.
 */
export async function dropOldSpend(
  pool: Pool,
  days: number,
  now: number,
): Promise<readonly string[]> {
  const partitions = await query<{ name: string }>(
    pool,
    "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'spend_log'::regclass ORDER BY 1",
  );
  const dropped: string[] = [];
  for (const { name } of partitions) {
    const month = name.slice("spend_log_".length).replace("_", "-");
    const [year = 0, number = 0] = month.split("-").map(Number);
    if (Date.UTC(year, number, 1) + days * DAY_MS > now) {
      continue;
    }
    const gone = await transaction(pool, (client) =>
      archive(client, month, now),
    );
    if (gone) {
      dropped.push(month);
    }
  }
  return dropped;
}

/**
 * False if another instance was faster, or calls of the month ended too recently. The sums are computed without the
 * ledger lock, under a lock that delays only late rows of this month. Dropping waits only briefly for its lock on the
 * whole ledger: while a `pg_dump` runs this fails, and the next round retries.
 */
async function archive(
  client: Client,
  month: string,
  now: number,
): Promise<boolean> {
  await lockWithin(client, ARCHIVE_LOCK, LOCK_TIMEOUT_MS);
  const partition = partitionOf(month);
  const [found] = await query<{ there: boolean }>(
    client,
    "SELECT to_regclass($1) IS NOT NULL AS there",
    [partition],
  );
  if (found?.there !== true) {
    return false;
  }
  await query(client, `LOCK TABLE ${partition} IN SHARE MODE`);
  const [last] = await longQuery<{ at: Date | null }>(
    client,
    `SELECT max(ended_at) AS at FROM ${partition}`,
    ARCHIVE_TIMEOUT_MS,
  );
  const lastEnd = last?.at?.getTime() ?? -Infinity;
  if (lastEnd > now - AT_LEAST_MS) {
    return false;
  }
  await longQuery(
    client,
    `INSERT INTO spend_archive (month, day, ended_at, payer, api_key, user_id, user_pays, team_id, organization_id, end_user, tags, model_group, spend, calls)
       SELECT '${month}-01', day, min(ended_at), payer, api_key, user_id, user_pays, team_id, organization_id, end_user, tags, model_group, sum(spend), count(*)
         FROM ${partition} GROUP BY day, payer, api_key, user_id, user_pays, team_id, organization_id, end_user, tags, model_group`,
    ARCHIVE_TIMEOUT_MS,
  );
  // Before the ledger lock, whose holders and waiters all have their own lock on the table.
  await limitLockWaits(client, TABLE_LOCK_MS);
  await query(client, "LOCK TABLE ONLY spend_log IN ACCESS EXCLUSIVE MODE");
  await lockLedger(client, LOCK_TIMEOUT_MS);
  // Ended windows that overlap the month can no longer be summed by the hour, and no query needs them.
  if (Number.isFinite(lastEnd)) {
    await query(
      client,
      "DELETE FROM spend_totals WHERE window_name <> 'all' AND window_end <= $1 AND window_start <= $2",
      [new Date(now).toISOString(), new Date(lastEnd).toISOString()],
    );
  }
  await query(client, `DROP TABLE ${partition}`);
  return true;
}

/** Months with rows that were dropped after they were summed, `2026-01`: none of these rows may be added again. */
export async function archivedMonths(pool: Pool): Promise<ReadonlySet<string>> {
  const rows = await query<{ month: string }>(
    pool,
    "SELECT DISTINCT to_char(month, 'YYYY-MM') AS month FROM spend_archive",
  );
  return new Set(rows.map(({ month }) => month));
}

/** Deletes audit entries older than `days`, in small steps; answers how many. */
export async function dropOldAudit(
  pool: Pool,
  days: number,
  now: number,
): Promise<number> {
  const before = new Date(now - days * DAY_MS).toISOString();
  for (let sum = 0; ;) {
    const gone = await query(
      pool,
      `DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE at < $1 ORDER BY at LIMIT ${DELETED_AT_ONCE}) RETURNING id`,
      [before],
    );
    sum += gone.length;
    if (gone.length < DELETED_AT_ONCE) {
      return sum;
    }
  }
}

/** Deletes stored prompts and answers older than `days`, in small steps. */
export async function dropOldPrompts(
  pool: Pool,
  days: number,
  now: number,
): Promise<void> {
  await deleteInSteps(
    pool,
    `DELETE FROM prompts WHERE request_id IN (SELECT request_id FROM prompts WHERE started_at < $1 LIMIT ${DELETED_AT_ONCE}) RETURNING 1`,
    [new Date(now - days * DAY_MS).toISOString()],
  );
}

/**
 * Deletes expired responses and conversations, in small steps. A response stays while one that continues it, or continues the
 * same one, has not expired.
 */
export async function dropExpiredResponses(
  pool: Pool,
  now: number,
): Promise<void> {
  const at = [new Date(now).toISOString()];
  await deleteInSteps(
    pool,
    `DELETE FROM responses WHERE response_id IN (
       SELECT response_id FROM responses r WHERE expires_at < $1 AND NOT EXISTS (
         SELECT FROM responses later WHERE later.root_id = r.root_id AND (later.expires_at IS NULL OR later.expires_at >= $1))
       LIMIT ${DELETED_AT_ONCE}) RETURNING 1`,
    at,
  );
  await deleteInSteps(
    pool,
    `DELETE FROM conversations WHERE conversation_id IN (
       SELECT conversation_id FROM conversations WHERE expires_at < $1 LIMIT ${DELETED_AT_ONCE}) RETURNING 1`,
    at,
  );
}

const RETENTION_ROUND = "retention_at";

/** When a gateway last completed a round of retention, by its clock, in ms since the epoch; null: never. */
export async function lastRetention(pool: Pool): Promise<number | null> {
  const [row] = await query<{ value: string }>(
    pool,
    "SELECT value FROM ledger_settings WHERE name = $1",
    [RETENTION_ROUND],
  );
  return row === undefined ? null : Number(row.value);
}

export async function recordRetention(pool: Pool, at: number): Promise<void> {
  await query(
    pool,
    `INSERT INTO ledger_settings (name, value) VALUES ($1, $2)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    [RETENTION_ROUND, String(at)],
  );
}

async function deleteInSteps(
  pool: Pool,
  statement: string,
  values: readonly unknown[],
): Promise<void> {
  for (;;) {
    const gone = await query(pool, statement, values);
    if (gone.length < DELETED_AT_ONCE) {
      return;
    }
  }
}
