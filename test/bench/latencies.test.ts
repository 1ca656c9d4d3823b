import { expect, test } from "vitest";
import { latencyOf } from "./latencies.ts";

test("percentiles are values that were measured; p99.9 needs a thousand of them", () => {
  const values = Array.from({ length: 1_000 }, (_, at) => at + 1);
  expect(latencyOf(values.toReversed())).toEqual({
    p50: 500,
    p99: 990,
    p999: 999,
    max: 1_000,
  });
  expect(latencyOf(values.slice(1))?.p999).toBeNull();
  expect(latencyOf([])).toBeNull();
});
