import { expect, test } from "vitest";
import { DAY_MS } from "../../../core/duration.ts";
import { nextRestart } from "./restart-budget.ts";

const policy = { firstWaitMs: 200, longestWaitMs: 1000, max: 4, perMs: 60_000 };
const NOW = 1_000_000;

test("the delay doubles with each restart up to the maximum", () => {
  const waits = [0, 1, 2, 3].map((count) =>
    nextRestart(
      policy,
      Array.from({ length: count }, () => NOW - 1),
      NOW,
    ),
  );
  expect(waits).toEqual([200, 400, 800, 1000]);
});

test("the budget is used up after the allowed restarts", () => {
  expect(nextRestart(policy, [NOW - 4, NOW - 3, NOW - 2, NOW - 1], NOW)).toBe(
    "used-up",
  );
});

test("restarts before the window do not count", () => {
  const old = NOW - 60_000;
  expect(nextRestart(policy, [old, old, old, old], NOW)).toBe(200);
});

test("restarts recorded before the clock was set back by a day do not count", () => {
  const ahead = NOW + DAY_MS;
  expect(nextRestart(policy, [ahead, ahead, ahead, ahead], NOW)).toBe(200);
});
