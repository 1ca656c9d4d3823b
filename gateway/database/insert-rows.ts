import type { SpendRow } from "../ledger/rows.ts";
import { addToModelHours } from "./model-hours.ts";
import { repeatedQuery, type Client } from "./pool.ts";
import {
  addTotals,
  LEDGER_LOCK,
  seedWindowsOfRows,
  type Windowing,
} from "./totals.ts";

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

/**
 * Inserts rows and adds the new ones to every sum, from then on with the ledger lock until the end of the transaction. The
 * partitions are there.
 */
export async function insertRows(
  client: Client,
  rows: readonly SpendRow[],
  windowing: Windowing,
  json = JSON.stringify(rows),
) {
  await seedWindowsOfRows(client, rows, windowing);
  const returned = await repeatedQuery<{ request_id: string }>(
    client,
    INSERT_ROWS,
    [json],
  );
  const inserted = new Set(returned.map((row) => row.request_id));
  const fresh = rows.filter((row) => inserted.has(row.request_id));
  const added =
    fresh.length === 0
      ? { windows: [], softBudgets: [] }
      : await addTotals(client, fresh);
  return { inserted, ...added };
}
