import { readFile } from "node:fs/promises";
import pg from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ledgerRow } from "../../test/servers/admin.ts";
import {
  superuserUrl,
  throwAwayDatabase,
} from "../../test/servers/database.ts";
import { windowAt } from "../ledger/budget-windows.ts";
import { recordRows } from "./ledger.ts";
import { ensurePartitions } from "./partitions.ts";
import { createPool, query, type Pool } from "./pool.ts";
import { withClient } from "../../test/servers/with-client.ts";

// A ledger of three years, so that a window's sum shows which partitions it is read from.
const MONTHS = 36;
const KEYS = 1_000;
const NOW = Date.parse("2026-11-23T00:00:05.000Z");
/** Far below the pool's own limit: a statement per window would take several times as long. */
const STATEMENT_LIMIT_MS = 10_000;

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let pool: Pool;

beforeAll(async () => {
  database = await throwAwayDatabase();
  pool = createPool(database.url, 4, pino({ level: "silent" }));
  (pool.options as pg.PoolConfig).statement_timeout = STATEMENT_LIMIT_MS;
  const months = Array.from({ length: MONTHS }, (_, back) =>
    new Date(Date.UTC(2026, 10 - back, 1)).toISOString(),
  );
  await ensurePartitions(
    pool,
    months.map((month) => ({ started_at: month })),
  );
  await query(
    pool,
    `INSERT INTO spend_log (request_id, started_at, ended_at, day, call_type, status, api_key, user_id, model_group, spend)
       SELECT month || ' ' || n, at, at + interval '1 second', at::date, 'acompletion', 'success', 'k' || n, 'u' || n, 'echo', 0.25
         FROM unnest($1::timestamptz[]) AS month, generate_series(1, $2) AS n, LATERAL (SELECT month + n * interval '1 minute' AS at) a`,
    [months, KEYS],
  );
  await query(
    pool,
    `INSERT INTO keys (token, key_name, budget_duration, model_max_budget)
       SELECT 'k' || n, 'sk-...' || n, '1d', '{"echo": {"budget_limit": 1, "time_period": "1w"}}' FROM generate_series(1, $1::int) AS n`,
    [KEYS],
  );
  await query(
    pool,
    "INSERT INTO users (user_id, budget_duration) SELECT 'u' || n, '1mo' FROM generate_series(1, $1::int) AS n",
    [KEYS],
  );
  await query(pool, "ANALYZE spend_log");
});

afterAll(async () => {
  await pool?.end();
  await database?.drop();
});

function callsOfAll(at: number) {
  return Array.from({ length: KEYS }, (_, index) =>
    ledgerRow({
      ended_at: new Date(at).toISOString(),
      api_key: `k${index + 1}`,
      user_id: `u${index + 1}`,
      model_group: "echo",
      spend: 0.5,
    }),
  );
}

async function totalOf(entity: string, duration: string, at: number) {
  const [row] = await query<{ spend: number }>(
    pool,
    "SELECT spend FROM spend_totals WHERE entity = $1 AND window_name = $2",
    [entity, windowAt(duration, at, "UTC").name],
  );
  return row?.spend;
}

test("three windows of 1,000 keys that start together are summed in one statement", async () => {
  const rows = callsOfAll(NOW);
  const { inserted } = await recordRows(pool, rows, [], null, "UTC");
  expect(inserted.size).toBe(KEYS);
  const [windows] = await query<{ count: number }>(
    pool,
    "SELECT count(*) FROM spend_totals WHERE window_name <> 'all'",
  );
  expect(windows?.count).toBe(3 * KEYS);
  expect(await totalOf("key:k7", "1d", NOW)).toBe(0.5);
  expect(await totalOf("key_model:k7/echo", "1w", NOW)).toBe(0.5);
  expect(await totalOf("user:u7", "1mo", NOW)).toBe(0.75);
});

test("the sum of a window waits for no partition outside it", async () => {
  const later = Date.parse("2026-11-24T00:00:05.000Z");
  const { inserted } = await withClient(
    superuserUrl(database.url),
    async (holder) => {
      await holder.query(
        "BEGIN; LOCK TABLE spend_log_2024_02, spend_log_2026_09",
      );
      return recordRows(pool, callsOfAll(later), [], null, "UTC");
    },
  );
  expect(inserted.size).toBe(KEYS);
  expect(await totalOf("key:k9", "1d", later)).toBe(0.5);
});

test("a call that ended months after its start counts in the window of its end", async () => {
  const late = {
    api_key: "late",
    user_id: "late",
    team_id: "t",
    tags: ["a", "a"],
    started_at: "2026-06-30T23:59:59.000Z",
    ended_at: "2026-09-15T10:00:00.000Z",
    spend: 2,
  };
  const early = {
    ...late,
    started_at: "2026-10-01T00:00:01.000Z",
    spend: 4,
    user_pays: false,
    ended_at: "2026-09-30T23:59:59.000Z",
  };
  await recordRows(pool, [late, early].map(ledgerRow), [], null, "UTC");
  const sums = await query<{ entity: string; spend: number }>(
    pool,
    `SELECT entity, spend FROM spend_of_windows($1, array_fill('2026-09-01T00:00:00Z'::timestamptz, ARRAY[6]),
       array_fill('2026-10-01T00:00:00Z'::timestamptz, ARRAY[6])) ORDER BY entity`,
    [
      [
        "key:late",
        "user:late",
        "team:t",
        "member:t/late",
        "tag:a",
        "tag:unknown",
      ],
    ],
  );
  expect(sums).toEqual([
    { entity: "key:late", spend: 6 },
    { entity: "member:t/late", spend: 6 },
    { entity: "tag:a", spend: 6 },
    { entity: "tag:unknown", spend: 0 },
    { entity: "team:t", spend: 6 },
    { entity: "user:late", spend: 2 },
  ]);
  const [august] = await query<{ spend: number }>(
    pool,
    "SELECT spend_between('key:late', '2026-08-01T00:00:00Z', '2026-09-01T00:00:00Z') AS spend",
  );
  expect(august?.spend).toBe(0);
});

test("the migration records late calls that are already in the ledger", async () => {
  const strays = () => query(pool, "SELECT * FROM spend_strays ORDER BY month");
  const noted = await strays();
  expect(noted).toHaveLength(2);
  const file = new URL("migrations/0012_windows_at_once.sql", import.meta.url);
  const [backfill = ""] =
    /^DO \$\$.*?^END \$\$;/ms.exec(await readFile(file, "utf8")) ?? [];
  await query(pool, "DELETE FROM spend_strays");
  await query(pool, backfill);
  expect(await strays()).toEqual(noted);
});
