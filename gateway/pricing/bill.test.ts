import { expect, test } from "vitest";
import { inputOnly } from "../tokens/reported-usage.ts";
import { billAt } from "./bill.ts";
import type { PriceCard } from "./price-card.ts";
import { cardOf } from "./prices-fixture.ts";

const card = (source: PriceCard["source"]): PriceCard => ({
  ...cardOf({ model: "openai/any", input_cost_per_token: 1e-6 }),
  source,
});
const USAGE = { ...inputOnly(1_000_000), reportedCost: 3 };

test.each([
  ["openrouter", card("deployment"), 1],
  ["openrouter", card("prices_file"), 1],
  ["openrouter", card("catalogue"), 3],
  ["openrouter", null, 3],
  ["custom", card("catalogue"), 1],
  ["custom", null, undefined],
])(
  "the operator's prices come before the reported cost, and that before published prices: %s",
  (providerName, priceCard, cost) => {
    expect(billAt({ providerName, priceCard }, USAGE)?.cost).toBe(cost);
  },
);

test("a reported cost is the only line of its bill", () => {
  const deployment = { providerName: "xai", priceCard: null };
  expect(billAt(deployment, USAGE)).toEqual({
    cost: 3,
    lines: [["reported_cost", 1, 3]],
    unpriced: [],
    reported: true,
  });
});
