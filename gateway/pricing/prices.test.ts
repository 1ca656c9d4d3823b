import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { calcPrice, findProvider, waitForUpdate } from "@pydantic/genai-prices";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadConfig } from "../config/load.ts";
import { deploymentFromRow } from "../config/stored.ts";
import type { Deployment } from "../config/types.ts";
import { CATALOGUE_FIELDS, catalogueRates } from "./price-catalogue.ts";
import { flatCard, pricesCalls } from "./price-card.ts";
import {
  billOf,
  costOf,
  createPriceBook,
  measuredUsage,
  mostExpensive,
  readPricesFile,
  usageFromOpenAI,
  type PriceCard,
  type Usage,
} from "./prices.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-prices-"));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

function deployment(params: object, info: object = {}): Deployment {
  const result = deploymentFromRow(
    { model_name: "alias", provider_params: params, model_info: info },
    {},
  );
  if (!result.ok) {
    throw new Error(JSON.stringify(result.problems));
  }
  return result.deployment;
}

function card(
  params: object,
  info: object = {},
  file: object | null = null,
): PriceCard | null {
  if (file === null) {
    return createPriceBook(null).priceFor(deployment(params, info));
  }
  const path = join(directory, "prices.json");
  writeFileSync(path, JSON.stringify(file));
  const read = readPricesFile(path);
  if (!read.ok) {
    throw new Error(JSON.stringify(read.problems));
  }
  return createPriceBook(read.prices).priceFor(deployment(params, info));
}

const usage = (parts: Partial<Usage>): Usage => ({
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  audioInputTokens: 0,
  audioOutputTokens: 0,
  reasoningTokens: 0,
  ...parts,
});

function cost(
  priceCard: PriceCard | null,
  parts: Partial<Usage>,
  at?: number,
): number {
  if (priceCard === null) {
    throw new Error("unpriced");
  }
  return costOf(priceCard, usage(parts), at);
}

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
  expect(cost(card(params), parts)).toBeCloseTo(dollars, 15);
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
        const ours = card({ model: `${provider}/${id}` });
        const parts = {
          inputTokens: plain + cached + written,
          outputTokens: output,
          cachedInputTokens: cached,
          cacheWriteTokens: written,
        };
        if (theirs === null) {
          expect(ours).toBeNull();
        } else {
          expect(cost(ours, parts, at.getTime())).toBeCloseTo(
            theirs.total_price,
            9,
          );
        }
      },
    ),
    { numRuns: 300 },
  );
});

test("every alias of the shipped configuration has a price", () => {
  const projectRoot = join(import.meta.dirname, "../..");
  const result = loadConfig({
    file: join(projectRoot, "config/gateway.yaml"),
    env: {
      PROXY_MASTER_KEY: "sk-0123456789abcdefghij",
      DATABASE_URL: "postgres://h/d",
      HEARTH_JOURNAL_DIR: "/j",
      LOCAL_RUNNER_A_URL: "http://192.168.1.10:11434",
      LOCAL_RUNNER_B_URL: "http://192.168.1.11:1234/v1",
    },
    projectRoot,
  });
  if (!result.ok) {
    throw new Error(JSON.stringify(result.problems));
  }
  const book = createPriceBook(null);
  expect(
    result.config.models.map((model) => book.priceFor(model)?.source),
  ).toEqual([
    ...Array<string>(7).fill("local"),
    ...Array<string>(4).fill("catalogue"),
  ]);
});

test("a deployment's own price wins over the file, the file over the catalogue", () => {
  const file = {
    "openai/gpt-5-mini": {
      input_cost_per_token: 1e-6,
      output_cost_per_token: 2e-6,
    },
  };
  const model = "openai/gpt-5-mini";
  const parts = { inputTokens: 1000, outputTokens: 1000 };
  expect(card({ model })?.source).toBe("catalogue");
  expect(cost(card({ model }, {}, file), parts)).toBe(0.003);
  const own = {
    model,
    input_cost_per_token: 5e-6,
    output_cost_per_token: 5e-6,
  };
  expect(cost(card(own, {}, file), parts)).toBe(0.01);
  expect(card(own, {}, file)?.source).toBe("deployment");
});

