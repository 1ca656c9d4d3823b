import { setImmediate as nextTurn } from "node:timers/promises";
import type { SpendRow } from "../ledger/rows.ts";
import { moveMark, type MarkStep } from "./journal-marks.ts";
import { addToModelHours } from "./model-hours.ts";
import { ensurePartitions, isPartitionMissing } from "./partitions.ts";
import { query, transaction, type Client, type Pool } from "./pool.ts";
import {
  addTotals,
  LEDGER_LOCK,
  limitLockWaits,
  readTotals,
  seedWindowsOfRows,
  type SoftBudget,
  type Total,
} from "./totals.ts";
import { type Counter } from "../ledger/payers.ts";

const COLUMNS = `request_id text, started_at timestamptz, ended_at timestamptz, completion_started_at timestamptz,
  day date, call_type text, status text, payer text, api_key text, user_id text, user_pays boolean, team_id text,
  organization_id text, end_user text, tags text[], model_group text, model_id text, model text, provider text, spend numeric, saved numeric,
  unpriced boolean, prompt_tokens bigint, completion_tokens bigint, cached_tokens bigint, cache_write_tokens bigint,
  cache_hit boolean, cache_key text, response_id text, session_id text, requester_ip text, metadata jsonb,
  cost_lines json, waited_ms integer`;
const NAMES = COLUMNS.split(",")
  .map((column) => column.trim().split(" ")[0])
  .join(", ");
const SUMS = {
  spend: "sum(spend)",
  saved: "sum(saved)",
  prompt_tokens: "sum(prompt_tokens)",
  completion_tokens: "sum(completion_tokens)",
  cached_tokens: "sum(cached_tokens)",
  cache_write_tokens: "sum(cache_write_tokens)",
  requests: "count(*)",
  successful: "count(*) FILTER (WHERE status = 'success')",
  failed: "count(*) FILTER (WHERE status = 'failure')",
  interrupted: "count(*) FILTER (WHERE status = 'interrupted')",
  cache_hits: "count(*) FILTER (WHERE cache_hit)",
  unpriced: "count(*) FILTER (WHERE unpriced)",
} as const;

/** Adds rows of `from` to a daily table whose key is the day and `keys`; empty text means none. */
function addToDaily(
  table: string,
  keys: readonly string[],
  from: string,
): string {
  const sums = Object.keys(SUMS);
  return `INSERT INTO ${table} (day, ${keys.join(", ")}, ${sums.join(", ")})
    SELECT day, ${keys.map((key) => `coalesce(${key}, '')`).join(", ")}, ${Object.values(SUMS).join(", ")}
    FROM ${from} WHERE payer IS NULL
    GROUP BY day, ${keys.join(", ")}
    ON CONFLICT (day, ${keys.join(", ")}) DO UPDATE
      SET ${sums.map((sum) => `${sum} = ${table}.${sum} + excluded.${sum}`).join(", ")}`;
}

/** Adds ledger rows (a table or subquery with the columns of `spend_log`) to `daily_spend`. */
export function addToDailySpend(from: string): string {
  return addToDaily(
    "daily_spend",
    [
      "api_key",
      "user_id",
      "team_id",
      "organization_id",
      "end_user",
      "model_group",
      "model",
      "provider",
    ],
    from,
  );
}

/** Adds ledger rows to `daily_tag_spend`, once for each of their tags. */
export function addToDailyTagSpend(from: string): string {
  return addToDaily(
    "daily_tag_spend",
    ["tag", "api_key", "model_group", "model", "provider"],
    `${from} CROSS JOIN LATERAL (SELECT DISTINCT unnest(tags) AS tag) AS t`,
  );
}

/**
 * The ledger lock is taken once all rows are inserted, which is most of the work and needs no turn, and before the first sum
 * changes: the count reads every inserted row, and the sums read `locked`. `ON CONFLICT DO UPDATE` adds to sums that were
 * committed while this statement waited.
 */
const INSERT_ROWS = `
  WITH inserted AS (
    INSERT INTO spend_log (${NAMES})
    SELECT ${NAMES} FROM json_to_recordset($1::json) AS r(${COLUMNS})
    ON CONFLICT DO NOTHING
    RETURNING *
  ), locked AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(${LEDGER_LOCK}) FROM (SELECT count(*) FROM inserted) AS all_inserted
  ), daily AS (${addToDailySpend("inserted CROSS JOIN locked")}
  ), daily_tags AS (${addToDailyTagSpend("inserted CROSS JOIN locked")}
  ), model_hours_added AS (${addToModelHours("inserted CROSS JOIN locked")}
  )
  SELECT request_id FROM inserted CROSS JOIN locked`;

