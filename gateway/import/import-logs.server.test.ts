import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import { createPool, query, transaction, type Pool } from "../database/pool.ts";
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