test("an overridden input price drops the catalogue's cache discount, and keeps its output price", () => {
  const own = card({ model: "openai/gpt-5-mini", input_cost_per_token: 0 });
  expect(
    cost(own, { inputTokens: 1000, cachedInputTokens: 900, outputTokens: 100 }),
  ).toBe(0.0002);
  const cacheOnly = card({
    model: "openai/gpt-5-mini",
    cache_read_input_token_cost: 0,
  });
  expect(cost(cacheOnly, { inputTokens: 1000, cachedInputTokens: 1000 })).toBe(
    0,
  );
  expect(cost(cacheOnly, { inputTokens: 1000 })).toBe(0.00025);
});

test.each([
  ["ollama/llama3.2", "https://ollama.example.com"],
  ["openai/qwen3-8b", "http://127.0.0.1:1234/v1"],
  ["openai/qwen3-8b", "http://192.168.1.11:1234/v1"],
  ["openai/qwen3-8b", "http://[fd12::1]:1234/v1"],
  ["openai/qwen3-8b", "http://host-b:1234/v1"],
  ["openai/qwen3-8b", "http://runner.lan/v1"],
  ["custom_openai/qwen3-8b", "http://runner.lan/v1"],
])(
  "%s at %s is a local runner and costs nothing unless priced",
  (model, api_base) => {
    const parts = { inputTokens: 1e6, outputTokens: 1e6 };
    const free = card({ model, api_base });
    expect(free?.source).toBe("local");
    expect(cost(free, parts)).toBe(0);
    expect(
      cost(card({ model, api_base, input_cost_per_token: 1e-6 }), parts),
    ).toBe(1);
    expect(
      cost(
        card(
          { model, api_base },
          {},
          { [model]: { output_cost_per_token: 3e-6 } },
        ),
        parts,
      ),
    ).toBe(3);
  },
);

test.each([
  ["openai/gpt-5-mini", "http://127.0.0.1:9000/v1", "openai/gpt-5-mini"],
  ["openai/gpt-5-mini", "http://egress.lan/v1", "openai/gpt-5-mini"],
  [
    "anthropic/claude-sonnet-4-5",
    "http://10.0.0.7:8080",
    "anthropic/claude-sonnet-4-5",
  ],
  ["litellm_proxy/gpt-5-mini", "http://proxy:4000", "openai/gpt-5-mini"],
  [
    "custom_openai/claude-sonnet-4-5",
    "http://proxy:4000",
    "anthropic/claude-sonnet-4-5",
  ],
])(
  "%s at the private address %s costs what the catalogue says, unless it is marked local",
  (model, api_base, listed) => {
    const parts = { inputTokens: 1e6, outputTokens: 1e6 };
    const known = cost(card({ model: listed, api_key: "k" }), parts);
    expect(known).toBeGreaterThan(0);
    expect(cost(card({ model, api_base }), parts)).toBe(known);
    expect(card({ model, api_base })?.source).toBe("catalogue");
    for (const free of [
      card({ model, api_base, local: true }),
      card({ model, api_base }, { local: true }),
    ]) {
      expect(free?.source).toBe("local");
      expect(cost(free, parts)).toBe(0);
    }
    expect(
      cost(
        card({ model, api_base, local: true, input_cost_per_token: 1e-6 }),
        parts,
      ),
    ).toBe(1);
  },
);

test("a model marked as not local is unpriced if the catalogue does not list it", () => {
  const qwen = {
    model: "openai/qwen3-8b",
    api_base: "http://egress.lan/v1",
    local: false,
  };
  expect(card(qwen)).toBeNull();
});

test("unknown prices are unpriced, not free", () => {
  expect(
    card({ model: "openai/no-such-model-at-all", api_key: "k" }),
  ).toBeNull();
  expect(
    card({
      model: "somebody/gpt-5-mini",
      api_base: "https://relay.example.com/v1",
    }),
  ).toBeNull();
});

test("an address known to the catalogue takes precedence over the provider's name", () => {
  const groq = card({
    model: "openai/llama-3.3-70b-versatile",
    api_base: "https://api.groq.com/openai/v1",
  });
  expect(groq).toEqual(card({ model: "groq/llama-3.3-70b-versatile" }));
  expect(groq).not.toBeNull();
});

