import { join } from "node:path";
import { expect, test } from "vitest";
import { loadConfig } from "../config/load.ts";
import { card, cardOf, cost, deployment } from "./prices-fixture.ts";
import { createPriceBook } from "./prices.ts";
import { PRICE_NAMES } from "./price-fields.ts";

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
  expect(cost(cardOf({ model }, {}, file), parts)).toBe(0.003);
  const own = {
    model,
    input_cost_per_token: 5e-6,
    output_cost_per_token: 5e-6,
  };
  expect(cost(cardOf(own, {}, file), parts)).toBe(0.01);
  expect(card(own, {}, file)?.source).toBe("deployment");
});

test("every price that a prices file may have can be a deployment's own, in its parameters or its model_info", () => {
  const own = {
    ...Object.fromEntries(
      PRICE_NAMES.map((name, index) => [name, (index + 1) / 1e6]),
    ),
    search_context_cost_per_query: { search_context_size_medium: 0.01 },
  };
  const model = "openai/own";
  const ofFile = cardOf({ model }, {}, { own });
  for (const ofDeployment of [
    cardOf({ model, ...own }),
    cardOf({ model }, own),
  ]) {
    expect(ofDeployment).toMatchObject({
      source: "deployment",
      periods: ofFile.periods,
      serviceTiers: ofFile.serviceTiers,
    });
  }
  const long = cardOf({
    model: "openai/gpt-5-mini",
    input_cost_per_token: 1e-6,
    input_cost_per_token_above_200k_tokens: 2e-6,
  });
  expect(cost(long, { inputTokens: 200_000 })).toBeCloseTo(0.2, 12);
  expect(cost(long, { inputTokens: 200_001 })).toBeCloseTo(0.400002, 12);
});

test("prices that are not overridden keep their hours of the day", () => {
  const priced = cardOf({
    model: "deepseek/deepseek-chat",
    cache_read_input_token_cost: 0,
  });
  const at = (time: string) =>
    cost(priced, { inputTokens: 1e6 }, Date.parse(`2026-11-27T${time}Z`));
  expect(at("12:00")).toBeCloseTo(0.27, 12);
  expect(at("20:00")).toBeCloseTo(0.135, 12);
});

test("an overridden input price drops the catalogue's cache discount, and keeps its output price", () => {
  const own = cardOf({ model: "openai/gpt-5-mini", input_cost_per_token: 0 });
  expect(
    cost(own, { inputTokens: 1000, cachedInputTokens: 900, outputTokens: 100 }),
  ).toBe(0.0002);
  const cacheOnly = cardOf({
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
    const free = cardOf({ model, api_base });
    expect(free.source).toBe("local");
    expect(cost(free, parts)).toBe(0);
    expect(
      cost(cardOf({ model, api_base, input_cost_per_token: 1e-6 }), parts),
    ).toBe(1);
    expect(
      cost(
        cardOf(
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
    const known = cost(cardOf({ model: listed, api_key: "k" }), parts);
    expect(known).toBeGreaterThan(0);
    expect(cost(cardOf({ model, api_base }), parts)).toBe(known);
    expect(card({ model, api_base })?.source).toBe("catalogue");
    for (const free of [
      cardOf({ model, api_base, local: true }),
      cardOf({ model, api_base }, { local: true }),
    ]) {
      expect(free.source).toBe("local");
      expect(cost(free, parts)).toBe(0);
    }
    expect(
      cost(
        cardOf({ model, api_base, local: true, input_cost_per_token: 1e-6 }),
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
    cost(cardOf(params, { base_model: "azure/gpt-5-mini" }), {
      inputTokens: 1000,
      outputTokens: 100,
    }),
  ).toBe(0.00045);
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
