import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import type { SpendRow } from "../../gateway/ledger/rows.ts";
import { recordRows } from "../../gateway/database/ledger.ts";
import { createPool, query, type Pool } from "../../gateway/database/pool.ts";
import { readerUrl, throwAwayDatabase } from "../../test/servers/database.ts";
import { sampleLedger } from "../../test/supervisor/sample-ledger.ts";
import { choosePeriod, type Period, type PeriodChoice } from "./period.ts";
import { readSpendReport, type SpendReport } from "./spend-report.ts";

const TODAY = "2026-11-21";
const rows = sampleLedger(Date.parse(TODAY), 365, 20);

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let pool: Pool;

beforeAll(async () => {
  database = await throwAwayDatabase();
  pool = createPool(database.url, 4, pino({ level: "silent" }));
  await pool.query(
    `INSERT INTO users (user_id, user_alias, max_budget, budget_duration) VALUES ('ada', 'Ada', 10, '1mo'), ('bob', NULL, 0, NULL)`,
  );
  await pool.query(
    `INSERT INTO keys (token, key_name, key_alias) VALUES ($1, 'sk-…aaaa', 'laptop'), ($2, 'sk-…bbbb', NULL)`,
    ["a".repeat(64), "b".repeat(64)],
  );
  for (let at = 0; at < rows.length; at += 1000) {
    await recordRows(pool, rows.slice(at, at + 1000), [], null, "UTC");
  }
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

async function report(choice: PeriodChoice): Promise<SpendReport> {
  return readSpendReport(readerUrl(database.url, "supervisor"), {
    period: choosePeriod(choice, TODAY),
    timeZone: "UTC",
    today: TODAY,
    now: Date.parse(TODAY) + DAY_MS / 2,
    signal: new AbortController().signal,
  });
}

/** Sums of calls of some days, computed from the rows. */
function callsIn(from: string, until: string): readonly SpendRow[] {
  return rows.filter(
    (row) => row.payer === null && row.day >= from && row.day <= until,
  );
}

/** Exact: nano-dollars as whole numbers. */
function spendOf(calls: readonly SpendRow[]): number {
  const nanos = calls.reduce(
    (sum, { spend }) => sum + BigInt(Math.round(Number(spend) * 1e9)),
    0n,
  );
  return Number(nanos) / 1e9;
}

const year: PeriodChoice = { unit: "month", complete: false, since: "365d" };

test("the sums of a year equal those of the ledger, of the rows and of every table of the report", async () => {
  const made = await report(year);
  const { totals } = made;
  const calls = callsIn("2025-11-22", TODAY);
  const [ledger] = await query<{ spend: number; calls: number }>(
    pool,
    "SELECT sum(spend) AS spend, count(*) AS calls FROM spend_log WHERE payer IS NULL",
  );
  expect(totals.spend).toBe(ledger?.spend);
  expect(totals.spend).toBe(spendOf(calls));
  expect(totals.requests).toBe(ledger?.calls);
  const count = (of: (row: SpendRow) => boolean) => calls.filter(of).length;
  expect(totals).toMatchObject({
    requests: calls.length,
    failed: count(({ status }) => status === "failure"),
    interrupted: count(({ status }) => status === "interrupted"),
    cacheHits: count(({ cache_hit }) => cache_hit),
    unpriced: count(({ unpriced }) => unpriced),
    promptTokens: calls.reduce((sum, row) => sum + row.prompt_tokens, 0),
  });
  expect(totals.saved).toBeCloseTo(
    calls.reduce((sum, { saved }) => sum + saved, 0),
    9,
  );
  for (const each of [
    made.users,
    made.keys,
    made.teams,
    made.models,
    made.providers,
    made.series.steps,
  ]) {
    const sum = (of: (row: { spend: number; requests: number }) => number) =>
      each.map(of).reduce((total, value) => total + value, 0);
    expect(sum(({ spend }) => spend)).toBeCloseTo(totals.spend, 9);
    expect(sum(({ requests }) => requests)).toBe(totals.requests);
  }
  expect(made.series.unit).toBe("month");
});

test("each payer's row is the sum of its own calls, and people are listed by name", async () => {
  const made = await report(year);
  const calls = callsIn("2025-11-22", TODAY);
  expect(made.keys).not.toEqual([]);
  for (const { id, spend, requests, share } of made.keys) {
    const own = calls.filter(({ api_key }) => api_key === id);
    expect([spend, requests]).toEqual([spendOf(own), own.length]);
    expect(share).toBeCloseTo(spend / made.totals.spend, 12);
  }
  expect(made.models).not.toEqual([]);
  for (const { id, spend } of made.models) {
    expect(spend).toBe(
      spendOf(calls.filter(({ model_group }) => model_group === id)),
    );
  }
  expect(made.keys.map(({ name }) => name).toSorted()).toEqual([
    "cccccccc…",
    "laptop",
    "sk-…bbbb",
  ]);
  expect(made.users.map(({ name }) => name).toSorted()).toEqual([
    "Ada",
    "bob",
    "—",
  ]);
});

test("corrections are listed separately, and with them each payer's calls add up to its total", async () => {
  const made = await report(year);
  const corrected = rows.filter(({ payer }) => payer !== null);
  expect(made.corrections).toHaveLength(corrected.length);
  expect(made.corrections.map(({ spend }) => spend).toSorted()).toEqual(
    corrected.map(({ spend }) => Number(spend)).toSorted(),
  );
  const [total] = await query<{ spend: number }>(
    pool,
    "SELECT spend FROM spend_totals WHERE entity = 'user:ada' AND window_name = 'all'",
  );
  const ada = made.users.find(({ id }) => id === "ada")?.spend ?? 0;
  const corrections = made.corrections
    .filter(({ name }) => name === "user Ada")
    .reduce((sum, { spend }) => sum + spend, 0);
  expect(ada + corrections).toBeCloseTo(total?.spend ?? NaN, 9);
});

test.each<[string, PeriodChoice, string, string, string, string]>([
  [
    "this month",
    { unit: "month", complete: false },
    "2026-11-01",
    TODAY,
    "2026-10-01",
    "2026-10-21",
  ],
  [
    "last month",
    { unit: "month", complete: true },
    "2026-10-01",
    "2026-10-31",
    "2026-09-01",
    "2026-09-30",
  ],
  [
    "this week",
    { unit: "week", complete: false },
    "2026-11-16",
    TODAY,
    "2026-11-09",
    "2026-11-14",
  ],
  [
    "last week",
    { unit: "week", complete: true },
    "2026-11-09",
    "2026-11-15",
    "2026-11-02",
    "2026-11-08",
  ],
  [
    "yesterday",
    { unit: "day", complete: true },
    "2026-11-20",
    "2026-11-20",
    "2026-11-19",
    "2026-11-19",
  ],
  [
    "ten days",
    { unit: "month", complete: false, since: "10d" },
    "2026-11-12",
    TODAY,
    "2026-11-02",
    "2026-11-11",
  ],
])(
  "%s is compared with the days before it",
  async (_, choice, from, until, pfrom, puntil) => {
    const made = await report(choice);
    const now = spendOf(callsIn(from, until));
    const then = spendOf(callsIn(pfrom, puntil));
    expect([made.totals.spend, made.previous.spend]).toEqual([now, then]);
    expect(made.change).toBeCloseTo(now / then - 1, 9);
    for (const { id, previous } of made.providers) {
      expect(previous).toBe(
        spendOf(
          callsIn(pfrom, puntil).filter(({ provider }) => provider === id),
        ),
      );
    }
  },
);

test("the forecast assumes that each remaining day costs the average of the last 28", async () => {
  const { forecast } = await report({ unit: "month", complete: false });
  // Computed independently: day by day to the end of the month.
  const spentOn = (day: string) => spendOf(callsIn(day, day));
  const days = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) =>
      new Date(Date.parse(TODAY) + (from + index) * DAY_MS)
        .toISOString()
        .slice(0, 10),
    );
  const usual = days(-28, 28).reduce((sum, day) => sum + spentOn(day), 0) / 28;
  const played = days(-20, 30).map((day) => {
    if (day < TODAY) {
      return spentOn(day);
    }
    return day === TODAY ? Math.max(spentOn(day), usual) : usual;
  });
  expect(forecast).toMatchObject({ until: "2026-11-30", basis: 28 });
  expect(forecast?.spend).toBeCloseTo(
    played.reduce((sum, spend) => sum + spend, 0),
    9,
  );
  expect((await report({ unit: "month", complete: true })).forecast).toBeNull();
});

