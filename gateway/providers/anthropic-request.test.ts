import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { flatCard } from "../pricing/price-card.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import {
  HELLO,
  NEWEST,
  OLDER,
  ask,
  deployment,
  text,
} from "./anthropic-request-fixture.ts";
import { anthropicWire } from "./anthropic.ts";

test("a minimal call: model, maximum and blocks", () => {
  expect(ask({})).toEqual({
    sent: {
      model: NEWEST,
      max_tokens: 128_000,
      messages: [{ role: "user", content: [text("Hello")] }],
    },
    lacks: [],
  });
});

describe("max_tokens", () => {
  const card = (maxOutputTokens: number) => ({
    ...flatCard("catalogue", {
      input: 1,
      output: 1,
      cachedInput: null,
      cacheWrite: null,
      audioInput: null,
      audioOutput: null,
      reasoning: null,
      perRequest: 0,
      perImage: 0,
    }),
    maxOutputTokens,
  });
  const known = deployment(NEWEST, { priceCard: card(64_000) });

  test.each<[object, PricedDeployment, number]>([
    [{ max_completion_tokens: 7, max_tokens: 9 }, known, 7],
    [{ max_tokens: 9 }, known, 9],
    [{}, deployment(NEWEST, { defaults: { max_tokens: 11 } }), 11],
    [{}, known, 64_000],
    [{}, deployment(), 128_000],
    [{}, deployment("another-model"), 4_096],
  ])("%j", (fields, to, expected) => {
    expect(ask({ ...fields }, to).sent["max_tokens"]).toBe(expected);
  });

  // https://platform.claude.com/docs/en/about-claude/models/overview
  test.each([
    ["claude-3-haiku-20240307", 4_096],
    ["claude-3-5-sonnet-20241022", 8_192],
    ["claude-3-7-sonnet-20250219", 64_000],
    ["claude-opus-4-20250514", 32_000],
    ["claude-opus-4-1-20250805", 32_000],
    ["claude-sonnet-4-20250514", 64_000],
    ["claude-opus-4-5-20251101", 64_000],
    ["claude-haiku-4-5-20251001", 64_000],
    ["claude-sonnet-4-6", 128_000],
    ["claude-opus-5-5", 128_000],
    ["claude-fable-5-1", 128_000],
  ])("a call to %s without a maximum gets %i", (model, expected) => {
    expect(ask({}, deployment(model)).sent["max_tokens"]).toBe(expected);
  });
});

describe("sampling", () => {
  test.each<[string, object, object, string[]]>([
    [OLDER, { temperature: 1.7 }, { temperature: 1 }, []],
    [OLDER, { temperature: 0.3, top_k: 5 }, { temperature: 0.3, top_k: 5 }, []],
    [OLDER, { temperature: 0.3, top_p: 1 }, { temperature: 0.3 }, []],
    [OLDER, { temperature: 1, top_p: 0.5 }, { top_p: 0.5 }, []],
    [OLDER, { temperature: 0.3, top_p: 0.5 }, { temperature: 0.3 }, ["top_p"]],
    [NEWEST, { temperature: 1, top_p: 1 }, {}, []],
    [
      NEWEST,
      { temperature: 0.3, top_p: 0.5, top_k: 5 },
      {},
      ["temperature", "top_p", "top_k"],
    ],
    ["claude-opus-4-6", { temperature: 0.3 }, { temperature: 0.3 }, []],
    [
      "claude-3-opus-20240229",
      { temperature: 0.3, top_p: 0.5 },
      { temperature: 0.3, top_p: 0.5 },
      [],
    ],
    [
      "other-model",
      { temperature: 2, top_p: 0.5 },
      { temperature: 1, top_p: 0.5 },
      [],
    ],
  ])("%s %j", (model, fields, expected, lacks) => {
    const request = ask({ ...fields }, deployment(model));
    const { temperature, top_p, top_k } = request.sent;
    expect(JSON.parse(JSON.stringify({ temperature, top_p, top_k }))).toEqual(
      expected,
    );
    expect(request.lacks).toEqual(lacks);
  });
});

describe("response_format", () => {
  test("a schema becomes structured output with closed objects", () => {
    const { sent } = ask({
      reasoning_effort: "low",
      response_format: {
        type: "json_schema",
        json_schema: {
          name: "n",
          schema: {
            type: "object",
            properties: {
              one: { type: "object", properties: {} },
              two: { type: "object", additionalProperties: { type: "string" } },
            },
          },
        },
      },
    });
    expect(sent["output_config"]).toEqual({
      effort: "low",
      format: {
        type: "json_schema",
        schema: {
          type: "object",
          properties: {
            one: {
              type: "object",
              properties: {},
              additionalProperties: false,
            },
            two: { type: "object", additionalProperties: { type: "string" } },
          },
          additionalProperties: false,
        },
      },
    });
  });

  test("a JSON object without a schema is requested by an instruction", () => {
    const { sent } = ask({ response_format: { type: "json_object" } });
    expect(JSON.stringify(sent["system"])).toContain("one valid JSON object");
    expect(ask({ response_format: { type: "text" } }).sent).toEqual(
      ask({}).sent,
    );
  });
});

