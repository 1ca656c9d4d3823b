import { expect, test } from "vitest";
import { deploymentFromRow } from "../config/stored.ts";
import { wireOf } from "../providers/families.ts";
import type { AnswerFacts, Endpoint } from "../providers/wire.ts";
import type { Call } from "../calls/call.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { billAt } from "../pricing/bill.ts";
import { createPriceBook } from "../pricing/prices.ts";
import { createTokenCounter } from "../tokens/tokens.ts";
import { usageOf } from "../tokens/usage.ts";

/** A provider's answer to a request, and its charge according to its documentation. */
interface Case {
  readonly model: string;
  readonly endpoint: Endpoint;
  readonly request: object;
  /** The answer's fields that decide its price. */
  readonly answer: object;
  /** Dollars. */
  readonly cost: number;
  readonly unpriced?: readonly string[];
  /** Where prices change with the hour. */
  readonly at?: string;
  readonly source: string;
}

const OPENAI_PRICES = "https://developers.openai.com/api/docs/pricing";
const OPENAI_PRIORITY = "https://openai.com/api-priority-processing";
const OPENAI_SEARCH =
  "https://platform.openai.com/docs/guides/tools-web-search";
const OPENAI_IMAGE_TOOL =
  "https://platform.openai.com/docs/guides/tools-image-generation";
const OPENAI_FLEX =
  "https://developers.openai.com/api/docs/guides/flex-processing";
const OPENAI_TRANSCRIPTION =
  "https://platform.openai.com/docs/api-reference/audio/createTranscription";
const ANTHROPIC_CACHE =
  "https://platform.claude.com/docs/en/build-with-claude/prompt-caching";
const ANTHROPIC_COMPACTION =
  "https://platform.claude.com/docs/en/build-with-claude/compaction";
const ANTHROPIC_ADVISOR =
  "https://platform.claude.com/docs/en/agents-and-tools/tool-use/advisor-tool";
const ANTHROPIC_FAST =
  "https://platform.claude.com/docs/en/build-with-claude/fast-mode";
const ANTHROPIC_PRICES =
  "https://platform.claude.com/docs/en/about-claude/pricing";
const ANTHROPIC_TIERS = "https://platform.claude.com/docs/en/api/service-tiers";
const GEMINI_PRICES = "https://ai.google.dev/gemini-api/docs/pricing";
const XAI_USAGE =
  "https://docs.x.ai/docs/key-information/consumption-and-rate-limits";
const XAI_COST = "https://docs.x.ai/developers/cost-tracking";
const OPENROUTER_COST = "https://openrouter.ai/docs/use-cases/usage-accounting";
const PERPLEXITY_COST =
  "https://docs.perplexity.ai/api-reference/chat-completions-post";
const PERPLEXITY =
  "https://docs.perplexity.ai/docs/sonar/models/sonar-deep-research";

const M = 1e6;
const THOUSAND = { prompt_tokens: 1_000, completion_tokens: 100 };
const CLAUDE_THOUSAND = { input_tokens: 1_000, output_tokens: 100 };
const search = (type: string) => ({
  type: "web_search_call",
  status: "completed",
  action: { type },
});

