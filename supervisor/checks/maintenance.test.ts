import { beforeEach, expect, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import { configSchema } from "../config/schema.ts";
import type { History } from "../history/history.ts";
import { temporaryHistory } from "../../test/supervisor/temporary-history.ts";
import { openMaintenance } from "./maintenance.ts";

let history: History;

beforeEach(() => {
  history = temporaryHistory();
});

const open = (...plans: readonly Readonly<Record<string, unknown>>[]) =>
  openMaintenance(
    configSchema.parse({ maintenance: plans }).maintenance,
    history.db,
  );

/** A Sunday. */
const sunday = (hours: number, minutes: number = 0) =>
  Date.UTC(2026, 10, 22, hours, minutes);

test("a weekly window is open for its duration and only for its checks", () => {
  const { of } = open({
    name: "updates",
    weekly: "Sunday 04:00",
    for: "2h",
    checks: ["gateway"],
    time_zone: "UTC",
  });
  expect(of("gateway", sunday(3, 59))).toBeUndefined();
  expect(of("gateway", sunday(4))).toMatchObject({
    id: "updates",
    from: sunday(4),
    until: sunday(6),
  });
  expect(of("gateway", sunday(5, 59))).toBeDefined();
  expect(of("gateway", sunday(6))).toBeUndefined();
  expect(of("notes", sunday(5))).toBeUndefined();
  expect(of("gateway", sunday(5) - 24 * HOUR_MS)).toBeUndefined();
});

test("a window by cron follows its time zone, and may extend beyond midnight", () => {
  const { of } = open({
    cron: "30 23 * * *",
    for: "1h",
    time_zone: "Europe/Berlin",
  });
  expect(of("anything", sunday(22, 29))).toBeUndefined();
  expect(of("anything", sunday(22, 30))).toBeDefined();
  expect(of("anything", sunday(23, 29))).toBeDefined();
  expect(of("anything", sunday(23, 31))).toBeUndefined();
});

test("a window opened by an operator persists across a restart and can be ended early", () => {
  const now = Date.now();
  const window = open().start(null, 2 * HOUR_MS, "new disk", now);
  const later = open();
  expect(later.of("gateway", now + HOUR_MS)).toEqual(window);
  expect(later.end(window.id, now + HOUR_MS)).toMatchObject([
    { why: "new disk" },
  ]);
  expect(later.of("gateway", now + HOUR_MS)).toBeUndefined();
  expect(later.end(window.id, now + HOUR_MS)).toEqual([]);
  expect(open().of("gateway", now + HOUR_MS + 1)).toBeUndefined();
});

test("windows opened by an operator are ended by their checks; others stay", () => {
  const now = Date.now();
  const { start: begin, end, open: all } = open();
  for (const checks of [["gateway"], ["gateway", "notes"], null]) {
    begin(checks, HOUR_MS, "new disk", now);
    begin(checks, 2 * HOUR_MS, "new memory", now);
  }
  const later = now + 1000;
  for (const named of ["gateway", "gateway,notes", "all"]) {
    expect(end(named, later)).toMatchObject([
      { why: "new disk", until: later },
      { why: "new memory", until: later },
    ]);
    expect(end(named, later)).toEqual([]);
  }
  expect(all(later)).toEqual([]);
});

test("a window opened by an operator stays open if the clock is set back a little, and ends if it is set back far", () => {
  const now = Date.now();
  const { start: begin, of } = open();
  begin(null, 2 * HOUR_MS, "new disk", now);
  expect(of("gateway", now - HOUR_MS)).toBeDefined();
  expect(of("gateway", now - 24 * HOUR_MS)).toBeUndefined();
});
