import { calcPrice, findProvider, waitForUpdate } from "@pydantic/genai-prices";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  CATALOGUE_FIELDS,
  catalogueRates,
  publishedPrices,
} from "./price-catalogue.ts";
import { flatCard, pricesCalls } from "./price-card.ts";
import { card, cardOf, cost, usage } from "./prices-fixture.ts";
import { billOf, costOf } from "./cost.ts";
import type { Usage } from "../tokens/reported-usage.ts";

// Dollars per million tokens, from the pinned catalogue: gpt-5-mini 0.25 in, 0.025 cached, 2 out.
test.each<[object, Partial<Usage>, number]>([
  [
    { model: "openai/gpt-5-mini" },
    { inputTokens: 1000, outputTokens: 100 },
    0.00045,
  ],
  [
    { model: "openai/gpt-5-mini" },
    { inputTokens: 1000, cachedInputTokens: 600, outputTokens: 100 },
    0.000315,
  ],
  // claude-sonnet-4: 3 in, 0.3 cache read, 3.75 cache write, 15 out.
  [
    { model: "anthropic/claude-sonnet-4" },
    {
      inputTokens: 10_000,
      cachedInputTokens: 4_000,
      cacheWriteTokens: 5_000,
      outputTokens: 1_000,
    },
    (1_000 * 3 + 4_000 * 0.3 + 5_000 * 3.75 + 1_000 * 15) / 1e6,
  ],
  // gemini-2.5-pro: 1.25 in, 10 out; above 200,000 input tokens 2.5 and 15 for all of them.
  [
    { model: "gemini/gemini-2.5-pro" },
    { inputTokens: 200_000, outputTokens: 1_000 },
    0.26,
  ],
  [
    { model: "gemini/gemini-2.5-pro" },
    { inputTokens: 200_001, outputTokens: 1_000 },
    (200_001 * 2.5 + 15_000) / 1e6,
  ],
  // gemini-2.5-flash: 0.3 in, 1 audio in, 2.5 out.
  [
    { model: "gemini/gemini-2.5-flash" },
    { inputTokens: 1_000, audioInputTokens: 400, outputTokens: 10 },
    (600 * 0.3 + 400 * 1 + 10 * 2.5) / 1e6,
  ],
  [{ model: "openai/text-embedding-3-small" }, { inputTokens: 1_000 }, 0.00002],
  // sonar-pro: 3 in, 15 out, 14 per 1,000 requests.
  [
    { model: "perplexity/sonar-pro" },
    { inputTokens: 1_000, outputTokens: 100 },
    0.0185,
  ],
])("%j with %j costs the provider's list price", (params, parts, dollars) => {
  expect(cost(cardOf(params), parts)).toBeCloseTo(dollars, 15);
});

test("every model of the catalogue costs the same as by the catalogue's own calculator", () => {
  const providers = [
    "openai",
    "anthropic",
    "gemini",
    "deepseek",
    "mistral",
    "groq",
    "xai",
    "openrouter",
  ];
  const names: Record<string, string> = { gemini: "google", xai: "x-ai" };
  const cases = providers.flatMap((provider) =>
    (
      findProvider({ providerId: names[provider] ?? provider })?.models ?? []
    ).map(({ id }) => ({ provider, id })),
  );
  expect(cases.length).toBeGreaterThan(500);
  fc.assert(
    fc.property(
      fc.constantFrom(...cases),
      fc.nat(400_000),
      fc.nat(100_000),
      fc.nat(100_000),
      fc.nat(50_000),
      fc.date({
        min: new Date("2026-09-01"),
        max: new Date("2027-06-01"),
        noInvalidDate: true,
      }),
      ({ provider, id }, plain, cached, written, output, at) => {
        const theirs = calcPrice(
          {
            input_tokens: plain + cached + written,
            output_tokens: output,
            cache_read_tokens: cached,
            cache_write_tokens: written,
          },
          id,
          { providerId: names[provider] ?? provider, timestamp: at },
        );
        const model = `${provider}/${id}`;
        const parts = {
          inputTokens: plain + cached + written,
          outputTokens: output,
          cachedInputTokens: cached,
          cacheWriteTokens: written,
        };
        if (theirs === null) {
          expect(card({ model })).toBeNull();
        } else {
          expect(cost(cardOf({ model }), parts, at.getTime())).toBeCloseTo(
            theirs.total_price,
            9,
          );
        }
      },
    ),
    { numRuns: 300 },
  );
});

test("a published price is found without the name of the provider, where the model's says which it is", () => {
  const card = publishedPrices("text-embedding-3-small");
  expect(card?.periods[0].rates.input).toBe(0.02);
  expect(card).toEqual(publishedPrices("openai/text-embedding-3-small"));
  expect(publishedPrices("an-unknown-model")).toBeNull();
});

test("every price field of the catalogue is read", async () => {
  const providers = (await waitForUpdate()) ?? [];
  const fields = new Set(
    providers.flatMap(({ models }) =>
      models.flatMap(({ prices }) =>
        (Array.isArray(prices) ? prices : [{ prices }]).flatMap((one) =>
          Object.keys(one.prices),
        ),
      ),
    ),
  );
  expect(fields.size).toBeGreaterThan(20);
  expect([...fields].filter((field) => !CATALOGUE_FIELDS.has(field))).toEqual(
    [],
  );
});

test("every price field of the catalogue changes what a call costs", () => {
  const usageOfAll: Partial<Usage> = {
    inputTokens: 1_000,
    cachedInputTokens: 300,
    cachedAudioTokens: 100,
    cachedImageTokens: 100,
    cacheWriteTokens: 300,
    cacheWrite1hTokens: 100,
    audioInputTokens: 100,
    imageInputTokens: 100,
    videoInputTokens: 100,
    outputTokens: 1_000,
    audioOutputTokens: 100,
    imageOutputTokens: 100,
    videoOutputTokens: 100,
    reasoningTokens: 100,
    citationTokens: 100,
    webSearches: 1,
    fileSearches: 1,
    pages: 1,
    annotatedPages: 1,
    audioSeconds: 1,
    characters: 1,
    searchUnits: 1,
    textMessages: 1,
  };
  for (const field of CATALOGUE_FIELDS) {
    const rates = catalogueRates({ [field]: 7 });
    expect([
      field,
      costOf(flatCard("catalogue", rates), usage(usageOfAll)) > 0,
    ]).toEqual([field, true]);
  }
});

test("a model billed only by the hour of audio is priced, but its tokens are not free", () => {
  const whisper = cardOf({ model: "openai/whisper-1" });
  expect(pricesCalls(whisper)).toBe(true);
  expect(billOf(whisper, usage({ inputTokens: 10 }))).toEqual({
    cost: 0,
    lines: [],
    unpriced: ["input_tokens"],
  });
  expect(billOf(whisper, usage({ audioSeconds: 3_600 })).cost).toBeCloseTo(
    0.36,
    12,
  );
});
