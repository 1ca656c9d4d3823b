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
    const deployment = { providerName, local: null, priceCard };
    expect(billAt(deployment, USAGE)?.cost).toBe(cost);
  },
);

test.each([
  ["openrouter", null, 3],
  ["openrouter", true, 0],
  ["custom", null, 0],
])(
  "a reported cost counts at a private address, unless the model is marked as local: %s, %s",
  (providerName, local, cost) => {
    const priceCard = cardOf({
      model: "openai/unlisted",
      api_base: "http://192.168.1.20:8000/v1",
    });
    expect(priceCard.source).toBe("local");
    const deployment = { providerName, local, priceCard };
    expect(billAt(deployment, USAGE)?.cost).toBe(cost);
  },
);

test("a reported cost is the only line of its bill", () => {
  const deployment = { providerName: "xai", local: null, priceCard: null };
  expect(billAt(deployment, USAGE)).toEqual({
    cost: 3,
    lines: [["reported_cost", 1, 3]],
    unpriced: [],
    reported: true,
  });
});
