import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SECOND_MS } from "../../core/duration.ts";
import { ledgerRow } from "../../test/servers/admin.ts";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import { recordRows } from "../database/ledger.ts";
import { createPool, query, type Pool } from "../database/pool.ts";
import { insertRow } from "../database/rows.ts";
import { followSettings } from "../database/settings.ts";
import { windowAt } from "../ledger/budget-windows.ts";
import { budgetStates } from "./budgets-in-force.ts";
import { KEY } from "./kinds/key.ts";

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let pool: Pool;

beforeAll(async () => {
  database = await throwAwayDatabase();
  pool = createPool(database.url, 4, pino({ level: "silent" }));
});

afterAll(async () => {
  await pool?.end();
  await database?.drop();
});

// In one of the two orders, the window of the previous zone starts later.
test.each([
  ["UTC", "Asia/Tokyo"],
  ["Asia/Tokyo", "UTC"],
])(
  "when the time zone changes from %s to %s, lists and reports show the spend of the new zone's window",
  async (previous, present) => {
    const now = Date.now();
    const token = `key in ${previous}`;
    await insertRow(pool, "keys", {
      token,
      key_name: "sk-...",
      max_budget: 1,
      budget_duration: "1d",
    });
    const zone = (timeZone: string) => ({ timeZone, proxyDuration: null });
    await followSettings(pool, zone(previous), now);
    const start = (timeZone: string) => windowAt("1d", now, timeZone).start;
    // The first one belongs to the day of one zone only.
    const first = Math.max(start(previous), start(present)) - SECOND_MS;
    const rows = [first, now].map((at) =>
      ledgerRow({ api_key: token, ended_at: new Date(at).toISOString() }),
    );
    await recordRows(pool, rows, [], null, previous);
    await followSettings(pool, zone(present), now);

    const spend = first >= start(present) ? 0.5 : 0.25;
    expect(
      await query(
        pool,
        "SELECT spend, budget_reset_at FROM report_budgets WHERE id = $1",
        [token],
      ),
    ).toEqual([
      { spend, budget_reset_at: new Date(windowAt("1d", now, present).end) },
    ]);
    const states = await budgetStates(pool, KEY, 10);
    expect(states.find(({ id }) => id === token)?.remaining).toBe(1 - spend);
  },
);
