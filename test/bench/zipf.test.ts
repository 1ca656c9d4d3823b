import { expect, test } from "vitest";
import { randomSequence, zipfSequence } from "./zipf.ts";

test("draws the same sequence for the same seed, the n-th item about 1/n as often as the first", () => {
  const draw = () => zipfSequence(100_000, 200, randomSequence("a seed"));
  const sequence = draw();
  expect(draw()).toEqual(sequence);
  const counts = Array.from({ length: 200 }, () => 0);
  for (const item of sequence) {
    counts[item] = (counts[item] ?? 0) + 1;
  }
  expect(Math.min(...counts)).toBeGreaterThan(0);
  const [first = 0] = counts;
  for (const item of [2, 5, 10]) {
    expect((counts[item - 1] ?? 0) / first).toBeCloseTo(1 / item, 1);
  }
});
