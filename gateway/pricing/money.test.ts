import { expect, test } from "vitest";
import { nanosFromBudget, nanosFromCost, nanosFromEstimate } from "./money.ts";

test("a budget is neither rounded away nor raised by the noise of doubles", () => {
  expect(nanosFromBudget(0)).toBe(0);
  expect(nanosFromBudget(5e-10)).toBe(1);
  expect(nanosFromBudget(0.000123)).toBe(123_000);
  expect(nanosFromBudget(0.1 + 0.2)).toBe(300_000_000);
  expect(nanosFromBudget(9_000_000)).toBe(9e15);
});

test("a cost is taken to the nearest nano-dollar", () => {
  expect(nanosFromCost(0.0000000014)).toBe(1);
  expect(nanosFromCost(0.000018)).toBe(18_000);
});

test("absurd estimates keep the reservations of other calls exact", () => {
  expect(nanosFromEstimate(0.000018)).toBe(18_000);
  for (const dollars of [1e30, Infinity, NaN]) {
    const held = 18_001 + 500 * nanosFromEstimate(dollars);
    expect(held - 500 * nanosFromEstimate(dollars)).toBe(18_001);
  }
});