const CASES: readonly Case[] = [
  // OpenAI: reasoning is part of completion_tokens, cached tokens of prompt_tokens.
  {
    model: "openai/gpt-5-mini",
    endpoint: "chat",
    request: {},
    answer: {
      usage: {
        prompt_tokens: 1_000,
        completion_tokens: 500,
        total_tokens: 1_500,
        prompt_tokens_details: { cached_tokens: 600 },
        completion_tokens_details: { reasoning_tokens: 400 },
      },
      service_tier: "default",
    },
    cost: (400 * 0.25 + 600 * 0.025 + 500 * 2) / M,
    source: OPENAI_PRICES,
  },
  {
    model: "openai/gpt-audio",
    endpoint: "chat",
    request: {},
    answer: {
      usage: {
        prompt_tokens: 1_000,
        completion_tokens: 300,
        prompt_tokens_details: { audio_tokens: 900 },
        completion_tokens_details: { audio_tokens: 200 },
      },
    },
    cost: (100 * 2.5 + 900 * 32 + 100 * 10 + 200 * 64) / M,
    source: OPENAI_PRICES,
  },
  {
    model: "openai/gpt-5-mini",
    endpoint: "chat",
    request: { service_tier: "flex" },
    answer: { usage: THOUSAND, service_tier: "flex" },
    cost: (1_000 * 0.25 + 100 * 2) / M / 2,
    source: OPENAI_FLEX,
  },
  // Served at the standard price although another tier was requested.
  {
    model: "openai/gpt-5",
    endpoint: "chat",
    request: { service_tier: "priority" },
    answer: { usage: THOUSAND, service_tier: "default" },
    cost: (1_000 * 1.25 + 100 * 10) / M,
    source: OPENAI_PRIORITY,
  },
  {
    model: "openai/gpt-5",
    endpoint: "responses",
    request: { service_tier: "priority" },
    answer: {
      usage: { input_tokens: 1_000, output_tokens: 100 },
      service_tier: "priority",
    },
    cost: (1_000 * 2.5 + 100 * 20) / M,
    source: OPENAI_PRIORITY,
  },
  {
    model: "openai/gpt-5-nano",
    endpoint: "chat",
    request: { service_tier: "priority" },
    answer: { usage: THOUSAND, service_tier: "priority" },
    cost: (1_000 * 0.05 + 100 * 0.4) / M,
    unpriced: ["service_tier=priority"],
    source: OPENAI_PRIORITY,
  },
  // Searches cost $10 and file searches $2.50 per 1,000; opening a page does not count.
  {
    model: "openai/gpt-5",
    endpoint: "responses",
    request: { tools: [{ type: "web_search" }, { type: "file_search" }] },
    answer: {
      usage: { input_tokens: 1_000, output_tokens: 100 },
      output: [
        search("search"),
        search("open_page"),
        search("search"),
        { type: "file_search_call", status: "completed" },
      ],
    },
    cost: (1_000 * 1.25 + 100 * 10) / M + 2 * 0.01 + 0.0025,
    source: OPENAI_SEARCH,
  },
  // The tool that makes images asks another model, at its own prices; the totals exclude it.
  {
    model: "openai/gpt-5",
    endpoint: "responses",
    request: { tools: [{ type: "image_generation" }] },
    answer: {
      tools: [{ type: "image_generation", model: "gpt-image-2" }],
      usage: { input_tokens: 1_000, output_tokens: 100, total_tokens: 1_100 },
      tool_usage: {
        image_gen: {
          input_tokens: 500,
          input_tokens_details: { text_tokens: 100, image_tokens: 400 },
          output_tokens: 1_756,
          output_tokens_details: { image_tokens: 1_756, text_tokens: 0 },
          total_tokens: 2_256,
        },
        web_search: { num_requests: 0 },
      },
    },
    cost: (1_000 * 1.25 + 100 * 10) / M + (100 * 5 + 400 * 8 + 1_756 * 30) / M,
    source: OPENAI_IMAGE_TOOL,
  },
  // Older answers do not name the model, which then is the default.
  {
    model: "openai/gpt-5",
    endpoint: "responses",
    request: { tools: [{ type: "image_generation" }] },
    answer: {
      tools: [{ type: "image_generation" }],
      usage: { input_tokens: 1_000, output_tokens: 100 },
      tool_usage: { image_gen: { input_tokens: 50, output_tokens: 4_160 } },
    },
    cost: (1_000 * 1.25 + 100 * 10) / M + (50 * 5 + 4_160 * 40) / M,
    source: OPENAI_IMAGE_TOOL,
  },
  {
    model: "openai/gpt-image-1.5",
    endpoint: "images",
    request: {},
    answer: {
      data: [{}],
      usage: {
        input_tokens: 500,
        output_tokens: 1_100,
        input_tokens_details: { text_tokens: 100, image_tokens: 400 },
        output_tokens_details: { text_tokens: 100, image_tokens: 1_000 },
      },
    },
    cost: (100 * 5 + 400 * 8 + 100 * 10 + 1_000 * 32) / M,
    source: OPENAI_PRICES,
  },
  {
    model: "openai/whisper-1",
    endpoint: "transcriptions",
    request: {},
    answer: { text: "", usage: { type: "duration", seconds: 90 } },
    cost: (90 / 60) * 0.006,
    source: OPENAI_TRANSCRIPTION,
  },
  {
    model: "openai/whisper-1",
    endpoint: "translations",
    request: {},
    answer: { task: "translate", duration: 8.47, text: "" },
    cost: (8.47 / 60) * 0.006,
    source: OPENAI_TRANSCRIPTION,
  },
  {
    model: "openai/gpt-4o-transcribe",
    endpoint: "transcriptions",
    request: {},
    answer: {
      text: "",
      usage: {
        type: "tokens",
        input_tokens: 14,
        input_token_details: { text_tokens: 4, audio_tokens: 10 },
        output_tokens: 45,
        total_tokens: 59,
      },
    },
    cost: (4 * 2.5 + 10 * 6 + 45 * 10) / M,
    source: OPENAI_PRICES,
  },
  {
    model: "openai/gpt-image-1.5",
    endpoint: "image_edits",
    request: {},
    answer: {
      data: [{}],
      usage: {
        input_tokens: 500,
        output_tokens: 1_000,
        input_tokens_details: { text_tokens: 100, image_tokens: 400 },
      },
    },
    cost: (100 * 5 + 400 * 8 + 1_000 * 32) / M,
    source: OPENAI_PRICES,
  },
  {
    model: "openai/whisper-1",
    endpoint: "chat",
    request: {},
    answer: { usage: THOUSAND },
    cost: 0,
    unpriced: ["input_tokens", "output_tokens"],
    source: OPENAI_PRICES,
  },
  {
    model: "openai/text-embedding-3-small",
    endpoint: "embeddings",
    request: {},
    answer: { data: [], usage: { prompt_tokens: 1_000, total_tokens: 1_000 } },
    cost: (1_000 * 0.02) / M,
    source: OPENAI_PRICES,
  },
  {
    model: "azure/gpt-5-mini",
    endpoint: "chat",
    request: { service_tier: "flex" },
    answer: { usage: THOUSAND, service_tier: "flex" },
    cost: (1_000 * 0.25 + 100 * 2) / M / 2,
    source:
      "https://learn.microsoft.com/azure/foundry/openai/how-to/flex-processing",
  },

  // Anthropic: input_tokens without those read from and written to the cache.
  {
    model: "anthropic/claude-sonnet-4-0",
    endpoint: "messages",
    request: {},
    answer: {
      usage: {
        input_tokens: 100,
        cache_read_input_tokens: 1_000,
        cache_creation_input_tokens: 5_000,
        cache_creation: {
          ephemeral_5m_input_tokens: 2_000,
          ephemeral_1h_input_tokens: 3_000,
        },
        output_tokens: 50,
        service_tier: "standard",
        speed: "standard",
        inference_geo: "not_available",
      },
    },
    cost: (100 * 3 + 1_000 * 0.3 + 2_000 * 3.75 + 3_000 * 6 + 50 * 15) / M,
    source: ANTHROPIC_CACHE,
  },
  {
    model: "anthropic/claude-sonnet-4-0",
    endpoint: "chat",
    request: {},
    answer: {
      usage: {
        ...CLAUDE_THOUSAND,
        server_tool_use: { web_search_requests: 3 },
      },
    },
    cost: (1_000 * 3 + 100 * 15) / M + 3 * 0.01,
    source: ANTHROPIC_PRICES,
  },
  {
    model: "anthropic/claude-opus-5",
    endpoint: "messages",
    request: { speed: "fast" },
    answer: { usage: { ...CLAUDE_THOUSAND, speed: "fast" } },
    cost: (1_000 * 10 + 100 * 50) / M,
    source: ANTHROPIC_FAST,
  },
  {
    model: "anthropic/claude-opus-5",
    endpoint: "chat",
    request: { speed: "fast", inference_geo: "us" },
    answer: {
      usage: { ...CLAUDE_THOUSAND, speed: "fast", inference_geo: "us" },
    },
    cost: ((1_000 * 10 + 100 * 50) / M) * 1.1,
    source: ANTHROPIC_PRICES,
  },
  // The totals exclude the calls that summarized the context.
  {
    model: "anthropic/claude-opus-5",
    endpoint: "messages",
    request: { context_management: { edits: [{ type: "compact_20260112" }] } },
    answer: {
      usage: {
        input_tokens: 23_000,
        output_tokens: 1_000,
        iterations: [
          { type: "compaction", input_tokens: 180_000, output_tokens: 3_500 },
          { type: "message", input_tokens: 23_000, output_tokens: 1_000 },
        ],
      },
    },
    cost: (203_000 * 5 + 4_500 * 25) / M,
    source: ANTHROPIC_COMPACTION,
  },
  {
    model: "anthropic/claude-opus-5",
    endpoint: "chat",
    request: { context_management: { edits: [{ type: "compact_20260112" }] } },
    answer: {
      usage: {
        input_tokens: 100,
        cache_read_input_tokens: 2_000,
        cache_creation_input_tokens: 500,
        cache_creation: {
          ephemeral_5m_input_tokens: 500,
          ephemeral_1h_input_tokens: 0,
        },
        output_tokens: 10,
        iterations: [
          {
            type: "compaction",
            input_tokens: 1_000,
            cache_read_input_tokens: 70_000,
            cache_creation_input_tokens: 9_000,
            cache_creation: {
              ephemeral_5m_input_tokens: 1_000,
              ephemeral_1h_input_tokens: 8_000,
            },
            output_tokens: 300,
          },
          { type: "compaction", input_tokens: 60_000, output_tokens: 200 },
          { type: "message", input_tokens: 100, output_tokens: 10 },
        ],
      },
    },
    cost:
      (61_100 * 5 + 72_000 * 0.5 + 1_500 * 6.25 + 8_000 * 10 + 510 * 25) / M,
    source: ANTHROPIC_COMPACTION,
  },
  // An advisor has the prices of its own model; the totals exclude it.
  {
    model: "anthropic/claude-haiku-4-5",
    endpoint: "messages",
    request: {
      tools: [
        {
          type: "advisor_20260301",
          name: "advisor",
          model: "claude-opus-4-8",
        },
      ],
    },
    answer: {
      usage: {
        input_tokens: 1_000,
        output_tokens: 100,
        iterations: [
          { type: "message", input_tokens: 400, output_tokens: 40 },
          {
            type: "advisor_message",
            model: "claude-opus-4-8",
            input_tokens: 500,
            cache_read_input_tokens: 2_000,
            output_tokens: 60,
          },
          { type: "message", input_tokens: 600, output_tokens: 60 },
        ],
      },
    },
    cost: (1_000 * 1 + 100 * 5) / M + (500 * 5 + 2_000 * 0.5 + 60 * 25) / M,
    source: ANTHROPIC_ADVISOR,
  },
  // The price of committed capacity depends on its contract.
  {
    model: "anthropic/claude-opus-5",
    endpoint: "messages",
    request: { service_tier: "auto" },
    answer: { usage: { ...CLAUDE_THOUSAND, service_tier: "priority" } },
    cost: (1_000 * 5 + 100 * 25) / M,
    unpriced: ["service_tier=priority"],
    source: ANTHROPIC_TIERS,
  },

  // Gemini's compatible endpoint: thinking is in total_tokens alone, and service tiers are not sent.
  {
    model: "gemini/gemini-2.5-flash",
    endpoint: "chat",
    request: { service_tier: "flex" },
    answer: {
      usage: {
        prompt_tokens: 1_000,
        completion_tokens: 100,
        total_tokens: 1_600,
      },
    },
    cost: (1_000 * 0.3 + 600 * 2.5) / M,
    source: GEMINI_PRICES,
  },
  {
    model: "gemini/gemini-2.5-flash-image",
    endpoint: "images",
    request: {},
    answer: { data: [{}] },
    cost: 0,
    unpriced: ["images"],
    source: GEMINI_PRICES,
  },

  // xAI's chat leaves reasoning out of completion_tokens, its responses have it in output_tokens.
  {
    model: "xai/grok-3-mini",
    endpoint: "chat",
    request: {},
    answer: {
      usage: {
        prompt_tokens: 12,
        completion_tokens: 1,
        total_tokens: 399,
        completion_tokens_details: { reasoning_tokens: 386 },
      },
    },
    cost: (12 * 0.3 + 387 * 0.5) / M,
    source: XAI_USAGE,
  },
  {
    model: "xai/grok-3-mini",
    endpoint: "responses",
    request: {},
    answer: {
      usage: {
        input_tokens: 12,
        output_tokens: 387,
        total_tokens: 399,
        output_tokens_details: { reasoning_tokens: 386 },
      },
    },
    cost: (12 * 0.3 + 387 * 0.5) / M,
    source: XAI_USAGE,
  },

  {
    model: "deepseek/deepseek-v4-pro",
    endpoint: "chat",
    request: {},
    answer: {
      usage: {
        prompt_tokens: 1_000,
        completion_tokens: 100,
        total_tokens: 1_100,
        prompt_cache_hit_tokens: 600,
        prompt_cache_miss_tokens: 400,
      },
    },
    cost: (400 * 0.66 + 600 * 0.022 + 100 * 1.98) / M,
    // Off-peak.
    at: "2026-10-01T12:00:00Z",
    source: "https://api-docs.deepseek.com/quick_start/pricing",
  },
  {
    model: "groq/llama-3.3-70b-versatile",
    endpoint: "chat",
    request: { service_tier: "flex" },
    answer: { usage: THOUSAND, service_tier: "flex" },
    cost: (1_000 * 0.59 + 100 * 0.79) / M,
    source: "https://console.groq.com/docs/flex-processing",
  },
  {
    model: "groq/llama-3.3-70b-versatile",
    endpoint: "chat",
    request: {},
    answer: { usage: THOUSAND, service_tier: "on_demand" },
    cost: (1_000 * 0.59 + 100 * 0.79) / M,
    source: "https://console.groq.com/docs/service-tiers",
  },
  // Perplexity reports citations and reasoning in addition to completion_tokens, and excludes them from its total.
  {
    model: "perplexity/sonar-deep-research",
    endpoint: "chat",
    request: {},
    answer: {
      usage: {
        prompt_tokens: 33,
        completion_tokens: 7_163,
        total_tokens: 7_196,
        citation_tokens: 20_016,
        num_search_queries: 18,
        reasoning_tokens: 73_997,
      },
    },
    cost: (33 * 2 + 7_163 * 8 + 20_016 * 2 + 73_997 * 3) / M + 18 * 0.005,
    source: PERPLEXITY,
  },

  // What the provider says that a call costs includes its searches and its discounts.
  {
    model: "xai/grok-4",
    endpoint: "chat",
    request: {},
    answer: { usage: { ...THOUSAND, cost_in_usd_ticks: 37_756_000 } },
    cost: 0.0037756,
    source: XAI_COST,
  },
  {
    model: "perplexity/sonar",
    endpoint: "chat",
    request: {},
    answer: {
      usage: { ...THOUSAND, cost: { request_cost: 0.005, total_cost: 0.0061 } },
    },
    cost: 0.0061,
    source: PERPLEXITY_COST,
  },
  // Without a published price, too.
  {
    model: "openrouter/somebody/new-model",
    endpoint: "chat",
    request: {},
    answer: { usage: { ...THOUSAND, cost: 0.0123, is_byok: false } },
    cost: 0.0123,
    source: OPENROUTER_COST,
  },
  // OpenRouter's fee, and what the operator's own key is charged.
  {
    model: "openrouter/openai/gpt-5-mini",
    endpoint: "responses",
    request: {},
    answer: {
      usage: {
        input_tokens: 1_000,
        output_tokens: 100,
        cost: 0.0005,
        is_byok: true,
        cost_details: { upstream_inference_cost: 0.01 },
      },
    },
    cost: 0.0105,
    source: OPENROUTER_COST,
  },
  // Elsewhere the field may mean anything.
  {
    model: "openai/gpt-5-mini",
    endpoint: "chat",
    request: {},
    answer: { usage: { ...THOUSAND, cost: 7 } },
    cost: (1_000 * 0.25 + 100 * 2) / M,
    source: OPENAI_PRICES,
  },
];

