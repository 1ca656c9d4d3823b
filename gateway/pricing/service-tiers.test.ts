import { expect, test } from "vitest";
import { cardOf, cost, usage } from "./prices-fixture.ts";
import { billOf, mostExpensive } from "./cost.ts";

test("service tiers have prices of the deployment or the file, or are marked", () => {
  const model = "openai/gpt-5-mini";
  const parts = { inputTokens: 1e6, outputTokens: 1e6 };
  const own = cardOf({
    model,
    input_cost_per_token: 1e-6,
    output_cost_per_token: 2e-6,
    input_cost_per_token_flex: 5e-7,
    output_cost_per_token_flex: 1e-6,
  });
  expect(cost(own, { ...parts, tiers: ["flex"] })).toBeCloseTo(1.5, 12);
  // The catalogue's multiple applied to the replaced prices.
  expect(billOf(own, usage({ ...parts, tiers: ["priority"] }))).toMatchObject({
    cost: 3,
    unpriced: ["service_tier=priority"],
  });
  const tierOnly = cardOf({ model, input_cost_per_token_priority: 1e-6 });
  expect(cost(tierOnly, { ...parts, tiers: ["priority"] })).toBeCloseTo(3, 12);
  expect(cost(tierOnly, { ...parts, tiers: ["flex"] })).toBeCloseTo(1.125, 12);
  const file = cardOf(
    { model },
    {},
    {
      [model]: {
        input_cost_per_token: 1e-6,
        output_cost_per_token: 2e-6,
        input_cost_per_token_priority: 2e-6,
        input_cost_per_token_above_200k_tokens_priority: 3e-6,
        provider_specific_entry: { fast: 6 },
      },
    },
  );
  expect(cost(file, { ...parts, tiers: ["priority"] })).toBeCloseTo(5, 12);
  expect(cost(file, { ...parts, tiers: ["fast"] })).toBeCloseTo(18, 12);
});

test("the estimate of a more expensive tier covers it, of a cheaper one the standard price", () => {
  const priced = cardOf({ model: "openai/gpt-5" });
  const use = { inputTokens: 1_000, outputTokens: 1_000 };
  const standard = mostExpensive(priced, use);
  expect(mostExpensive(priced, { ...use, tiers: ["priority"] })).toBeCloseTo(
    2 * standard,
    12,
  );
  expect(mostExpensive(priced, { ...use, tiers: ["flex"] })).toBe(standard);
});
