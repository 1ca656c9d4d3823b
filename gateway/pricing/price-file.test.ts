import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { pricesCalls } from "./price-card.ts";
import { readPricesFile } from "./price-file.ts";
import { cardOf, cost } from "./prices-fixture.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-prices-"));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

test("LiteLLM's tiers, request and image prices apply", () => {
  const entry = {
    input_cost_per_token: 1e-6,
    input_cost_per_token_above_128k_tokens: 2e-6,
    output_cost_per_token: 4e-6,
    output_cost_per_token_above_128k_tokens: 8e-6,
    cache_read_input_token_cost: 1e-7,
    input_cost_per_audio_token: 1e-5,
    output_cost_per_audio_token: 2e-5,
    output_cost_per_reasoning_token: 3e-5,
    input_cost_per_request: 0.5,
    output_cost_per_image: 0.04,
    max_output_tokens: 8192,
    max_input_tokens: 128000,
    litellm_provider: "openai",
    mode: "chat",
  };
  const priced = cardOf(
    { model: "openai/own" },
    {},
    { sample_spec: "text", own: entry },
  );
  expect(priced).toMatchObject({
    source: "prices_file",
    maxOutputTokens: 8192,
    contextWindow: 128_000,
  });
  expect(
    cost(priced, { inputTokens: 128_000, outputTokens: 1_000 }),
  ).toBeCloseTo(0.5 + 0.128 + 0.004, 12);
  expect(
    cost(priced, { inputTokens: 128_001, outputTokens: 1_000 }),
  ).toBeCloseTo(0.5 + 0.256002 + 0.008, 12);
  expect(
    cost(priced, {
      inputTokens: 100,
      audioInputTokens: 50,
      cachedInputTokens: 20,
      outputTokens: 100,
      audioOutputTokens: 30,
      reasoningTokens: 20,
      images: 2,
    }),
  ).toBeCloseTo(
    0.5 +
      0.08 +
      (30 * 1 + 50 * 10 + 20 * 0.1 + 50 * 4 + 30 * 20 + 20 * 30) / 1e6,
    12,
  );
});

test("mistakes in the prices file are named with their keys, all at once", () => {
  const file = join(directory, "prices.json");
  writeFileSync(
    file,
    JSON.stringify({
      a: { input_cost_per_token: "1e-6" },
      b: 3,
      c: { output_cost_per_token: -1 },
      d: {
        output_cost_per_token: 1e306,
        input_cost_per_second: 1e306,
      },
    }),
  );
  const read = readPricesFile(file);
  expect(
    read.ok
      ? []
      : read.problems.map(({ path, message }) => `${path}: ${message}`),
  ).toEqual([
    'a.input_cost_per_token: must be dollars, a number from 0 to 1000; it is "1e-6"',
    'b: must be an object such as {"input_cost_per_token": 0.000001}',
    "c.output_cost_per_token: must be dollars, a number from 0 to 1000; it is -1",
    "d.output_cost_per_token: must be dollars, a number from 0 to 1000; it is 1e+306",
    "d.input_cost_per_second: must be dollars, a number from 0 to 1000; it is 1e+306",
  ]);
  writeFileSync(file, "{");
  const broken = readPricesFile(file);
  expect(broken.ok ? "" : broken.problems[0]?.message).toMatch(
    /^is not valid JSON/,
  );
  const missing = readPricesFile(join(directory, "none.json"));
  expect(missing.ok ? "" : missing.problems[0]?.message).toBe(
    "cannot be read (ENOENT); fix prices_file or its permissions",
  );
});

test("a price file's other prices are used, and an entry without token prices is unpriced", () => {
  const entry = {
    input_cost_per_token: 1e-6,
    output_cost_per_token: 2e-6,
    cache_creation_input_token_cost: 2e-6,
    cache_creation_input_token_cost_above_1hr: 4e-6,
    output_cost_per_image_token: 3e-5,
    file_search_cost_per_1k_calls: 2.5,
    search_context_cost_per_query: { search_context_size_medium: 0.01 },
  };
  const priced = cardOf({ model: "openai/own" }, {}, { own: entry });
  expect(
    cost(priced, {
      inputTokens: 1_000,
      cacheWriteTokens: 1_000,
      cacheWrite1hTokens: 500,
      outputTokens: 100,
      imageOutputTokens: 100,
      webSearches: 1,
      fileSearches: 2,
    }),
  ).toBeCloseTo(0.001 + 0.002 + 0.003 + 0.01 + 0.005, 12);
  const audio = cardOf(
    { model: "openai/own" },
    {},
    { own: { input_cost_per_second: 1e-4, mode: "audio_transcription" } },
  );
  expect(pricesCalls(audio)).toBe(true);
  expect(cost(audio, { audioSeconds: 60 })).toBeCloseTo(0.006, 12);
});
