import { pino } from "pino";
import { expect, test } from "vitest";
import { recordRows } from "../../../gateway/database/ledger.ts";
import { createPool } from "../../../gateway/database/pool.ts";
import { ledgerRow } from "../../../test/servers/admin.ts";
import {
  readerUrl,
  throwAwayDatabase,
} from "../../../test/servers/database.ts";
import { sampleLedger } from "../../../test/supervisor/sample-ledger.ts";
import { readMonthSpend } from "./month-spend.ts";

test("the month is that of the ledger, also where the operator's has not begun", async () => {
  const database = await throwAwayDatabase();
  const pool = createPool(database.url, 1, pino({ level: "silent" }));
  try {
    await pool.query("INSERT INTO ledger_settings VALUES ('time_zone', 'UTC')");
    const call = ledgerRow({
      ended_at: "2026-12-01T02:00:00.000Z",
      spend: 0.5,
    });
    await recordRows(pool, [call], [], null, "UTC");
    const read = readMonthSpend(
      () => readerUrl(database.url, "supervisor"),
      "America/Los_Angeles",
      () => Date.parse("2026-12-01T03:00:00Z"),
    );
    expect(await read()).toMatchObject({
      kind: "known",
      spend: { spend: 0.5 },
    });
  } finally {
    await pool.end();
    await database.drop();
  }
});

test("the most expensive pairs of alias and key are first, whatever their names", async () => {
  const now = Date.parse("2026-11-21");
  const database = await throwAwayDatabase();
  const pool = createPool(database.url, 1, pino({ level: "silent" }));
  try {
    await pool.query(
      "INSERT INTO keys (token, key_name, key_alias) SELECT repeat(name, 64), name, name FROM unnest('{a,b,c}'::text[]) name",
    );
    await recordRows(pool, sampleLedger(now, 20, 20), [], null, "UTC");
    const read = readMonthSpend(
      () => readerUrl(database.url, "supervisor"),
      "UTC",
      () => now,
    );
    const view = await read();
    const payers = view.kind === "known" ? view.spend.payers : [];
    const spends = payers.map(({ spend }) => spend);
    expect(new Set(payers.map(({ key }) => key)).size).toBeGreaterThan(1);
    expect(spends).toEqual(spends.toSorted((a, b) => b - a));
  } finally {
    await pool.end();
    await database.drop();
  }
});