test("other parameters: stop, user, tier, Anthropic's own", () => {
  const { sent, lacks } = ask({
    stop: ["END", "\n"],
    user: "u1",
    service_tier: "default",
    cache_control: { type: "ephemeral" },
    container: "c1",
    stream: true,
    stream_options: { include_usage: true },
    metadata: { tags: ["x"], user_id: "u2" },
    n: 1,
    logprobs: false,
    presence_penalty: 0,
    logit_bias: {},
    store: false,
    prompt_cache_key: "k",
    prompt_cache_options: { mode: "explicit" },
    temperature: null,
  });
  expect(sent).toMatchObject({
    stop_sequences: ["END"],
    metadata: { user_id: "u2" },
    service_tier: "standard_only",
    cache_control: { type: "ephemeral" },
    container: "c1",
  });
  expect(Object.keys(sent).sort()).toEqual([
    "cache_control",
    "container",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "service_tier",
    "stop_sequences",
  ]);
  expect(lacks).toEqual(["stop"]);
});

test("unsupported parameters are named and not sent", () => {
  const fields = {
    n: 2,
    logprobs: true,
    top_logprobs: 3,
    frequency_penalty: 0.5,
    presence_penalty: 1,
    logit_bias: { "50256": -100 },
    seed: 7,
    audio: { voice: "alloy" },
    modalities: ["text", "audio"],
    prediction: { type: "content", content: "x" },
    functions: [{ name: "f" }],
    invented: true,
  };
  const { sent, lacks } = ask(fields);
  expect([...lacks].sort()).toEqual(Object.keys(fields).sort());
  expect(sent).toEqual(ask({}).sent);
});

test.each<[Record<string, unknown>, string | undefined]>([
  [{}, undefined],
  [
    { context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } },
    "context-management-2025-06-27",
  ],
  [
    {
      context_management: {
        edits: [
          { type: "compact_20260112" },
          { type: "clear_thinking_20251015" },
        ],
      },
    },
    "compact-2026-01-12,context-management-2025-06-27",
  ],
  [{ context_management: { edits: [] } }, undefined],
  [{ context_management: [{ type: "compaction" }] }, "compact-2026-01-12"],
  [
    {
      mcp_servers: [{ type: "url", url: "https://mcp.test", name: "a" }],
      tools: [{ type: "mcp_toolset", mcp_server_name: "a" }],
    },
    "mcp-client-2025-11-20",
  ],
  [
    { mcp_servers: [{ type: "url", url: "https://mcp.test", name: "a" }] },
    "mcp-client-2025-04-04",
  ],
  [{ container: "c1" }, undefined],
  [
    { container: { skills: [{ type: "anthropic", skill_id: "pdf" }] } },
    "code-execution-2025-08-25,skills-2025-10-02",
  ],
  [{ speed: "fast" }, "fast-mode-2026-02-01"],
  [{ speed: "standard" }, undefined],
  [
    { tools: [{ type: "computer_20250124", name: "computer" }] },
    "computer-use-2025-01-24",
  ],
])("a chat with %j has the betas %s", (fields, betas) => {
  const chat = { model: "alias", messages: HELLO, ...fields };
  expect(anthropicWire.headers(deployment(), {}, chat)["anthropic-beta"]).toBe(
    betas,
  );
});

test("the compaction of OpenAI's clients is one of Anthropic's edits, and a set of MCP tools is sent unchanged", () => {
  const toolset = { type: "mcp_toolset", mcp_server_name: "a" };
  const compaction = { type: "compaction", compact_threshold: 150_000 };
  const fields = { context_management: [compaction], tools: [toolset] };
  const trigger = { type: "input_tokens", value: 150_000 };
  expect(ask(fields)).toMatchObject({
    sent: {
      tools: [toolset],
      context_management: { edits: [{ type: "compact_20260112", trigger }] },
    },
    lacks: [],
  });
});

test("betas of a chat are added to the client's, those of a model's own parameters too", () => {
  const to = { ...deployment(), defaults: { speed: "fast" } };
  const own = {
    "anthropic-beta": "context-1m-2025-08-07, fast-mode-2026-02-01",
  };
  const chat = { model: "alias", messages: HELLO };
  expect(anthropicWire.headers(to, own, chat)["anthropic-beta"]).toBe(
    "context-1m-2025-08-07,fast-mode-2026-02-01",
  );
  expect(anthropicWire.headers(to, own)["anthropic-beta"]).toBe(
    own["anthropic-beta"],
  );
});