/** Calls wait for totals while a drain waits: it retries instead. */
const DRAIN_LOCK_MS = 1_000;

export interface Recorded {
  /** Ids of the rows that were new. */
  readonly inserted: ReadonlySet<string>;
  readonly totals: readonly Total[];
  readonly softBudgets: readonly SoftBudget[];
}

/**
 * Brings rows into the ledger, once however often they are delivered, and adds the new ones to every sum, in one
 * transaction. Answers the totals of `counters`, and of other windows of their payers that changed, as committed. `mark`: the
 * journal's, moved in the same transaction; throws {@link LedgerBehind}.
 */
export async function recordRows(
  pool: Pool,
  delivered: readonly SpendRow[],
  counters: readonly Counter[],
  proxyDuration: string | null,
  timeZone: string,
  mark: MarkStep | null = null,
): Promise<Recorded> {
  const { rows, json } = await holdable(delivered);
  const record = () =>
    transaction(pool, async (client) => {
      await limitLockWaits(client, DRAIN_LOCK_MS);
      const windowing = { proxyDuration, timeZone };
      const { inserted, windows, softBudgets } = await insertRows(
        client,
        rows,
        windowing,
        json,
      );
      const totals = await readTotals(client, counters);
      if (mark !== null) {
        await moveMark(client, mark);
      }
      return {
        inserted,
        softBudgets,
        totals: [...totals, ...othersOf(counters, windows)],
      };
    });
  try {
    return await record();
  } catch (error) {
    // Of a month whose partition retention has dropped, or that was not created ahead.
    if (!isPartitionMissing(error)) {
      throw error;
    }
    await ensurePartitions(pool, rows);
    return record();
  }
}

/**
 * Inserts rows and adds the new ones to every sum, from then on with the ledger lock until the end of the transaction. The
 * partitions are there.
 */
export async function insertRows(
  client: Client,
  rows: readonly SpendRow[],
  windowing: {
    readonly proxyDuration: string | null;
    readonly timeZone: string;
  },
  json = JSON.stringify(rows),
) {
  await seedWindowsOfRows(client, rows, windowing);
  const returned = await query<{ request_id: string }>(client, INSERT_ROWS, [
    json,
  ]);
  const inserted = new Set(returned.map((row) => row.request_id));
  const fresh = rows.filter((row) => inserted.has(row.request_id));
  const added =
    fresh.length === 0
      ? { windows: [], softBudgets: [] }
      : await addTotals(client, fresh);
  return { inserted, ...added };
}

/** Windows of calls that were pending in another window, because their payer's duration changed meanwhile. */
function othersOf(
  counters: readonly Counter[],
  windows: readonly Total[],
): readonly Total[] {
  const entities = new Set(counters.map(({ entity }) => entity));
  const requested = new Set(
    counters.map(({ entity, window }) => `${entity}|${window}`),
  );
  return windows.filter(
    ({ entity, window }) =>
      entities.has(entity) && !requested.has(`${entity}|${window}`),
  );
}

/** Postgres cannot store NUL or half a surrogate pair in text; such characters come only from hostile input. */
const UNSTORABLE = /\\u(?:0000|d[89a-f])/i;

/** Rows written before yielding to calls. */
const ROWS_AT_ONCE = 50;

async function holdable(delivered: readonly SpendRow[]): Promise<{
  readonly rows: readonly SpendRow[];
  readonly json: string;
}> {
  const pieces: string[] = [];
  for (let at = 0; at < delivered.length; at += ROWS_AT_ONCE) {
    if (at > 0) {
      await nextTurn();
    }
    const piece = JSON.stringify(delivered.slice(at, at + ROWS_AT_ONCE));
    pieces.push(piece.slice(1, -1));
  }
  const written = `[${pieces.join(",")}]`;
  if (!written.includes("\\u") || !UNSTORABLE.test(written)) {
    return { rows: delivered, json: written };
  }
  const json = JSON.stringify(delivered, (_, value: unknown) =>
    typeof value === "string"
      ? value.toWellFormed().replaceAll("\0", "\uFFFD")
      : value,
  );
  return { rows: JSON.parse(json) as readonly SpendRow[], json };
}
