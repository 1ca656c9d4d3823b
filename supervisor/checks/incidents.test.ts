import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { openHistory, type History } from "../history/history.ts";
import { openCheckHistory } from "./check-history.ts";
import { checkRecords } from "./check-reports.ts";
import { incidents } from "./incidents.ts";

let place: ReturnType<typeof temporaryHome>;
let history: History;
let now: number;

const SECOND = 1000;
const HOUR = 3_600_000;
const start = Date.UTC(2026, 10, 1);

beforeEach(() => {
  place = temporaryHome();
  now = start;
  history = openHistory(`${place.directory}/history.db`, () => now);
});
afterEach(() => {
  history.close();
  place.remove();
});

/** A probe of the gateway each 30 seconds, until `until`; those in [failsFrom, failsUntil) fail. */
function probe(until: number, failsFrom: number, failsUntil: number): void {
  const { record } = openCheckHistory(history.db);
  for (let at = start; at < until; at += 30 * SECOND) {
    const ok = at < failsFrom || at >= failsUntil;
    const text = ok ? "answered 200" : "no answer within 2 s";
    const result = { ok, text, at, latencyMs: 1, measures: {}, level: "down" };
    record("gateway", { ...result, level: "down" }, true, 70 * SECOND);
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
  change("check", start + HOUR, "pending", "down", "answered 500");
  change("check", start + 2 * HOUR, "down", "up", "answered 200");
  change("check", start + 5 * HOUR, "pending", "down", "no answer");
  const ongoing = {
    check: "gateway",
    from: start + 5 * HOUR,
    until: null,
    durationMs: HOUR,
    downMs: HOUR,
    times: 1,
    reason: "no answer",
    down: true,
  };
  expect(incidents(history.db, start, start + 6 * HOUR)).toEqual([
    ongoing,
    {
      check: "gateway",
      from: start + HOUR,
      until: start + 2 * HOUR,
      durationMs: HOUR,
      downMs: HOUR,
      times: 1,
      reason: "answered 500",
      down: true,
    },
  ]);
  expect(incidents(history.db, start + 3 * HOUR, start + 6 * HOUR)).toEqual([
    ongoing,
  ]);
});

test("failures that were too few to be down are an incident as long as the downtime that they cause", () => {
  const failed = start + HOUR - 30 * SECOND;
  probe(start + 2 * HOUR, failed, failed + 60 * SECOND);
  const until = start + 2 * HOUR;
  const found = incidents(history.db, start, until);
  expect(found).toEqual([
    {
      check: "gateway",
      from: failed,
      until: failed + 60 * SECOND,
      durationMs: 60 * SECOND,
      downMs: 60 * SECOND,
      times: 1,
      reason: "no answer within 2 s",
      down: false,
    },
  ]);
  const [record] = checkRecords(history.db, start, until);
  expect(record?.downMs).toBe(60 * SECOND);
});

test("failures before, within and after a time down are one incident, and the last failure may be ongoing", () => {
  const failed = start + HOUR;
  probe(failed + 5 * 60 * SECOND, failed, failed + HOUR);
  change("check", failed + 60 * SECOND, "pending", "down", "no answer");
  const until = failed + 5 * 60 * SECOND;
  expect(incidents(history.db, start, until)).toEqual([
    {
      check: "gateway",
      from: failed,
      until: null,
      durationMs: 5 * 60 * SECOND,
      downMs: 5 * 60 * SECOND,
      times: 1,
      reason: "no answer within 2 s",
      down: true,
    },
  ]);
});

test("a service that ended is an incident, even if no check noticed", () => {
  change("service", start + HOUR, "running", "backing-off", "exit code 1");
  change(
    "service",
    start + HOUR + 20 * SECOND,
    "backing-off",
    "starting",
    null,
  );
  change("service", start + HOUR + 45 * SECOND, "starting", "running", null);
  expect(incidents(history.db, start, start + 2 * HOUR)).toMatchObject([
    {
      check: "gateway",
      durationMs: 45 * SECOND,
      reason: "exit code 1",
      down: true,
    },
  ]);
});

const MINUTE = 60 * SECOND;

test("a flapping service is one incident, however often its state changes, noticed by its check or not", () => {
  const began = start + HOUR;
  for (let flap = 0; flap < 20; flap += 1) {
    const at = began + flap * 3 * MINUTE;
    change("service", at, "running", "backing-off", "exit code 1");
    if (flap % 2 === 0) {
      change("check", at + 5 * SECOND, "pending", "down", "no answer");
    }
    change("service", at + MINUTE, "starting", "running", null);
    if (flap % 2 === 0) {
      change("check", at + MINUTE, "down", "up", null);
    }
  }
  change("check", began + 3 * HOUR, "pending", "down", "answered 500");
  change("check", began + 4 * HOUR, "down", "up", null);
  expect(incidents(history.db, start, start + 8 * HOUR)).toEqual([
    {
      check: "gateway",
      from: began + 3 * HOUR,
      until: began + 4 * HOUR,
      durationMs: HOUR,
      downMs: HOUR,
      times: 1,
      reason: "answered 500",
      down: true,
    },
    {
      check: "gateway",
      from: began,
      until: began + 58 * MINUTE,
      durationMs: 58 * MINUTE,
      downMs: 20 * MINUTE,
      times: 20,
      reason: "exit code 1",
      down: true,
    },
  ]);
});

test("single failures every few minutes are one incident, those further apart are not", () => {
  const { record } = openCheckHistory(history.db);
  const first = start + HOUR;
  const failing = [0, 5, 10, 30].map((minutes) => first + minutes * MINUTE);
  for (let at = start; at < start + 2 * HOUR; at += 30 * SECOND) {
    const ok = !failing.includes(at);
    const result = { ok, text: "", at, latencyMs: 1, measures: {} };
    record("gateway", { ...result, level: "down" }, true, 70 * SECOND);
  }
  expect(incidents(history.db, start, start + 2 * HOUR)).toMatchObject([
    { from: failing[3], times: 1, down: false },
    { from: first, times: 3, downMs: 90 * SECOND, down: false },
  ]);
});
