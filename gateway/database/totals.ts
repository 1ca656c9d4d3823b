import type { Counter } from "../ledger/payers.ts";
import {
  groupsOf,
  windowsOf,
  type EntityWindow,
  type SpendRow,
} from "../ledger/rows.ts";
import { LIFETIME, windowAt } from "../ledger/budget-windows.ts";
import { CLOCK_MS } from "./journal-marks.ts";
import { query, repeatedQuery, type Client, type Pool } from "./pool.ts";

/** A payer's total in one window, as the ledger has it; version 0 when it has no row yet. Dollars. */
export interface Total {
  readonly entity: string;
  readonly window: string;
  readonly spend: number;
  readonly version: number;
}

/** A soft budget that was reached. */
export interface SoftBudget {
  readonly entity: string;
  readonly spend: number;
  readonly threshold: number;
}

/** Settings that determine budget windows in addition to the payers' durations. */
export interface Windowing {
  readonly timeZone: string;
  /** `budget_duration` of the whole proxy. */
  readonly proxyDuration: string | null;
}

/**
 * Held while sums change, so that two instances never wait for each other's rows in opposite order, and a window that is
 * summed has no gap: rows that others inserted and have not committed are added to it when they get the lock.
 */
export const LEDGER_LOCK = 0x68_65_61_72;
/** Its holder waits at most this long for any other lock, since all other instances wait for it. */
const OTHER_LOCKS_MS = 1_000;
const LEDGER_LOCK_MS = 10_000;

/**
 * Until the end of the transaction no other session changes a sum. Throws {@link DatabaseUnavailable} when another transaction
 * holds the lock for longer than `waitMs`, and so do later statements that wait long for a lock.
 *
 * The table comes first, as in transactions that insert rows and then wait for their turn: in opposite order, they and one
 * that drops a month would wait for each other. Of the table alone: months that are being archived are locked for long.
 */
export async function lockLedger(
  client: Client,
  waitMs = LEDGER_LOCK_MS,
): Promise<void> {
  await query(
    client,
    `SET LOCAL lock_timeout = ${waitMs};
     LOCK TABLE ONLY spend_log IN ROW EXCLUSIVE MODE`,
  );
  await lockWithin(client, LEDGER_LOCK, waitMs, OTHER_LOCKS_MS);
}

/** Until the end of the transaction no statement waits longer than `ms` for a lock: it throws {@link DatabaseUnavailable}. */
export async function limitLockWaits(
  client: Client,
  ms: number,
): Promise<void> {
  await query(client, `SET LOCAL lock_timeout = ${ms}`);
}

/** Takes an advisory lock until the end of the transaction; from then on no statement waits longer than `othersMs` for one. */
export async function lockWithin(
  client: Client,
  lock: number,
  waitMs: number,
  othersMs = waitMs,
): Promise<void> {
  // Three statements in one round trip.
  await query(
    client,
    `SET LOCAL lock_timeout = ${waitMs};
     SELECT pg_advisory_xact_lock(${lock});
     SET LOCAL lock_timeout = ${othersMs}`,
  );
}

/** The budget durations that payers have now; those without one are left out. */
export async function durationsOf(
  from: Pool | Client,
  entities: readonly string[],
  { proxyDuration }: Pick<Windowing, "proxyDuration">,
): Promise<ReadonlyMap<string, string>> {
  const found = await repeatedQuery<{
    entity: string;
    budget_duration: string;
  }>(
    from,
    "SELECT entity, budget_duration FROM budgets_of($1) WHERE budget_duration IS NOT NULL",
    [entities],
  );
  const durations = new Map(
    found.map((row) => [row.entity, row.budget_duration]),
  );
  if (proxyDuration !== null && entities.includes("proxy:")) {
    durations.set("proxy:", proxyDuration);
  }
  return durations;
}

/**
 * Versions follow the clock: a database that took the place of another and lacks its last transactions gives a total a higher
 * version than those had, even if it changes less often.
 */
const NEXT_VERSION = `greatest(t.version + 1, ${CLOCK_MS})`;

