import { expect, test } from "vitest";
import { choosePeriod } from "../../../supervisor/reports/period.ts";
import { allFailedCalls, failedCallsOf } from "./failed-calls.ts";

const PERIOD = choosePeriod({ unit: "month", complete: false }, "2026-11-21");
const DAYS = "from=2026-11-01&until=2026-11-21";

test.each([
  ["model", "a/b", `/spend/calls?status=failure&${DAYS}&model=a%2Fb`],
  ["user", "anna", `/spend/calls?status=failure&${DAYS}&user=anna`],
  [
    "day",
    "2026-11-03",
    "/spend/calls?status=failure&from=2026-11-03&until=2026-11-03",
  ],
  ["provider", "openai", null],
  // Calls without a user.
  ["user", "", null],
] as const)("the failed calls of %s %j are at %s", (by, id, href) => {
  expect(failedCallsOf(by, { id, failed: 2 }, PERIOD)).toBe(href);
  expect(failedCallsOf(by, { id, failed: 0 }, PERIOD)).toBeNull();
});

test("without failures there is no link", () => {
  expect(allFailedCalls(PERIOD, 3)).toBe(`/spend/calls?status=failure&${DAYS}`);
  expect(allFailedCalls(PERIOD, 0)).toBeNull();
});
