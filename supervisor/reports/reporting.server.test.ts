import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { recordRows } from "../../gateway/database/ledger.ts";
import { createPool, type Pool } from "../../gateway/database/pool.ts";
import { ledgerRow } from "../../test/servers/admin.ts";
import { readerUrl, throwAwayDatabase } from "../../test/servers/database.ts";
import type { Context } from "../context.ts";
import type { PeriodChoice } from "./period.ts";
import { openReporting } from "./reporting.ts";

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let pool: Pool;

/** A call in each of two months of the ledger, whose days are those of UTC. */
beforeAll(async () => {
  database = await throwAwayDatabase();
  pool = createPool(database.url, 1, pino({ level: "silent" }));
  await pool.query("INSERT INTO ledger_settings VALUES ('time_zone', 'UTC')");
  const rows = [
    ledgerRow({ ended_at: "2026-11-30T22:00:00.000Z", spend: 0.25 }),
    ledgerRow({ ended_at: "2026-12-01T02:00:00.000Z", spend: 0.5 }),
  ];
  await recordRows(pool, rows, [], null, "UTC");
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const CHOICES: Readonly<Record<"this" | "last", PeriodChoice>> = {
  this: { unit: "month", complete: false },
  last: { unit: "month", complete: true },
};

/** `at`: the current time, in a zone where another month has begun, or not yet, than in the ledger's. */
test.each([
  ["America/Los_Angeles", "2026-12-01T03:00:00Z", "this", "2026-12-01", 0.5],
  ["America/Los_Angeles", "2026-12-01T03:00:00Z", "last", "2026-11-01", 0.25],
  ["Asia/Tokyo", "2026-11-30T23:00:00Z", "this", "2026-11-01", 0.25],
  ["Asia/Tokyo", "2026-11-30T23:00:00Z", "last", "2026-11-01", 0.25],
] as const)(
  "in %s at %s, the report of %s month has what the ledger has in its own",
  async (zone, at, choice, from, spend) => {
    const report = await openReporting({
      env: { SUPERVISOR_DATABASE_URL: readerUrl(database.url, "supervisor") },
      config: { jobs: { time_zone: zone } },
    } as unknown as Context)(
      "spend",
      CHOICES[choice],
      Date.parse(at),
      new AbortController().signal,
    );
    expect(report).toMatchObject({ period: { from }, totals: { spend } });
  },
);