const SEED_WINDOWS = `
  INSERT INTO spend_totals (entity, window_name, window_start, window_end, spend, version, time_zone)
  WITH missing AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[]) AS w(entity, window_name, window_start, window_end)
      WHERE NOT EXISTS (SELECT FROM spend_totals t WHERE t.entity = w.entity AND t.window_name = w.window_name)
  )
  SELECT entity, window_name, window_start, window_end, s.spend, ${CLOCK_MS}, $5
    FROM (SELECT array_agg(entity) AS entities, array_agg(window_start) AS starts, array_agg(window_end) AS ends FROM missing) all_missing
      CROSS JOIN LATERAL spend_of_windows(entities, starts, ends) s
      JOIN missing USING (entity, window_start, window_end)`;

/**
 * Gives windows that have no total yet the sum of their rows. Under the ledger lock: from here on every row that belongs to
 * a window is added to it, so a window is correct from its start, whatever the payer's previous duration.
 */
export async function seedWindows(
  client: Client,
  windows: readonly EntityWindow[],
  timeZone: string,
): Promise<void> {
  if (windows.length === 0) {
    return;
  }
  await query(client, SEED_WINDOWS, [
    windows.map(({ entity }) => entity),
    windows.map(({ window }) => window.name),
    windows.map(({ window }) => new Date(window.start).toISOString()),
    windows.map(({ window }) => new Date(window.end).toISOString()),
    timeZone,
  ]);
}

/** Seeds the windows that rows will fall into, before the rows are inserted; takes the ledger lock only if one is missing. */
export async function seedWindowsOfRows(
  client: Client,
  rows: readonly SpendRow[],
  windowing: Windowing,
): Promise<void> {
  const groups = groupsOf(rows);
  const entities = [...new Set(groups.flatMap(({ entities }) => entities))];
  const durations = await durationsOf(client, entities, windowing);
  const windows = windowsOf(groups, durations, windowing.timeZone);
  if (await isAnyMissing(client, windows)) {
    await lockLedger(client, OTHER_LOCKS_MS);
    await seedWindows(client, windows, windowing.timeZone);
  }
}

async function isAnyMissing(
  client: Client,
  windows: readonly EntityWindow[],
): Promise<boolean> {
  if (windows.length === 0) {
    return false;
  }
  const [known] = await repeatedQuery<{ count: number }>(
    client,
    `SELECT count(*) FROM spend_totals
       WHERE (entity, window_name) IN (SELECT * FROM unnest($1::text[], $2::text[]))`,
    [
      windows.map(({ entity }) => entity),
      windows.map(({ window }) => window.name),
    ],
  );
  return known?.count !== windows.length;
}

/** Seeds the windows that are open now of payers whose duration may have changed, and notifies every instance. */
export async function seedCurrentWindows(
  client: Client,
  entities: readonly string[],
  windowing: Windowing,
  now: number,
): Promise<void> {
  await lockLedger(client);
  const durations = await durationsOf(client, entities, windowing);
  await seedWindows(
    client,
    [...durations]
      .map(([entity, duration]) => ({
        entity,
        window: windowAt(duration, now, windowing.timeZone),
      }))
      .filter(({ window }) => window !== LIFETIME),
    windowing.timeZone,
  );
  await announceTotals(client, [...durations.keys()]);
}

/** Every instance reads these payers' totals again when the transaction commits. */
export async function announceTotals(
  client: Client,
  entities: readonly string[],
): Promise<void> {
  await query(
    client,
    "SELECT pg_notify('hearth_changes', 'spend_totals:' || entity) FROM unnest($1::text[]) AS entity",
    [entities],
  );
}

