import { expect, test } from "vitest";
import { LATENCY_GROWTH } from "../database/model-hours.ts";
import { percentile } from "./latency-classes.ts";

const classOf = (ms: number) =>
  Math.floor(Math.log(ms) / Math.log(LATENCY_GROWTH));

test("a percentile is within 5 % of the latency of its rank", () => {
  const counts = [
    { latency: classOf(12_000), requests: 5 },
    { latency: classOf(800), requests: 95 },
  ];
  const [p50, p95, p96] = [0.5, 0.95, 0.96].map(
    (share) => percentile(counts, share) ?? 0,
  );
  expect(Math.abs((p50 ?? 0) / 800 - 1)).toBeLessThan(0.05);
  expect(p95).toBe(p50);
  expect(Math.abs((p96 ?? 0) / 12_000 - 1)).toBeLessThan(0.05);
});

test("calls without an answer have no latency", () => {
  expect(percentile([], 0.5)).toBeNull();
  const failed = { latency: -1, requests: 9 };
  expect(percentile([failed], 0.5)).toBeNull();
  expect(percentile([failed, { latency: 0, requests: 1 }], 0.5)).toBe(1);
});
