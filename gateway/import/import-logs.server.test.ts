import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import { ensurePartitions } from "../database/partitions.ts";
import { createPool, query, transaction, type Pool } from "../database/pool.ts";
import { seedCurrentWindows } from "../database/totals.ts";
import { windowAt } from "../ledger/budget-windows.ts";
import { importLogs } from "./import-logs.ts";
import { createNotes } from "./import-notes.ts";
import type { Source } from "./source.ts";
import { importSpends } from "./spends.ts";

const WINDOWING = { timeZone: "UTC", proxyDuration: null };

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let pool: Pool;

beforeAll(async () => {
  database = await throwAwayDatabase();
  pool = createPool(database.url, 2, pino({ level: "silent" }));
});

afterAll(async () => {
  await pool?.end();
  await database?.drop();
});

test("imported calls change no budget: neither of the whole proxy, nor of keys that are imported after them", async () => {
  const now = new Date();
  const longAgo = new Date(now.getTime() - 40 * DAY_MS);
  const row = {
    request_id: "one",
    startTime: now,
    endTime: now,
    api_key: "hash",
    model_group: "gpt",
    spend: 20,
  };
  const earlier = {
    ...row,
    request_id: "earlier",
    startTime: longAgo,
    endTime: longAgo,
    spend: 300,
  };
  const source: Source = {
    rows: () => Promise.resolve([]),
    count: () => Promise.resolve(0),
    logsAfter: () => Promise.resolve([row, earlier]),
    close: () => Promise.resolve(),
  };
  const at = now.getTime();
  await importLogs(
    pool,
    { source, notes: createNotes(), windowing: WINDOWING, now: at },
    () => undefined,
  );
  await query(
    pool,
    "INSERT INTO keys (token, key_name, max_budget) VALUES ('hash', 'sk-...', 5)",
  );
  const found = {
    name: "key:hash",
    entity: "key:hash",
    dollars: "0",
    isNew: true,
  };
  await transaction(pool, (client) =>
    importSpends(client, [found], WINDOWING, at),
  );
  const totals = await query<{ entity: string; spend: number }>(
    pool,
    "SELECT entity, spend::float8 FROM spend_totals WHERE entity IN ('key:hash', 'proxy:') AND window_name = 'all' ORDER BY entity",
  );
  expect(totals).toEqual([
    { entity: "key:hash", spend: 0 },
    { entity: "proxy:", spend: 0 },
  ]);
  for (const duration of ["1h", "1d", "1mo"]) {
    const { start } = windowAt(duration, at, WINDOWING.timeZone);
    const windows = await query<{ spend: number }>(
      pool,
      "SELECT spend_between(entity, $1, 'infinity')::float8 AS spend FROM unnest(ARRAY['key:hash', 'proxy:']) entity",
      [new Date(start).toISOString()],
    );
    expect([duration, windows]).toEqual([
      duration,
      [{ spend: 0 }, { spend: 0 }],
    ]);
  }
  expect(await query(pool, "SELECT * FROM spend_check")).toEqual([]);
});

test("imported spend counts in the payer's window, and in none that its budget gets later", async () => {
  const at = Date.UTC(2026, 10, 18, 12, 30);
  await ensurePartitions(pool, [{ started_at: new Date(at).toISOString() }]);
  await query(
    pool,
    `INSERT INTO keys (token, key_name, max_budget, budget_duration)
       VALUES ('lifetime', 'sk-...', NULL, NULL), ('monthly', 'sk-...', 100, '1mo')`,
  );
  const found = [
    { entity: "key:lifetime", dollars: "500" },
    { entity: "key:monthly", dollars: "40" },
  ].map((each) => ({ ...each, name: each.entity, isNew: true }));
  const entities = found.map(({ entity }) => entity);
  await transaction(pool, (client) =>
    importSpends(client, found, WINDOWING, at),
  );
  const spent = async (...durations: readonly string[]) => {
    const rows = await query<{ text: string }>(
      pool,
      `SELECT entity || ' ' || split_part(window_name, '@', 1) || ' ' || spend::float8 AS text FROM spend_totals
         WHERE entity = ANY($1) AND split_part(window_name, '@', 1) = ANY($2) ORDER BY 1`,
      [entities, durations],
    );
    return rows.map(({ text }) => text);
  };
  expect(await spent("all", "1mo")).toEqual([
    "key:lifetime all 500",
    "key:monthly 1mo 40",
    "key:monthly all 40",
  ]);

  for (const duration of ["1mo", "1w", "1d", "1h"]) {
    await query(
      pool,
      "UPDATE keys SET budget_duration = $1 WHERE token IN ('lifetime', 'monthly')",
      [duration],
    );
    await transaction(pool, (client) =>
      seedCurrentWindows(client, entities, WINDOWING, at),
    );
  }
  expect(await spent("1mo", "1w", "1d", "1h")).toEqual([
    "key:lifetime 1d 0",
    "key:lifetime 1h 0",
    "key:lifetime 1mo 0",
    "key:lifetime 1w 0",
    "key:monthly 1d 0",
    "key:monthly 1h 0",
    "key:monthly 1mo 40",
    "key:monthly 1w 0",
  ]);
  expect(await query(pool, "SELECT * FROM spend_check")).toEqual([]);
});
