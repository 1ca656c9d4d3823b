import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import type { JournalMark } from "../journal/journal-types.ts";
import type { Intent } from "../ledger/records.ts";
import { spendRow } from "../ledger/rows.ts";
import {
  completeMark,
  dropOldMarks,
  LedgerBehind,
  readMark,
} from "./journal-marks.ts";
import { recordRows } from "./ledger.ts";
import { createPool, query, type Pool } from "./pool.ts";
import { readTotals } from "./totals.ts";

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let pool: Pool;

beforeAll(async () => {
  database = await throwAwayDatabase();
  pool = createPool(database.url, 4, pino({ level: "silent" }));
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

function mark(segment: number, offset = 0): JournalMark {
  return { segment, offset, from: segment };
}

function row(apiKey: string) {
  const intent: Intent = {
    id: randomUUID(),
    startedAt: Date.now(),
    apiKey,
    userId: null,
    teamId: null,
    organizationId: null,
    endUser: null,
    tags: [],
    alias: "mock",
    callType: "acompletion",
    modelId: null,
    model: null,
    provider: null,
    inputTokens: 1,
    inputCost: 0.5,
    sessionId: null,
    requesterIp: null,
  };
  return spendRow(intent, { recoveredAt: intent.startedAt }, "UTC");
}

const record = (
  apiKey: string,
  step: Parameters<typeof recordRows>[5] = null,
  counters: Parameters<typeof recordRows>[2] = [],
) => recordRows(pool, [row(apiKey)], counters, null, "UTC", step);

test("a mark moves with its rows, and a database that lacks rows takes no later ones", async () => {
  const [instance, other] = [randomUUID(), randomUUID()];
  await record("a", { instance, to: mark(1, 100), reached: null });
  await record("a", { instance, to: mark(2, 50), reached: mark(1, 100) });
  await record("a", { instance: other, to: mark(7), reached: null });
  expect(await readMark(pool, instance)).toEqual(mark(2, 50));

  const ahead = { instance, to: mark(3), reached: mark(2, 60) };
  const rejected = await record("a", ahead).catch((error: unknown) => error);
  expect(rejected).toBeInstanceOf(LedgerBehind);
  expect(rejected).toMatchObject({ mark: mark(2, 50) });
  expect(await readMark(pool, instance)).toEqual(mark(2, 50));
  const rows = await query(pool, "SELECT FROM spend_log WHERE api_key = 'a'");
  expect(rows).toHaveLength(3);

  const unknown = randomUUID();
  await expect(
    record("a", { instance: unknown, to: mark(3), reached: mark(2) }),
  ).rejects.toMatchObject({ mark: null });
  expect(await readMark(pool, unknown)).toBe(null);
});

test("a mark of lines that the journal lost is replaced", async () => {
  const instance = randomUUID();
  await record("b", { instance, to: mark(9), reached: null });
  await record("b", { instance, to: mark(3), reached: mark(2) });
  expect(await readMark(pool, instance)).toEqual(mark(3));
});

test("versions of totals follow the clock, and grow with each change", async () => {
  const counters = [{ entity: "key:c", window: "all" }];
  const from = Date.now() - HOUR_MS;
  let last = from;
  for (let times = 0; times < 5; times++) {
    const { totals } = await record("c", null, counters);
    expect(totals[0]?.version).toBeGreaterThan(last);
    last = totals[0]?.version ?? Infinity;
  }
  expect(last).toBeLessThan(Date.now() + HOUR_MS);
});

test.each([
  ["with", mark(1)],
  ["without", null],
])(
  "once lost rows were written again, all totals are newer than before (%s an earlier mark)",
  async (_, earlier) => {
    const instance = randomUUID();
    if (earlier !== null) {
      await record("d", { instance, to: earlier, reached: null });
    }
    const counters = ["key:d", "key:without-rows"].map((entity) => ({
      entity,
      window: "all",
    }));
    await record("d");
    const before = await readTotals(pool, counters);
    await sleep(5);
    await completeMark(pool, instance, mark(4));
    expect(await readMark(pool, instance)).toEqual(mark(4));
    const after = await readTotals(pool, counters);
    const highest = Math.max(...before.map(({ version }) => version));
    for (const { version } of after) {
      expect(version).toBeGreaterThan(highest);
    }
    expect(after.map(({ spend }) => spend)).toEqual(
      before.map(({ spend }) => spend),
    );

    await record("d", { instance, to: mark(5), reached: mark(4) });
    const later = await readTotals(pool, counters);
    expect(later[0]?.version).toBeGreaterThan(after[0]?.version ?? Infinity);
    expect(later[1]).toEqual(after[1]);
  },
);

test("marks of removed gateways are forgotten", async () => {
  const [gone, idle] = [randomUUID(), randomUUID()];
  for (const [instance, days] of [
    [gone, 91],
    [idle, 89],
  ] as const) {
    await record("e", { instance, to: mark(1), reached: null });
    await query(
      pool,
      "UPDATE journal_marks SET updated_at = $2 WHERE instance = $1",
      [instance, new Date(Date.now() - days * DAY_MS).toISOString()],
    );
  }
  await dropOldMarks(pool, 90, Date.now());
  expect(await readMark(pool, gone)).toBe(null);
  expect(await readMark(pool, idle)).toEqual(mark(1));
});
