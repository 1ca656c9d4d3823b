import { expect, test } from "vitest";
import { inWords, parseDuration } from "./duration.ts";

test.each([
  ["500ms", 500],
  ["30s", 30_000],
  ["1.5s", 1500],
  ["2m", 120_000],
  ["1h", 3_600_000],
  ["7d", 604_800_000],
])("%s is %d ms", (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each(["", "30", "s", "-1s", "1 week", "1s 2s"])(
  "%j is not a duration",
  (text) => {
    expect(parseDuration(text)).toBeUndefined();
  },
);

test.each([
  [40, "0.0 s"],
  [1234, "1.2 s"],
  [12_000, "12 s"],
  [60_000, "1 min"],
  [303_000, "5 min 3 s"],
  [21_000_000, "5 h 50 min"],
  [273_600_000, "3 d 4 h"],
])("%d ms in words is %s", (ms, words) => {
  expect(inWords(ms)).toBe(words);
});