const counter = createTokenCounter();
const book = createPriceBook(null);

function pricedDeployment(model: string): PricedDeployment {
  const azure = model.startsWith("azure/")
    ? { api_base: "https://x.openai.azure.com" }
    : {};
  const result = deploymentFromRow(
    {
      model_name: "alias",
      provider_params: { model, api_key: "key", ...azure },
      model_info: {},
    },
    {},
  );
  if (!result.ok) {
    throw new Error(JSON.stringify(result.problems));
  }
  const { deployment } = result;
  return { ...deployment, priceCard: book.priceFor(deployment) };
}

function billed(
  { model, request, at }: Case,
  factsOf: (deployment: PricedDeployment) => AnswerFacts,
) {
  const deployment = pricedDeployment(model);
  const call = {
    body: { model, ...request },
    inputTokens: 1,
    measure: null,
    group: { alias: model },
  } as unknown as Call;
  const bill = billAt(
    deployment,
    usageOf(counter, call, deployment, factsOf(deployment)),
    at === undefined ? Date.now() : Date.parse(at),
  );
  if (bill === null) {
    throw new Error(`${model} has no price`);
  }
  return bill;
}

test.each(CASES)("$model $endpoint $request: $cost ($source)", (one) => {
  const answer = { id: "1", content: [], choices: [], ...one.answer };
  const bill = billed(
    one,
    ({ provider }) =>
      wireOf(provider).answer(one.endpoint, Buffer.from(JSON.stringify(answer)))
        .facts,
  );
  expect(bill.cost).toBeCloseTo(one.cost, 12);
  expect(bill.unpriced).toEqual(one.unpriced ?? []);
});

