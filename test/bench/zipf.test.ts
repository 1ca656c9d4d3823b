import { expect, test } from "vitest";
import { randomSequence, zipfSequence } from "./zipf.ts";

test("the sequence is the same for the same seed, and the n-th item occurs about 1/n as often as the first", () => {
  const sequenceOf = () => zipfSequence(100_000, 200, randomSequence("a seed"));
  const sequence = sequenceOf();
  expect(sequenceOf()).toEqual(sequence);
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
