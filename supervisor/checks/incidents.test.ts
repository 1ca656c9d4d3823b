import { beforeEach, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../core/duration.ts";
import { temporaryHistory } from "../../test/supervisor/temporary-history.ts";
import type { History } from "../history/history.ts";
import { openCheckHistory } from "./check-history.ts";
import { checkRecords } from "./check-reports.ts";
import { incidents } from "./incidents.ts";

let history: History;
let now: number;

const start = Date.UTC(2026, 10, 1);

beforeEach(() => {
  now = start;
  history = temporaryHistory(() => now);
});

/** A probe of the gateway each 30 seconds, until `until`; those in [failsFrom, failsUntil) fail. */
function probe(until: number, failsFrom: number, failsUntil: number): void {
  const { record } = openCheckHistory(history.db);
  for (let at = start; at < until; at += 30 * SECOND_MS) {
    const ok = at < failsFrom || at >= failsUntil;
    const text = ok ? "answered 200" : "no answer within 2 s";
    const result = { ok, text, at, latencyMs: 1, measures: {}, level: "down" };
    record("gateway", { ...result, level: "down" }, true, 70 * SECOND_MS);
  }
}

function change(
  kind: "check" | "service",
  at: number,
  from: string,
  to: string,
  reason: string | null,
): void {
  now = at;
  if (kind === "check") {
    history.checkChanged("gateway", from, to, reason);
  } else {
    history.serviceChanged("gateway", from, to, reason);
  }
}

test("incidents have a start, an end and a reason; an ongoing one has no end", () => {
  change("check", start + HOUR_MS, "pending", "down", "answered 500");
  change("check", start + 2 * HOUR_MS, "down", "up", "answered 200");
  change("check", start + 5 * HOUR_MS, "pending", "down", "no answer");
  const ongoing = {
    check: "gateway",
    from: start + 5 * HOUR_MS,
    until: null,
    durationMs: HOUR_MS,
    downMs: HOUR_MS,
    times: 1,
    reason: "no answer",
    down: true,
  };
  expect(incidents(history.db, start, start + 6 * HOUR_MS)).toEqual([
    ongoing,
    {
      check: "gateway",
      from: start + HOUR_MS,
      until: start + 2 * HOUR_MS,
      durationMs: HOUR_MS,
      downMs: HOUR_MS,
      times: 1,
      reason: "answered 500",
      down: true,
    },
  ]);
  expect(
    incidents(history.db, start + 3 * HOUR_MS, start + 6 * HOUR_MS),
  ).toEqual([ongoing]);
});

test("failures that were too few to be down are an incident as long as the downtime that they cause", () => {
  const failed = start + HOUR_MS - 30 * SECOND_MS;
  probe(start + 2 * HOUR_MS, failed, failed + 60 * SECOND_MS);
  const until = start + 2 * HOUR_MS;
  const found = incidents(history.db, start, until);
  expect(found).toEqual([
    {
      check: "gateway",
      from: failed,
      until: failed + 60 * SECOND_MS,
      durationMs: 60 * SECOND_MS,
      downMs: 60 * SECOND_MS,
      times: 1,
      reason: "no answer within 2 s",
      down: false,
    },
  ]);
  const [record] = checkRecords(history.db, start, until);
  expect(record?.downMs).toBe(60 * SECOND_MS);
});

test("failures before, within and after a time down are one incident, and the last failure may be ongoing", () => {
  const failed = start + HOUR_MS;
  probe(failed + 5 * 60 * SECOND_MS, failed, failed + HOUR_MS);
  change("check", failed + 60 * SECOND_MS, "pending", "down", "no answer");
  const until = failed + 5 * 60 * SECOND_MS;
  expect(incidents(history.db, start, until)).toEqual([
    {
      check: "gateway",
      from: failed,
      until: null,
      durationMs: 5 * 60 * SECOND_MS,
      downMs: 5 * 60 * SECOND_MS,
      times: 1,
      reason: "no answer within 2 s",
      down: true,
    },
  ]);
});

test("a service that ended is an incident, even if no check noticed", () => {
  change("service", start + HOUR_MS, "running", "backing-off", "exit code 1");
  change(
    "service",
    start + HOUR_MS + 20 * SECOND_MS,
    "backing-off",
    "starting",
    null,
  );
  change(
    "service",
    start + HOUR_MS + 45 * SECOND_MS,
    "starting",
    "running",
    null,
  );
  expect(incidents(history.db, start, start + 2 * HOUR_MS)).toMatchObject([
    {
      check: "gateway",
      durationMs: 45 * SECOND_MS,
      reason: "exit code 1",
      down: true,
    },
  ]);
});

test("a flapping service is one incident, however often its state changes, noticed by its check or not", () => {
  const began = start + HOUR_MS;
  for (let flap = 0; flap < 20; flap += 1) {
    const at = began + flap * 3 * MINUTE_MS;
    change("service", at, "running", "backing-off", "exit code 1");
    if (flap % 2 === 0) {
      change("check", at + 5 * SECOND_MS, "pending", "down", "no answer");
    }
    change("service", at + MINUTE_MS, "starting", "running", null);
    if (flap % 2 === 0) {
      change("check", at + MINUTE_MS, "down", "up", null);
    }
  }
  change("check", began + 3 * HOUR_MS, "pending", "down", "answered 500");
  change("check", began + 4 * HOUR_MS, "down", "up", null);
  expect(incidents(history.db, start, start + 8 * HOUR_MS)).toEqual([
    {
      check: "gateway",
      from: began + 3 * HOUR_MS,
      until: began + 4 * HOUR_MS,
      durationMs: HOUR_MS,
      downMs: HOUR_MS,
      times: 1,
      reason: "answered 500",
      down: true,
    },
    {
      check: "gateway",
      from: began,
      until: began + 58 * MINUTE_MS,
      durationMs: 58 * MINUTE_MS,
      downMs: 20 * MINUTE_MS,
      times: 20,
      reason: "exit code 1",
      down: true,
    },
  ]);
});

test("single failures every few minutes are one incident, those further apart are not", () => {
  const { record } = openCheckHistory(history.db);
  const first = start + HOUR_MS;
  const failing = [0, 5, 10, 30].map((minutes) => first + minutes * MINUTE_MS);
  for (let at = start; at < start + 2 * HOUR_MS; at += 30 * SECOND_MS) {
    const ok = !failing.includes(at);
    const result = { ok, text: "", at, latencyMs: 1, measures: {} };
    record("gateway", { ...result, level: "down" }, true, 70 * SECOND_MS);
  }
  expect(incidents(history.db, start, start + 2 * HOUR_MS)).toMatchObject([
    { from: failing[3], times: 1, down: false },
    { from: first, times: 3, downMs: 90 * SECOND_MS, down: false },
  ]);
});

test("an outage that began before the range is complete from its first change, also one that was not over yet then", () => {
  change("service", start, "running", "backing-off", "an earlier one");
  change("service", start + MINUTE_MS, "backing-off", "running", null);
  const began = start + HOUR_MS;
  const over = start + 4 * HOUR_MS;
  change("service", began, "running", "backing-off", "exit code 1");
  change("service", began + MINUTE_MS, "starting", "backing-off", "again");
  change("service", began + HOUR_MS, "backing-off", "gave-up", null);
  change("service", over, "gave-up", "running", null);
  change("service", over + HOUR_MS, "running", "backing-off", "a later one");
  expect(
    incidents(history.db, began + 2 * HOUR_MS, over + MINUTE_MS),
  ).toMatchObject([
    { check: "gateway", from: began, until: over, reason: "exit code 1" },
  ]);
});

test("only incidents of the named checks and services", () => {
  history.checkChanged("disk", "up", "down", "full");
  history.serviceChanged("notes", "running", "gave-up", "exit code 1");
  probe(start + HOUR_MS, start + MINUTE_MS, start + 2 * MINUTE_MS);
  const until = start + HOUR_MS;
  const of = (...names: readonly string[]) =>
    incidents(history.db, start - HOUR_MS, until, names).map(
      ({ check }) => check,
    );
  expect(of("disk", "gateway")).toEqual(["gateway", "disk"]);
  expect(of("notes")).toEqual(["notes"]);
  expect(of("unknown")).toEqual([]);
});