/** The events of a streamed answer with nothing but usage. */
function eventsOf({ endpoint, answer, model }: Case): readonly object[] {
  const { usage, service_tier } = answer as Record<string, object>;
  if (model.startsWith("anthropic/")) {
    return [
      { type: "message_start", message: { id: "1", usage } },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage },
      { type: "message_stop" },
    ];
  }
  if (endpoint === "responses") {
    return [{ type: "response.completed", response: { id: "1", ...answer } }];
  }
  const head = { id: "1", service_tier };
  return [
    { ...head, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
    { ...head, choices: [], usage },
  ];
}

test.each(
  CASES.filter(({ endpoint }) =>
    ["chat", "messages", "responses"].includes(endpoint),
  ),
)("streamed: $model $endpoint $request: $cost", (one) => {
  const bill = billed(one, ({ provider }) => {
    const stream = wireOf(provider).stream(one.endpoint);
    for (const event of eventsOf(one)) {
      stream.push({ event: null, data: JSON.stringify(event) });
    }
    return stream.facts();
  });
  expect(bill.cost).toBeCloseTo(one.cost, 12);
  expect(bill.unpriced).toEqual(one.unpriced ?? []);
});

test("an answer that ended before it named its tier is billed at the requested tier", () => {
  const [, , flex] = CASES;
  if (flex === undefined) {
    throw new Error("no case");
  }
  const bill = billed(flex, () => ({
    usage: null,
    responseId: null,
    text: "",
  }));
  expect(bill.cost).toBeCloseTo((1 * 0.25) / M / 2, 15);
});

