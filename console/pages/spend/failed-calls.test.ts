import { expect, test } from "vitest";
import { choosePeriod } from "../../../supervisor/reports/period.ts";
import { allFailedCalls, failedCallsOf } from "./failed-calls.ts";

const period = choosePeriod({ unit: "month", complete: false }, "2026-11-21");
const days = "from=2026-11-01&until=2026-11-21";

test.each([
  ["model", "a/b", `/spend/calls?status=failure&${days}&model=a%2Fb`],
  ["user", "anna", `/spend/calls?status=failure&${days}&user=anna`],
  [
    "day",
    "2026-11-03",
    "/spend/calls?status=failure&from=2026-11-03&until=2026-11-03",
  ],
  ["provider", "openai", null],
  // Calls without a user.
  ["user", "", null],
] as const)("the failed calls of %s %j are at %s", (by, id, href) => {
  expect(failedCallsOf(by, { id, failed: 2 }, period)).toBe(href);
  expect(failedCallsOf(by, { id, failed: 0 }, period)).toBeNull();
});

test("without failures there is no link", () => {
  expect(allFailedCalls(period, 3)).toBe(`/spend/calls?status=failure&${days}`);
  expect(allFailedCalls(period, 0)).toBeNull();
});
