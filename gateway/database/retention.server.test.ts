import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import { ledgerRow } from "../../test/servers/admin.ts";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import { deleteOldRows } from "../ledger/retention.ts";
import { recordRows } from "./ledger.ts";
import { createPool, query, type Pool } from "./pool.ts";
import { dropOldAudit, dropOldSpend } from "./retention.ts";
import { insertRow } from "./rows.ts";
import { followSettings } from "./settings.ts";

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

const NOW = Date.UTC(2026, 10, 21, 12);

async function record(
  fields: Parameters<typeof ledgerRow>[0],
  duration: string | null = null,
): Promise<void> {
  await recordRows(pool, [ledgerRow(fields)], [], duration, "UTC");
}

async function differences(): Promise<readonly unknown[]> {
  return query(pool, "SELECT * FROM spend_check");
}

test("past months are dropped, and every sum stays correct", async () => {
  await insertRow(pool, "keys", {
    token: "k1",
    key_name: "sk-...k1",
    budget_duration: "1h",
  });
  await insertRow(pool, "users", { user_id: "u1", budget_duration: "12mo" });
  for (const day of ["2026-08-30", "2026-08-31", "2026-10-01", "2026-11-20"]) {
    for (const time of ["T00:30:00.000Z", "T23:10:00.000Z"]) {
      await record({
        ended_at: day + time,
        api_key: "k1",
        user_id: "u1",
        tags: ["red"],
      });
    }
  }
  await record({
    ended_at: "2026-08-31T12:00:00.000Z",
    user_id: "u1",
    user_pays: false,
    team_id: "t1",
  });
  expect(await differences()).toEqual([]);
  expect(await dropOldSpend(pool, 30, NOW)).toEqual(["2026-08"]);
  expect(await differences()).toEqual([]);
  expect(await query(pool, "SELECT count(*) AS rows FROM spend_log")).toEqual([
    { rows: 4 },
  ]);
  expect(
    await query(
      pool,
      "SELECT sum(spend) AS spend, sum(calls) AS calls FROM spend_archive",
    ),
  ).toEqual([{ spend: 1.25, calls: 5 }]);
  expect(await dropOldSpend(pool, 30, NOW)).toEqual([]);
});

test("a row of a dropped month is still recorded, and dropped in the next round", async () => {
  await record({
    ended_at: "2026-11-10T10:00:00.000Z",
    started_at: "2026-08-31T23:59:00.000Z",
    api_key: "k1",
    user_id: "u1",
  });
  expect(await differences()).toEqual([]);
  expect(await dropOldSpend(pool, 30, NOW)).toEqual(["2026-08"]);
  expect(await differences()).toEqual([]);
});

test("a new time zone or proxy duration starts with the spend so far", async () => {
  const day = { timeZone: "UTC", proxyDuration: "1d" };
  const at = Date.parse("2026-11-20T23:30:00.000Z");
  await followSettings(pool, day, at);
  const total = async () =>
    query(
      pool,
      "SELECT window_name, spend FROM spend_totals WHERE entity = 'proxy:' AND window_name <> 'all' ORDER BY 1",
    );
  expect(await total()).toEqual([
    { window_name: "1d@2026-11-20T00:00:00.000Z", spend: 0.5 },
  ]);
  await followSettings(pool, { ...day, timeZone: "Europe/Berlin" }, at);
  expect(await total()).toContainEqual({
    window_name: "1d@2026-11-20T23:00:00.000Z",
    spend: 0.25,
  });
  await record({ ended_at: "2026-11-20T23:40:00.000Z" }, "1d");
  expect(await differences()).toEqual([]);
});

test("old audit entries are deleted", async () => {
  for (const days of [1, 50, 100]) {
    await insertRow(pool, "audit_log", {
      at: new Date(NOW - days * DAY_MS),
      actor: "a",
      action: "created",
      object_type: "key",
      object_id: String(days),
    });
  }
  expect(await dropOldAudit(pool, 60, NOW)).toBe(1);
});

test("a clock that is a year ahead for one round deletes nothing that is not old", async () => {
  await query(pool, "DELETE FROM audit_log");
  const entry = { action: "created", object_type: "key", object_id: "k1" };
  for (const days of [1, 50, 100]) {
    const at = new Date(NOW - days * DAY_MS);
    await insertRow(pool, "audit_log", { ...entry, at, actor: `${days}` });
  }
  const left = async (now: number): Promise<unknown> => {
    const config = () => ({ spendLogDays: null, auditLogDays: 60 }) as never;
    await deleteOldRows({ pool, config, log: pino({ level: "silent" }) }, now);
    const rows = await query<{ actor: string }>(
      pool,
      "SELECT actor FROM audit_log ORDER BY id",
    );
    return rows.map(({ actor }) => actor);
  };
  expect(await left(NOW)).toEqual(["1", "50", "100"]);
  expect(await left(NOW + HOUR_MS)).toEqual(["1", "50", "100"]);
  expect(await left(NOW + DAY_MS + 365 * DAY_MS)).toEqual(["1", "50"]);
  expect(await left(NOW + DAY_MS)).toEqual(["1", "50"]);
  expect(await left(NOW + 20 * DAY_MS)).toEqual(["1", "50"]);
  expect(await left(NOW + 21 * DAY_MS)).toEqual(["1"]);
});