test("base_model gives an Azure deployment its prices", () => {
  const params = {
    model: "azure/our-deployment",
    api_base: "https://x.openai.azure.com",
    api_key: "k",
  };
  expect(card(params)).toBeNull();
  expect(
    cost(card(params, { base_model: "azure/gpt-5-mini" }), {
      inputTokens: 1000,
      outputTokens: 100,
    }),
  ).toBe(0.00045);
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
  const priced = card(
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
    }),
  );
  const read = readPricesFile(file);
  expect(
    read.ok
      ? []
      : read.problems.map(({ path, message }) => `${path}: ${message}`),
  ).toEqual([
    'a.input_cost_per_token: must be dollars, a number of at least 0; it is "1e-6"',
    'b: must be an object such as {"input_cost_per_token": 0.000001}',
    "c.output_cost_per_token: must be dollars, a number of at least 0; it is -1",
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

test("a price card is looked up once for a deployment", () => {
  const book = createPriceBook(null);
  const one = deployment({ model: "openai/gpt-5-mini" });
  expect(book.priceFor(one)).toBe(book.priceFor(one));
});

test("a wildcard deployment is priced by the called model", () => {
  const book = createPriceBook(null);
  const wild = deployment({ model: "openai/*" });
  expect(book.priceFor(wild)).toBeNull();
  expect(book.priceFor(wild, "gpt-5-mini")).toEqual(
    card({ model: "openai/gpt-5-mini" }),
  );
  expect(book.priceFor(wild, "gpt-5-mini")).toBe(
    book.priceFor(wild, "gpt-5-mini"),
  );
});

test("the worst case covers every call of that size, cached or not", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(
        card({ model: "anthropic/claude-sonnet-4-5" }),
        card({ model: "gemini/gemini-2.5-pro" }),
        card({ model: "openai/gpt-5-mini" }),
      ),
      fc.nat(300_000),
      fc.nat(300_000),
      fc.nat(300_000),
      fc.nat(50_000),
      (priced, plain, cached, written, output) => {
        if (priced === null) {
          throw new Error("unpriced");
        }
        const input = plain + cached + written;
        const real = cost(priced, {
          inputTokens: input,
          cachedInputTokens: cached,
          cacheWriteTokens: written,
          outputTokens: output,
        });
        expect(mostExpensive(priced, input, output)).toBeGreaterThanOrEqual(
          real - 1e-12,
        );
      },
    ),
  );
});

test("parts that exceed the total are billed neither twice nor negatively", () => {
  const priced = card({ model: "openai/gpt-5-mini" });
  const parts = {
    inputTokens: 10,
    cachedInputTokens: 50,
    cacheWriteTokens: 50,
    audioInputTokens: 50,
    outputTokens: 1,
    reasoningTokens: 9,
    audioOutputTokens: 9,
  };
  expect(cost(priced, parts)).toBeCloseTo((10 * 0.025 + 1 * 2) / 1e6, 15);
});

