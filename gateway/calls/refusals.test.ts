import { expect, test } from "vitest";
import { nanosFromBudget } from "../pricing/money.ts";
import { rejectionError } from "./refusals.ts";

const RENEWAL = Date.parse("2026-12-01T00:00:00Z");

test.each([
  [0.5, RENEWAL, "it resets at 2026-12-01T00:00:00.000Z."],
  [0.5, Infinity, "ask the operator of this gateway to raise it."],
  [0, RENEWAL, "ask the operator of this gateway to raise it."],
])(
  "a used-up budget of %d $ that resets at %d gives: %s",
  (dollars, at, says) => {
    const budget = nanosFromBudget(dollars);
    const { message } = rejectionError(
      { kind: "budget_exceeded", entity: "team:t", spend: budget, budget },
      at,
    );
    expect(message).toBe(
      `Budget has been exceeded! Team=t Current cost: ${dollars}, Max budget: ${dollars}; ${says}`,
    );
  },
);

test.each([
  [0, "calls that are being settled. Try again in a moment."],
  [1, "1 call in flight. Try again when it has ended."],
  [3, "3 calls in flight. Try again when they have ended."],
])("a budget reserved by %d calls gives: %s", (inFlight, says) => {
  const { message } = rejectionError(
    { kind: "budget_held", entity: "user:u", inFlight },
    Infinity,
  );
  expect(message).toBe(
    `The rest of the budget for User=u is reserved by ${says}`,
  );
});
