import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { HOUR_MS } from "../../../core/duration.ts";
import { probeCheck } from "../../../test/supervisor/probe-check.ts";
import { timeToFull } from "./disk.ts";

/** A measurement every ten minutes; `free` returns the free space after some hours. */
function points(hours: number, free: (hour: number) => number) {
  return Array.from({ length: hours * 6 + 1 }, (_, index) => ({
    at: (index * HOUR_MS) / 6,
    value: free(index / 6),
  }));
}

test("a steady decrease predicts when the disk is full", () => {
  const left = timeToFull(points(6, (at) => 1000 - 100 * at)) ?? 0;
  expect(left / HOUR_MS).toBeCloseTo(4);
});

test.each([
  ["rises", (at: number) => 1000 + at],
  ["stays", () => 1000],
  ["goes up and down", (at: number) => 1000 + 100 * Math.sin(at * 9) - at],
])("what %s is never full", (_how, free) => {
  expect(timeToFull(points(6, free))).toBeUndefined();
});

test("less than an hour of measurements is no trend", () => {
  expect(timeToFull(points(0.5, (at) => 1000 - 100 * at))).toBeUndefined();
  expect(timeToFull([])).toBeUndefined();
});

test("a real disk is measured; exceeded limits are warnings", async () => {
  const path = tmpdir();
  const roomy = { free_above_percent: 1 };
  const result = await probeCheck({ kind: "disk", path, expect: roomy });
  expect(result.measures["free_bytes"]).toBeGreaterThan(0);
  expect(result.text).toMatch(/ [kMG]B free, \d+(\.\d+)? %/);
  const tight = { free_above_percent: 99 };
  expect(await probeCheck({ kind: "disk", path, expect: tight })).toMatchObject(
    {
      ok: false,
      level: "warning",
      text: expect.stringMatching(/^less than 99 % is free/),
    },
  );
});

test("a disk that will be full soon is a warning", async () => {
  const result = await probeCheck(
    { kind: "disk", path: tmpdir(), expect: { free_above_percent: 1 } },
    {
      measured: (_name, since) => {
        const { now } = { now: Date.now() };
        return [0, 1, 2, 3].map((at) => ({
          at: Math.max(since, now - (5 - at) * HOUR_MS),
          value: 1e15 - at * 2e14,
        }));
      },
    },
  );
  expect(result.text).toMatch(/^it will be full within 1 d; /);
});

test("a missing path is a failure", async () => {
  const result = await probeCheck({ kind: "disk", path: "/nowhere/at/all" });
  expect(result).toMatchObject({ ok: false, level: "down" });
});