test.each<[unknown, Partial<Usage> | null]>([
  [null, null],
  ["many", null],
  [{}, null],
  [
    { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    { inputTokens: 10, outputTokens: 5 },
  ],
  [{ prompt_tokens: 8, total_tokens: 8 }, { inputTokens: 8 }],
  [
    {
      prompt_tokens: 100,
      completion_tokens: 50,
      prompt_tokens_details: { cached_tokens: 64, audio_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 20, audio_tokens: 4 },
    },
    {
      inputTokens: 100,
      outputTokens: 50,
      cachedInputTokens: 64,
      audioInputTokens: 3,
      reasoningTokens: 20,
      audioOutputTokens: 4,
    },
  ],
  [
    {
      input_tokens: 7,
      output_tokens: 3,
      input_tokens_details: { cached_tokens: 2 },
      output_tokens_details: { reasoning_tokens: 1 },
    },
    {
      inputTokens: 7,
      outputTokens: 3,
      cachedInputTokens: 2,
      reasoningTokens: 1,
    },
  ],
  [
    { prompt_tokens: 9, completion_tokens: 1, prompt_cache_hit_tokens: 4 },
    { inputTokens: 9, outputTokens: 1, cachedInputTokens: 4 },
  ],
  [{ prompt_tokens: "9", completion_tokens: -1, total_tokens: NaN }, null],
  [
    { prompt_tokens: 9, completion_tokens: null, prompt_tokens_details: null },
    { inputTokens: 9 },
  ],
])("usage %j is read leniently", (json, parts) => {
  expect(usageFromOpenAI(json)).toEqual(parts === null ? null : usage(parts));
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
  const whisper = card({ model: "openai/whisper-1" });
  if (whisper === null) {
    throw new Error("no card");
  }
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

test("service tiers have prices of the deployment or the file, or are marked", () => {
  const model = "openai/gpt-5-mini";
  const parts = { inputTokens: 1e6, outputTokens: 1e6 };
  const own = card({
    model,
    input_cost_per_token: 1e-6,
    output_cost_per_token: 2e-6,
    input_cost_per_token_flex: 5e-7,
    output_cost_per_token_flex: 1e-6,
  });
  expect(cost(own, { ...parts, tiers: ["flex"] })).toBeCloseTo(1.5, 12);
  // The catalogue's multiple applied to the replaced prices.
  if (own === null) {
    throw new Error("no card");
  }
  expect(billOf(own, usage({ ...parts, tiers: ["priority"] }))).toMatchObject({
    cost: 3,
    unpriced: ["service_tier=priority"],
  });
  const tierOnly = card({ model, input_cost_per_token_priority: 1e-6 });
  expect(cost(tierOnly, { ...parts, tiers: ["priority"] })).toBeCloseTo(3, 12);
  expect(cost(tierOnly, { ...parts, tiers: ["flex"] })).toBeCloseTo(1.125, 12);
  const file = card(
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
  const priced = card({ model: "openai/gpt-5" });
  if (priced === null) {
    throw new Error("no card");
  }
  const standard = mostExpensive(priced, 1_000, 1_000);
  expect(mostExpensive(priced, 1_000, 1_000, 0, ["priority"])).toBeCloseTo(
    2 * standard,
    12,
  );
  expect(mostExpensive(priced, 1_000, 1_000, 0, ["flex"])).toBe(standard);
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
  const priced = card({ model: "openai/own" }, {}, { own: entry });
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
  const audio = card(
    { model: "openai/own" },
    {},
    { own: { input_cost_per_second: 1e-4, mode: "audio_transcription" } },
  );
  if (audio === null) {
    throw new Error("no card");
  }
  expect(pricesCalls(audio)).toBe(true);
  expect(cost(audio, { audioSeconds: 60 })).toBeCloseTo(0.006, 12);
});

describe("calls that are priced by tokens or by piece", () => {
  const seconds = {
    piece: "audioSeconds",
    count: 60,
    estimated: true,
  } as const;
  const reported = usage({ inputTokens: 600, outputTokens: 100 });
  const costsOf = (priced: PriceCard | null) => {
    if (priced === null) {
      throw new Error("no card");
    }
    return {
      withReport: costOf(
        priced,
        measuredUsage(priced, reported, seconds, reported),
      ),
      without: costOf(priced, measuredUsage(priced, reported, seconds, null)),
      worst: mostExpensive(priced, 600, 100, 0, [], seconds),
    };
  };
  const both = {
    input_cost_per_token: 1e-6,
    output_cost_per_token: 1e-6,
    input_cost_per_second: 1e-3,
  };

  test("reported tokens count before pieces, pieces before counted tokens", () => {
    const costs = costsOf(card({ model: "openai/own" }, {}, { own: both }));
    expect(costs.withReport).toBeCloseTo(700e-6, 12);
    expect(costs.without).toBeCloseTo(0.06, 12);
    expect(costs.worst).toBeCloseTo(0.06, 12);
  });

  test("a price of tokens alone is for counted ones, too", () => {
    const own = { input_cost_per_token: 1e-6 };
    const costs = costsOf(card({ model: "openai/own" }, {}, { own }));
    expect(costs.withReport).toBeCloseTo(600e-6, 12);
    expect(costs.without).toBeCloseTo(600e-6, 12);
  });

  test("tokens that cost nothing do not hide the price of pieces", () => {
    const own = {
      ...both,
      input_cost_per_token: 0,
      output_cost_per_token: 0,
    };
    const costs = costsOf(card({ model: "openai/own" }, {}, { own }));
    expect(costs.withReport).toBeCloseTo(0.06, 12);
  });

  test("a deployment's own price of pieces replaces the catalogue's of tokens", () => {
    const costs = costsOf(
      card({
        model: "openai/gpt-4o-transcribe",
        input_cost_per_second: 0.001,
      }),
    );
    expect(costs.withReport).toBeCloseTo(0.06, 12);
  });

  test("without any price the pieces are shown as unpriced", () => {
    const own = { output_cost_per_image: 1 };
    const priced = card({ model: "openai/own" }, {}, { own });
    if (priced === null) {
      throw new Error("no card");
    }
    expect(
      billOf(priced, measuredUsage(priced, reported, seconds, reported)),
    ).toEqual({ cost: 0, lines: [], unpriced: ["audio_seconds"] });
  });
});
