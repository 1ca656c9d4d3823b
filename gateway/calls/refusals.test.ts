import { expect, test } from "vitest";
import { nanosFromBudget } from "../pricing/money.ts";
import { rejectionError } from "./refusals.ts";

const RENEWAL = Date.parse("2026-12-01T00:00:00Z");

test.each([
  [0.5, RENEWAL, "2026-12-01T00:00:00.000Z"],
  [0.5, Infinity, undefined],
  [5e-10, Infinity, undefined],
])(
  "a used-up budget of %d $ that resets at %d is rejected with its exact figure and %s in a header",
  (dollars, resetsAt, header) => {
    const budget = nanosFromBudget(dollars);
    const { message, details } = rejectionError(
      { kind: "budget_exceeded", entity: "team:t", spend: budget, budget },
      { dollars, resetsAt },
    );
    expect(message).toBe(
      `Budget has been exceeded! Team=t Current cost: ${budget / 1e9}, Max budget: ${dollars}`,
    );
    expect(details.headers?.["x-hearth-budget-reset-at"]).toBe(header);
  },
);

test.each([
  [0, "calls that are being settled. Try again in a moment."],
  [1, "1 call in flight. Try again when it has ended."],
  [3, "3 calls in flight. Try again when they have ended."],
])("a budget reserved by %d calls gives: %s", (inFlight, says) => {
  const { message } = rejectionError(
    { kind: "budget_held", entity: "user:u", inFlight },
    { dollars: 1, resetsAt: Infinity },
  );
  expect(message).toBe(
    `The rest of the budget for User=u is reserved by ${says}`,
  );
});

test.each([
  ["key:abc", "this key"],
  ["key_model:abc/openai/gpt-4", "Model=openai/gpt-4"],
  ["user:anna", "User=anna"],
  ["end_user:e:1", "End user=e:1"],
  ["proxy:", "Whole gateway"],
])("a reached rate limit of %s names %s", (entity, whose) => {
  const { message, details } = rejectionError(
    {
      kind: "rate_limited",
      entity,
      limit: "requests",
      allowed: 1,
      resetInMs: 1_500,
    },
    { dollars: null, resetsAt: Infinity },
  );
  expect(message).toBe(
    `Rate limit reached for ${whose}: 1 request per minute. It resets in 2 s.`,
  );
  expect(details.headers).toMatchObject({
    "retry-after": "2",
    "x-ratelimit-limit-requests": "1",
  });
});
