import { expect, test } from "vitest";
import { choosePeriod } from "../../../supervisor/reports/period.ts";
import { callsBehind, callsOfRow } from "./calls-behind.ts";

const PERIOD = choosePeriod({ unit: "month", complete: false }, "2026-11-21");
const DAYS = "from=2026-11-01&until=2026-11-21";

test.each([
  ["model", "a/b", "failed", `status=failure&${DAYS}&model=a%2Fb`],
  ["user", "anna", "requests", `${DAYS}&user=anna`],
  ["provider", "openai", "spend", `${DAYS}&provider=openai`],
  ["day", "2026-11-03", "spend", "from=2026-11-03&until=2026-11-03"],
] as const)(
  "the calls of %s %j behind %s are at %s",
  (by, id, column, query) => {
    expect(callsOfRow(by, id, column, 2, PERIOD)).toBe(`/spend/calls?${query}`);
    expect(callsOfRow(by, id, column, 0, PERIOD)).toBeNull();
  },
);

test("there is no link for calls without a user, nor from other figures", () => {
  expect(callsOfRow("user", "", "spend", 2, PERIOD)).toBeNull();
  expect(callsOfRow("user", "anna", "saved", 2, PERIOD)).toBeNull();
  expect(callsBehind("share", PERIOD, 1)).toBeNull();
  expect(callsBehind("failed", PERIOD, 3)).toBe(
    `/spend/calls?status=failure&${DAYS}`,
  );
  expect(callsBehind("spend", PERIOD, 3)).toBe(`/spend/calls?${DAYS}`);
  expect(callsBehind("failed", PERIOD, 0)).toBeNull();
});
