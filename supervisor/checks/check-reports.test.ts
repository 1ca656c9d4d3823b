import { beforeEach, expect, test, vi } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../core/duration.ts";
import type { History } from "../history/history.ts";
import { temporaryHistory } from "../../test/supervisor/temporary-history.ts";
import { openCheckHistory } from "./check-history.ts";
import { rollUpChecks } from "./check-hours.ts";
import {
  availabilities,
  checkRecords,
  hourBars,
  hourlyMeasure,
  retainChecks,
} from "./check-reports.ts";

let history: History;
let now: number;

const start = Date.UTC(2026, 10, 1);

beforeEach(() => {
  now = start;
  history = temporaryHistory(() => now);
});

interface Probe {
  readonly ok?: boolean;
  readonly counted?: boolean;
  readonly latencyMs?: number;
  readonly measures?: Readonly<Record<string, number>>;
}

/** One probe per minute from `from` on. */
function probeEveryMinute(
  from: number,
  minutes: number,
  probe: (index: number) => Probe,
): void {
  const { record } = openCheckHistory(history.db);
  history.db.exec("BEGIN");
  for (let index = 0; index < minutes; index += 1) {
    const {
      ok = true,
      counted = true,
      latencyMs = 10,
      measures = {},
    } = probe(index);
    const at = from + index * MINUTE_MS;
    const result = { ok, level: "down", latencyMs, measures, at } as const;
    record("gateway", { ...result, text: "answered 200" }, counted, 70_000);
  }
  history.db.exec("COMMIT");
}

test("availability is by time: failures and excused failures are distinguished, unwatched time does not count", () => {
  // Two hours up, half an hour down, half an hour in maintenance; then no probes.
  probeEveryMinute(start, 180, (index) => ({
    ok: index < 120 || index >= 150,
    counted: index < 150,
  }));
  const [record] = checkRecords(history.db, start, start + DAY_MS);
  expect(record).toMatchObject({
    name: "gateway",
    looks: 180,
    failures: 30,
    upMs: 2 * HOUR_MS,
    downMs: HOUR_MS / 2,
    availability: 80,
  });
  // The last result is valid for its maximum.
  expect(record?.apartMs).toBe(HOUR_MS / 2 + 10_000);
});

test("roll-ups give the same results after raw results were deleted, including percentiles", () => {
  probeEveryMinute(start, 200, (index) => ({
    ok: index % 60 !== 0,
    latencyMs: index % 100,
  }));
  const until = start + 4 * HOUR_MS;
  const before = checkRecords(history.db, start, until);
  now = until + DAY_MS;
  expect(
    retainChecks(history.db, now, { rawSince: now, hoursSince: start }),
  ).toEqual({ results: 200, hours: 0 });
  const after = checkRecords(history.db, start, until);
  expect(after).toEqual(before);
  const [record] = after;
  expect(record?.p50).toBeGreaterThan(44);
  expect(record?.p50).toBeLessThan(56);
  expect(record?.p99).toBeGreaterThan(92);
});

test("hours are kept as long as configured, transitions forever", () => {
  probeEveryMinute(start, 120, () => ({}));
  history.checkChanged("gateway", "new", "up", "answered 200");
  const later = start + 500 * DAY_MS;
  expect(
    retainChecks(history.db, later, {
      rawSince: later - 7 * DAY_MS,
      hoursSince: later - 400 * DAY_MS,
    }),
  ).toEqual({ results: 120, hours: 3 });
  expect(history.latest(10)).toHaveLength(1);
});

test("rolling up again changes nothing and adds later results", () => {
  probeEveryMinute(start, 60, () => ({}));
  const rows = () =>
    history.db.prepare("SELECT hour, looks FROM check_hours").all();
  rollUpChecks(history.db, start + HOUR_MS);
  rollUpChecks(history.db, start + HOUR_MS);
  expect(rows()).toEqual([{ hour: start, looks: 60 }]);
  probeEveryMinute(start + HOUR_MS, 30, () => ({}));
  rollUpChecks(history.db, start + 2 * HOUR_MS);
  expect(rows()).toHaveLength(2);
});

test("the last 24 hours are bars, the current hour is the last", () => {
  const until = start + 24.5 * HOUR_MS;
  probeEveryMinute(start + 22 * HOUR_MS, 150, (index) => ({ ok: index < 120 }));
  const bars = hourBars(history.db, until).get("gateway") ?? [];
  expect(bars).toHaveLength(24);
  expect(bars[0]?.hour).toBe(start + HOUR_MS);
  expect(bars.map(({ looks }) => looks).slice(-4)).toEqual([0, 60, 60, 30]);
  expect(bars.at(-1)).toMatchObject({ upMs: 0, downMs: HOUR_MS / 2 });
});

test("no query reads all hours of a year to find those of a few days", () => {
  probeEveryMinute(start, 120, () => ({}));
  now = start + 3 * HOUR_MS;
  const { db } = history;
  const prepare = vi.spyOn(db, "prepare");
  hourBars(db, now);
  checkRecords(db, start, now);
  const byName = availabilities(db, start, now);
  const statements = new Set(prepare.mock.calls.map(([sql]) => sql));
  prepare.mockRestore();
  expect(byName).toEqual(new Map([["gateway", 100]]));
  const steps = [...statements].flatMap((sql) =>
    db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map(({ detail }) => String(detail)),
  );
  expect(steps).toContainEqual(expect.stringMatching(/^SEARCH check_hours/));
  expect(
    steps.filter((step) =>
      /^SCAN (?:t|check_hours|check_results)\b/.test(step),
    ),
  ).toEqual([]);
});

test("measurements are available by the hour", () => {
  probeEveryMinute(start, 120, (index) => ({
    measures: { free_bytes: 1000 - index },
  }));
  expect(
    hourlyMeasure(
      history.db,
      { check: "gateway", measure: "free_bytes" },
      start,
      start + 2 * HOUR_MS,
    ),
  ).toEqual([
    { at: start, value: 941 },
    { at: start + HOUR_MS, value: 881 },
  ]);
});
