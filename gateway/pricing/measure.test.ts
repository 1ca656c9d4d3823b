import { describe, expect, test } from "vitest";
import { cardOf, usage } from "./prices-fixture.ts";
import { billOf, costOf, mostExpensive } from "./cost.ts";
import { measuredUsage } from "./measure.ts";
import type { PriceCard } from "./price-card.ts";

describe("calls that are priced by tokens or by piece", () => {
  const seconds = {
    piece: "audioSeconds",
    count: 60,
    estimated: true,
  } as const;
  const reported = usage({ inputTokens: 600, outputTokens: 100 });
  const costsOf = (priced: PriceCard) => ({
    withReport: costOf(
      priced,
      measuredUsage(priced, reported, seconds, reported),
    ),
    without: costOf(priced, measuredUsage(priced, reported, seconds, null)),
    worst: mostExpensive(priced, {
      inputTokens: 600,
      outputTokens: 100,
      measure: seconds,
    }),
  });
  const both = {
    input_cost_per_token: 1e-6,
    output_cost_per_token: 1e-6,
    input_cost_per_second: 1e-3,
  };

  test("reported tokens count before pieces, pieces before counted tokens", () => {
    const costs = costsOf(cardOf({ model: "openai/own" }, {}, { own: both }));
    expect(costs.withReport).toBeCloseTo(700e-6, 12);
    expect(costs.without).toBeCloseTo(0.06, 12);
    expect(costs.worst).toBeCloseTo(0.06, 12);
  });

  test("a price of tokens alone is for counted ones, too", () => {
    const own = { input_cost_per_token: 1e-6 };
    const costs = costsOf(cardOf({ model: "openai/own" }, {}, { own }));
    expect(costs.withReport).toBeCloseTo(600e-6, 12);
    expect(costs.without).toBeCloseTo(600e-6, 12);
  });

  test("tokens that cost nothing do not hide the price of pieces", () => {
    const own = {
      ...both,
      input_cost_per_token: 0,
      output_cost_per_token: 0,
    };
    const costs = costsOf(cardOf({ model: "openai/own" }, {}, { own }));
    expect(costs.withReport).toBeCloseTo(0.06, 12);
  });

  test("a deployment's own price of pieces replaces the catalogue's of tokens", () => {
    const costs = costsOf(
      cardOf({
        model: "openai/gpt-4o-transcribe",
        input_cost_per_second: 0.001,
      }),
    );
    expect(costs.withReport).toBeCloseTo(0.06, 12);
  });

  test.each([
    ["input_cost_per_second", "https://api.example.com/v1"],
    ["input_cost_per_second", "http://192.168.1.20:8000/v1"],
    ["input_cost_per_character", "http://192.168.1.20:8000/v1"],
    ["input_cost_per_query", "http://192.168.1.20:8000/v1"],
  ])(
    "a price of %s alone leaves the chats of a model at %s without a price",
    (name, api_base) => {
      const priced = cardOf({ model: "openai/own", api_base, [name]: 0.001 });
      expect(billOf(priced, reported)).toEqual({
        cost: 0,
        lines: [],
        unpriced: ["input_tokens", "output_tokens"],
      });
    },
  );

  test("a price of images leaves the chats of a model free", () => {
    const priced = cardOf({ model: "openai/own", input_cost_per_image: 0.04 });
    expect(billOf(priced, reported).unpriced).toEqual([]);
  });

  test("without any price the pieces are shown as unpriced", () => {
    const own = { output_cost_per_image: 1 };
    const priced = cardOf({ model: "openai/own" }, {}, { own });
    expect(
      billOf(priced, measuredUsage(priced, reported, seconds, reported)),
    ).toEqual({ cost: 0, lines: [], unpriced: ["audio_seconds"] });
  });
});
