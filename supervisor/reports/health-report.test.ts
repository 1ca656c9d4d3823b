import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../core/duration.ts";
import { configSchema } from "../config/schema.ts";
import { openHistory, type History } from "../history/history.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { readHealthReport, type HealthReport } from "./health-report.ts";
import { beginningOf, choosePeriod } from "./period.ts";

const TIME_ZONE = "Europe/Berlin";
const TODAY = "2026-11-18";
const monday = beginningOf("2026-11-16", TIME_ZONE);
const NOW = monday + 2.5 * 24 * HOUR_MS;

let place: ReturnType<typeof temporaryHome>;
let history: History;
let at: number;

beforeEach(() => {
  place = temporaryHome();
  history = openHistory(join(place.directory, "history.db"), () => at);
});
afterEach(() => {
  history.close();
  place.remove();
});

const { checks } = configSchema.parse({
  checks: [
    { name: "gateway", kind: "tcp", port: 4000 },
    { name: "disk", kind: "disk", path: "/" },
    { name: "notes-container", kind: "container", container: "notes" },
  ],
});

/** One probe a minute; `ok` and the measurements by the minutes since Monday. */
function probe(
  name: string,
  result: (minutes: number) => {
    readonly ok?: boolean;
    readonly counted?: boolean;
    readonly measures?: Readonly<Record<string, number>>;
  },
): void {
  const add = history.db.prepare(
    "INSERT INTO check_results (name, at, ok, counted, latency_ms, covers_ms, text, measures) VALUES (?, ?, ?, ?, ?, ?, NULL, ?)",
  );
  history.db.exec("BEGIN");
  for (let minutes = 0; monday + minutes * MINUTE_MS < NOW; minutes += 1) {
    const { ok = true, counted = true, measures } = result(minutes);
    add.run(
      name,
      monday + minutes * MINUTE_MS,
      ok ? 1 : 0,
      counted ? 1 : 0,
      10,
      MINUTE_MS,
      measures === undefined ? null : JSON.stringify(measures),
    );
  }
  history.db.exec("COMMIT");
}

function report(): HealthReport {
  return readHealthReport({
    db: history.db,
    checks,
    jobs: [],
    attention: [],
    timeZone: TIME_ZONE,
    now: NOW,
    period: choosePeriod({ unit: "week", complete: false }, TODAY),
  });
}

test("availability is by time, without maintenance, for each day of the operator's zone", () => {
  // Down for two hours of Tuesday, in maintenance for one of Wednesday.
  probe("gateway", (minutes) => ({
    ok: minutes < 30 * 60 || minutes >= 32 * 60,
    counted: minutes < 50 * 60 || minutes >= 51 * 60,
  }));
  at = monday + 30 * HOUR_MS;
  history.checkChanged("gateway", "up", "down", "connection refused");
  at = monday + 32 * HOUR_MS;
  history.checkChanged("gateway", "down", "up", null);
  at = monday + 30 * HOUR_MS + MINUTE_MS;
  history.act("gateway", "heal", "the check gateway is down");
  const made = report();
  const [gateway] = made.checks;
  expect(gateway).toMatchObject({
    name: "gateway",
    incidents: 1,
    longestMs: 2 * HOUR_MS,
    downMs: 2 * HOUR_MS,
    apartMs: HOUR_MS,
    upMs: 57 * HOUR_MS,
  });
  expect(gateway?.availability).toBeCloseTo((100 * 57) / 59, 9);
  expect(gateway?.steps).toEqual([100, (100 * 22) / 24, 100]);
  expect(made.incidents).toMatchObject([
    { check: "gateway", durationMs: 2 * HOUR_MS, reason: "connection refused" },
  ]);
  expect(made.restarts).toMatchObject([
    { service: "gateway", act: "heal", reason: "the check gateway is down" },
  ]);
});

test("trends are hourly, and measurements of the notes store are compared with typical values", () => {
  probe("disk", (minutes) => ({
    measures: { free_bytes: 1e9 - minutes * 1000 },
  }));
  // 30 s of CPU time in each hour, but twelve minutes in one of them; reset on Tuesday.
  probe("notes-container", (minutes) => {
    const hours = Math.floor(minutes / 60);
    const seconds =
      hours < 24 ? hours * 30 : (hours - 24) * 30 + (hours >= 40 ? 720 : 0);
    return {
      measures: { memory_bytes: 700 * 1024 * 1024, cpu_seconds: seconds },
    };
  });
  const { trends, notesStore } = report();
  const disk = trends.find(({ check }) => check === "disk");
  expect(disk).toMatchObject({ measure: "free_bytes", unit: "bytes" });
  expect(disk?.points).toHaveLength(60);
  expect(disk?.first).toBeGreaterThan(disk?.last ?? Infinity);
  expect(notesStore).toEqual([
    {
      name: "memory, maximum",
      seen: "700 MiB",
      typical: "500 MB to 1 GB",
      within: true,
    },
    {
      name: "CPU, median and maximum of an hour",
      within: false,
      seen: "0.8 % and 20.8 %",
      typical: "under 2 % idle, under 10 % during sync",
    },
  ]);
});

test("a long period is displayed in steps of days", () => {
  probe("gateway", () => ({}));
  const made = readHealthReport({
    db: history.db,
    checks,
    jobs: [],
    attention: [],
    timeZone: TIME_ZONE,
    now: NOW,
    period: choosePeriod(
      { unit: "month", complete: false, since: "365d" },
      TODAY,
    ),
  });
  expect(made.daysAStep).toBe(6);
  expect(made.checks[0]?.steps).toHaveLength(61);
  expect(made.checks[0]?.steps.at(-1)).toBe(100);
});

test("a history without probes gives a report without checks", () => {
  expect(report()).toMatchObject({ checks: [], incidents: [], trends: [] });
});

test("a day starts at midnight of its zone, or right after the gap if there is no midnight", () => {
  const iso = (day: string, zone: string) =>
    new Date(beginningOf(day, zone)).toISOString();
  expect(iso("2026-11-21", "UTC")).toBe("2026-11-21T00:00:00.000Z");
  expect(iso("2026-11-21", "Europe/Berlin")).toBe("2026-11-20T23:00:00.000Z");
  expect(iso("2026-03-30", "Europe/Berlin")).toBe("2026-03-29T22:00:00.000Z");
  expect(iso("2026-11-21", "Pacific/Kiritimati")).toBe(
    "2026-11-20T10:00:00.000Z",
  );
  expect(iso("2026-11-21", "Pacific/Pago_Pago")).toBe(
    "2026-11-21T11:00:00.000Z",
  );
  // In Beirut the clocks change from 23:59 to 01:00 in spring.
  expect(iso("2026-03-29", "Asia/Beirut")).toBe("2026-03-28T22:00:00.000Z");
});
