import { createHistogram } from "node:perf_hooks";
import { expect, test } from "vitest";
import { readLoopDelay } from "./loop-delay.ts";

const MS = 1_000_000;

test("delays of more than 10 ms are counted, without the interval of the timer", () => {
  const delays = createHistogram();
  for (let count = 0; count < 995; count++) {
    delays.record(5 * MS);
  }
  for (const delay of [14, 17, 25, 25, 85]) {
    delays.record(delay * MS);
  }
  const { p50, p99, max, pauses } = readLoopDelay(delays, 5);
  expect(pauses).toBe(4);
  expect(p50).toBeCloseTo(0, 1);
  expect(p99).toBeCloseTo(0, 1);
  expect(max).toBeCloseTo(80, 0);
});

test("without any delay there is no pause, and with nothing but pauses each counts", () => {
  const delays = createHistogram();
  expect(readLoopDelay(delays, 5).pauses).toBe(0);
  for (let count = 0; count < 3; count++) {
    delays.record(40 * MS);
  }
  expect(readLoopDelay(delays, 5).pauses).toBe(3);
});