test("a response that breaks off is billed for the images that it has made", () => {
  const one = {
    model: "openai/gpt-5",
    request: { tools: [{ type: "image_generation" }] },
  } as unknown as Case;
  const bill = billed(one, ({ provider }) => {
    const stream = wireOf(provider).stream("responses");
    const image = { type: "image_generation_call", quality: "low", result: "" };
    const tools = [{ type: "image_generation", model: "gpt-image-2" }];
    for (const event of [
      { type: "response.created", response: { id: "1", tools } },
      { type: "response.output_item.done", item: image },
    ]) {
      stream.push({ event: null, data: JSON.stringify(event) });
    }
    return stream.facts();
  });
  expect(bill.cost).toBeCloseTo(1.25 / M + (408 * 30) / M, 12);
});

test("audio of a chat that breaks off is billed by its length, and its transcript as text", () => {
  const one = { model: "openai/gpt-audio", request: {} } as unknown as Case;
  const bill = billed(one, ({ provider }) => {
    const stream = wireOf(provider).stream("chat");
    const data = Buffer.alloc(24_000).toString("base64");
    for (const audio of [{ data, transcript: "one two" }, { data }]) {
      const choices = [{ index: 0, delta: { audio }, finish_reason: null }];
      stream.push({ event: null, data: JSON.stringify({ choices }) });
    }
    return stream.facts();
  });
  const text = counter.countText("one two", "gpt-audio");
  expect(text).toBeGreaterThan(0);
  expect(bill.cost).toBeCloseTo((1 * 2.5 + text * 10 + 20 * 64) / M, 12);
});
