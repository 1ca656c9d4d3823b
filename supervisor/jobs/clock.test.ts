import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import { systemClock } from "./clock.ts";

let startedAt: number;
let calls: number;

beforeEach(() => {
  vi.useFakeTimers();
  startedAt = Date.now();
  calls = 0;
});
afterEach(() => vi.useRealTimers());

const act = () => {
  calls += 1;
};

test("a time that passed during a sleep is noticed soon afterwards", () => {
  systemClock.wakeAt(startedAt + DAY_MS, act);
  vi.advanceTimersByTime(60_000);
  expect(calls).toBe(0);
  vi.setSystemTime(startedAt + 2 * DAY_MS);
  vi.advanceTimersByTime(30_000);
  expect(calls).toBe(1);
});

test("setting the clock back wakes immediately; a correction of less than a second does not", () => {
  systemClock.wakeAt(startedAt + DAY_MS, act);
  vi.advanceTimersByTime(60_000);
  vi.setSystemTime(Date.now() - 500);
  vi.advanceTimersByTime(30_000);
  expect(calls).toBe(0);
  vi.setSystemTime(startedAt - 5 * DAY_MS);
  vi.advanceTimersByTime(30_000);
  expect(calls).toBe(1);
});

test("time awake is independent of the clock, and cancelled calls do not happen", () => {
  systemClock.wakeAfter(60_000, act);
  vi.setSystemTime(startedAt + DAY_MS);
  vi.advanceTimersByTime(59_999);
  expect(calls).toBe(0);
  vi.advanceTimersByTime(1);
  expect(calls).toBe(1);
  systemClock.wakeAfter(1000, act)();
  systemClock.wakeAt(startedAt, act)();
  vi.advanceTimersByTime(DAY_MS);
  expect(calls).toBe(1);
});