test("budgets report their used part in the current window", async () => {
  const { budgets } = await report({ unit: "month", complete: false });
  expect(budgets.find(({ name }) => name === "bob")).toMatchObject({
    kind: "user",
    budget: 0,
    used: null,
    resetsAt: null,
  });
  expect(budgets.find(({ name }) => name === "Ada")).toMatchObject({
    kind: "user",
    budget: 10,
  });
});

test("an empty ledger gives a report of zeros", async () => {
  const empty = await throwAwayDatabase();
  try {
    const made = await readSpendReport(readerUrl(empty.url, "supervisor"), {
      period: choosePeriod({ unit: "month", complete: false }, TODAY),
      timeZone: "UTC",
      today: TODAY,
      now: Date.parse(TODAY),
      signal: new AbortController().signal,
    });
    expect(made).toMatchObject({
      change: null,
      forecast: null,
      users: [],
      corrections: [],
      totals: { spend: 0, requests: 0 },
    });
    expect(made.series.steps).toHaveLength(21);
  } finally {
    await empty.drop();
  }
});

test("a month that follows a shorter one is compared up to that one's last day at most", () => {
  const period = (day: string): Period =>
    choosePeriod({ unit: "month", complete: false }, day);
  expect(period("2027-03-31").previous).toMatchObject({
    from: "2027-02-01",
    until: "2027-02-28",
  });
  expect(period("2027-01-05").previous).toMatchObject({
    from: "2026-12-01",
    until: "2026-12-05",
  });
});

test("an invalid start is rejected with the accepted formats", () => {
  const since = (text: string) => () =>
    choosePeriod({ unit: "month", complete: false, since: text }, TODAY);
  for (const text of [
    "yesterday",
    "2026-13-01",
    "2026-02-30",
    "2027-01-01",
    "-3d",
  ]) {
    expect(since(text)).toThrow(
      `invalid start "${text}": it must be a day such as 2026-11-01 (not after today), or 30d, 4w.`,
    );
  }
});