test("paths, headers and a native body", () => {
  const to = deployment();
  expect(anthropicWire.path("chat", to)).toBe("/v1/messages");
  expect(anthropicWire.path("count_tokens", to)).toBe(
    "/v1/messages/count_tokens",
  );
  expect(
    anthropicWire.headers(to, { "anthropic-beta": "context-1m-2025-08-07" }),
  ).toEqual({
    "x-api-key": "provider-key",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "context-1m-2025-08-07",
  });
  const body = {
    model: "alias",
    max_tokens: 5,
    messages: HELLO,
    thinking: { type: "adaptive" },
    invented: [1],
    metadata: { tags: ["ours"], user_id: "u" },
  };
  expect(anthropicWire.request("messages", body, to, true)).toEqual({
    model: NEWEST,
    max_tokens: 5,
    messages: HELLO,
    thinking: { type: "adaptive" },
    invented: [1],
    metadata: { user_id: "u" },
  });
});

test("a native body has no thinking that another provider's model left unsigned", () => {
  const thinking = (signature: string) => ({
    type: "thinking",
    thinking: "Hm.",
    signature,
  });
  const said = (...content: readonly object[]) => ({
    role: "assistant",
    content,
  });
  const signed = said(thinking("s"), { type: "redacted_thinking", data: "x" });
  const body = (...messages: readonly object[]) => ({
    model: "alias",
    max_tokens: 5,
    messages: [...HELLO, ...messages],
  });
  const mixed = body(said(thinking(""), text("a")), signed, said(thinking("")));
  const expected = [...HELLO, said(text("a")), signed];
  for (const endpoint of ["messages", "count_tokens"] as const) {
    const sentOf = (asked: typeof mixed) =>
      anthropicWire.request(endpoint, asked, deployment(), false)["messages"];
    expect(sentOf(mixed)).toEqual(expected);
    const fine = body(signed);
    expect(sentOf(fine)).toBe(fine.messages);
  }
});

test("any body is handled; unknown parts are sent or named", () => {
  const part = fc.oneof(
    fc.anything(),
    fc.record(
      {
        type: fc.constantFrom("text", "image_url", "file", "new", "refusal"),
        text: fc.anything(),
        image_url: fc.anything(),
        file: fc.anything(),
        cache_control: fc.anything(),
      },
      { requiredKeys: [] },
    ),
  );
  const message = fc.oneof(
    fc.anything(),
    fc.record(
      {
        role: fc.constantFrom(
          "system",
          "user",
          "assistant",
          "tool",
          "developer",
          "new",
        ),
        content: fc.oneof(fc.string(), fc.array(part), fc.anything()),
        tool_calls: fc.anything(),
        tool_call_id: fc.anything(),
        thinking_blocks: fc.array(fc.anything()),
        provider_blocks: fc.anything(),
      },
      { requiredKeys: ["role"] },
    ),
  );
  const body = fc.record(
    {
      model: fc.constant("m"),
      messages: fc.oneof(fc.array(message), fc.anything()),
      tools: fc.oneof(fc.array(fc.anything()), fc.anything()),
      tool_choice: fc.anything(),
      response_format: fc.anything(),
      stop: fc.anything(),
      temperature: fc.anything(),
      top_p: fc.anything(),
      max_tokens: fc.anything(),
      reasoning_effort: fc.oneof(fc.constantFrom("low", "none"), fc.anything()),
      thinking: fc.anything(),
      metadata: fc.anything(),
      output_config: fc.anything(),
      invented: fc.anything(),
    },
    { requiredKeys: ["model"] },
  );
  fc.assert(
    fc.property(
      body,
      fc.constantFrom(NEWEST, OLDER, "other"),
      (request, model) => {
        const to = deployment(model);
        const sent = anthropicWire.request("chat", request, to, true);
        expect(Array.isArray(sent["messages"])).toBe(true);
        const lacks = anthropicWire.unsupported("chat", request, to);
        if (request.invented != null) {
          expect(lacks).toContain("invented");
        }
      },
    ),
    { numRuns: 500 },
  );
});

test("Messages get a deployment's defaults by Anthropic's names, without those that the model rejects", () => {
  const defaults = {
    max_completion_tokens: 1_000,
    stop: ["END"],
    temperature: 0.2,
    seed: 1,
    reasoning_effort: "low",
    response_format: { type: "json_object" },
  };
  const sentTo = (model: string, fields: object = {}) =>
    anthropicWire.request(
      "messages",
      { model: "alias", messages: HELLO, ...fields },
      deployment(model, { defaults }),
      false,
    );
  expect(sentTo(NEWEST)).toEqual({
    model: NEWEST,
    messages: HELLO,
    max_tokens: 1_000,
    stop_sequences: ["END"],
    thinking: { type: "adaptive", display: "summarized" },
    output_config: { effort: "low" },
  });
  expect(sentTo(OLDER, { max_tokens: 9, temperature: 0.7 })).toMatchObject({
    max_tokens: 9,
    temperature: 0.7,
    stop_sequences: ["END"],
  });
});