const ADD_TOTALS = `
  WITH groups AS (
    SELECT id, sum(spend) AS spend FROM unnest($1::int[], $2::numeric[]) AS r(id, spend) GROUP BY 1
  ), charges AS (
    SELECT entity, at, sum(spend) AS spend
    FROM unnest($3::int[], $4::text[], $5::timestamptz[]) AS p(id, entity, at) JOIN groups USING (id) GROUP BY 1, 2
  ), lifetimes AS (
    INSERT INTO spend_totals AS t (entity, window_name, window_start, window_end, spend, version)
    SELECT entity, 'all', '-infinity', 'infinity', sum(spend), ${CLOCK_MS} FROM charges GROUP BY 1
    ON CONFLICT (entity, window_name) DO UPDATE SET spend = t.spend + excluded.spend, version = ${NEXT_VERSION}
    RETURNING t.entity, t.window_name, t.spend, t.version
  ), windows AS (
    UPDATE spend_totals t SET spend = t.spend + c.spend, version = ${NEXT_VERSION}
    FROM (
      SELECT w.entity, w.window_name, sum(c.spend) AS spend
      FROM charges c JOIN spend_totals w
        ON w.entity = c.entity AND w.window_name <> 'all' AND w.window_end > c.at AND w.window_start <= c.at
      GROUP BY 1, 2) c
    WHERE t.entity = c.entity AND t.window_name = c.window_name
    RETURNING t.entity, t.window_name, t.spend, t.version
  ), changed AS (
    SELECT c.*, coalesce(c.spend - a.spend, 0) AS before
    FROM (SELECT * FROM lifetimes UNION ALL SELECT * FROM windows) c
    JOIN (SELECT entity, sum(spend) AS spend FROM charges GROUP BY 1) a ON a.entity = c.entity
  ), told AS (
    INSERT INTO notices (kind, entity, window_name, spend, threshold)
    SELECT 'soft_budget', c.entity, c.window_name, c.spend, b.soft_budget
    FROM changed c
    JOIN budgets_of(ARRAY(SELECT DISTINCT entity FROM charges)) b ON b.entity = c.entity AND b.soft_budget IS NOT NULL
      AND coalesce(nullif(b.budget_duration, '-1'), 'all') = split_part(c.window_name, '@', 1)
    WHERE c.spend >= b.soft_budget
      -- One that was set below the spend is never crossed.
      AND (c.before < b.soft_budget OR NOT EXISTS (
        SELECT FROM notices n WHERE n.kind = 'soft_budget' AND n.entity = c.entity
          AND n.window_name = c.window_name AND n.threshold = b.soft_budget))
    RETURNING entity, spend, threshold
  )
  SELECT entity, window_name AS window, spend, version, NULL::numeric AS threshold FROM windows
  UNION ALL SELECT entity, NULL, spend, NULL, threshold FROM told`;

interface Added {
  /** Totals of budget windows that changed. */
  readonly windows: readonly Total[];
  readonly softBudgets: readonly SoftBudget[];
}

/**
 * Adds rows that were really inserted to every total that they belong to: lifetime totals, and existing windows. The sums
 * are computed in SQL, where money is exact.
 */
export async function addTotals(
  client: Client,
  rows: readonly SpendRow[],
): Promise<Added> {
  const groups = groupsOf(rows);
  const payers = groups.flatMap(({ entities, second }, id) => {
    const at = new Date(second).toISOString();
    return entities.map((entity) => ({ id, entity, at }));
  });
  const returned = await repeatedQuery<
    Total & { readonly threshold: number | null }
  >(client, ADD_TOTALS, [
    groups.flatMap(({ rows }, id) => rows.map(() => id)),
    groups.flatMap(({ rows }) => rows.map(({ spend }) => String(spend))),
    payers.map(({ id }) => id),
    payers.map(({ entity }) => entity),
    payers.map(({ at }) => at),
  ]);
  return {
    windows: returned.filter((row) => row.threshold === null),
    softBudgets: returned.flatMap(({ entity, spend, threshold }) =>
      threshold === null ? [] : [{ entity, spend, threshold }],
    ),
  };
}

/**
 * Totals of counters, in the same order; one that the ledger does not know is 0. Once lost rows were written again, every total
 * is newer than those read before.
 */
export async function readTotals(
  from: Pool | Client,
  counters: readonly Counter[],
): Promise<readonly Total[]> {
  if (counters.length === 0) {
    return [];
  }
  return repeatedQuery<Total>(
    from,
    `SELECT c.entity, c.window_name AS window, coalesce(t.spend, 0) AS spend, greatest(t.version, r.version) AS version
       FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS c(entity, window_name, position)
       CROSS JOIN (SELECT coalesce(max(restored_at), 0) AS version FROM journal_marks) r
       LEFT JOIN spend_totals t USING (entity, window_name)
       ORDER BY c.position`,
    [
      counters.map((counter) => counter.entity),
      counters.map((counter) => counter.window),
    ],
  );
}

/** The counters of payers that can still change: lifetime totals and open windows. */
export async function openCounters(
  from: Pool | Client,
  entities: readonly string[],
): Promise<readonly Counter[]> {
  return query<Counter>(
    from,
    `SELECT entity, window_name AS window FROM spend_totals
       WHERE entity = ANY($1) AND (window_name = 'all' OR window_end > now())`,
    [entities],
  );
}
