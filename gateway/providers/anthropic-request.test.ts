import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { flatCard } from "../pricing/price-card.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { anthropicWire } from "./anthropic.ts";
import { testDeployment } from "./stream-fixture.ts";

const NEWEST = "claude-sonnet-5-5";
const OLDER = "claude-haiku-4-5-20251001";

function deployment(model = NEWEST, fields: Partial<PricedDeployment> = {}) {
  return testDeployment({
    provider: "anthropic",
    providerName: "anthropic",
    model,
    ...fields,
  });
}

const HELLO = [{ role: "user", content: "Hello" }];

function ask(fields: Record<string, unknown>, to = deployment()) {
  const body = { model: "alias", messages: HELLO, ...fields };
  return {
    sent: anthropicWire.request("chat", body, to, false),
    lacks: anthropicWire.unsupported("chat", body, to),
  };
}

const text = (words: string) => ({ type: "text", text: words });

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

test("system and developer messages at any position form the system prompt", () => {
  const { sent } = ask({
    messages: [
      { role: "system", content: "One." },
      { role: "user", content: "Hi" },
      {
        role: "developer",
        content: [
          {
            type: "text",
            text: "Two.",
            cache_control: { type: "ephemeral", ttl: "1h" },
          },
        ],
      },
      { role: "assistant", content: "Hello." },
      { role: "user", content: "Continue" },
    ],
  });
  expect(sent["system"]).toEqual([
    text("One."),
    { ...text("Two."), cache_control: { type: "ephemeral", ttl: "1h" } },
  ]);
  expect(sent["messages"]).toEqual([
    { role: "user", content: [text("Hi")] },
    { role: "assistant", content: [text("Hello.")] },
    { role: "user", content: [text("Continue")] },
  ]);
});

test("images and files become blocks; audio is named as unsupported", () => {
  const { sent, lacks } = ask({
    messages: [
      {
        role: "user",
        content: [
          text("Look:"),
          {
            type: "image_url",
            image_url: { url: "data:image/png;base64,aGk=" },
          },
          {
            type: "image_url",
            image_url: { url: "https://example.com/a.jpg", detail: "low" },
          },
          {
            type: "file",
            file: {
              filename: "a.pdf",
              file_data: "data:application/pdf;base64,JVBERg==",
            },
          },
          {
            type: "file",
            file: { file_data: "data:text/plain;base64,aGVsbG8=" },
          },
          { type: "input_audio", input_audio: { data: "xx", format: "wav" } },
          { type: "document", source: { type: "url", url: "https://x.pdf" } },
          text(""),
        ],
      },
    ],
  });
  expect(sent["messages"]).toEqual([
    {
      role: "user",
      content: [
        text("Look:"),
        {
          type: "image",
          source: { type: "base64", media_type: "image/png", data: "aGk=" },
        },
        {
          type: "image",
          source: { type: "url", url: "https://example.com/a.jpg" },
        },
        {
          type: "document",
          source: {
            type: "base64",
            media_type: "application/pdf",
            data: "JVBERg==",
          },
          title: "a.pdf",
        },
        {
          type: "document",
          source: { type: "text", media_type: "text/plain", data: "hello" },
        },
        { type: "document", source: { type: "url", url: "https://x.pdf" } },
      ],
    },
  ]);
  expect(lacks).toEqual(["messages[0].content[5]"]);
});

test("parallel calls are one assistant turn, their results one user turn", () => {
  const call = (id: string, written: string) => ({
    id,
    type: "function",
    function: { name: "get", arguments: written },
  });
  const { sent } = ask({
    messages: [
      { role: "user", content: "Compare" },
      {
        role: "assistant",
        content: "I look.",
        thinking_blocks: [
          { type: "thinking", thinking: "hm", signature: "sig" },
          { type: "thinking", thinking: "unsigned" },
          { type: "redacted_thinking", data: "xx" },
        ],
        tool_calls: [
          call("call_1", '{"a":1}'),
          call("functions.get:1", ""),
          call("call_3", "not json"),
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: "one" },
      {
        role: "tool",
        tool_call_id: "functions.get:1",
        content: [text("two")],
      },
      { role: "tool", tool_call_id: "call_3", content: "bad", is_error: true },
      { role: "user", content: "Now?" },
    ],
  });
  expect(sent["messages"]).toEqual([
    { role: "user", content: [text("Compare")] },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", signature: "sig" },
        { type: "redacted_thinking", data: "xx" },
        text("I look."),
        { type: "tool_use", id: "call_1", name: "get", input: { a: 1 } },
        { type: "tool_use", id: "functions_get_1", name: "get", input: {} },
        {
          type: "tool_use",
          id: "call_3",
          name: "get",
          input: { arguments: "not json" },
        },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "call_1", content: "one" },
        {
          type: "tool_result",
          tool_use_id: "functions_get_1",
          content: [text("two")],
        },
        {
          type: "tool_result",
          tool_use_id: "call_3",
          content: "bad",
          is_error: true,
        },
        text("Now?"),
      ],
    },
  ]);
});

test("an answer started by the caller is continued, without its trailing space", () => {
  const { sent } = ask({
    messages: [...HELLO, { role: "assistant", content: "The answer is ( \n" }],
  });
  expect(sent["messages"]).toEqual([
    { role: "user", content: [text("Hello")] },
    { role: "assistant", content: [text("The answer is (")] },
  ]);
});

test("a conversation that starts with the assistant gets a user turn before it", () => {
  const { sent } = ask({
    messages: [{ role: "assistant", content: "Welcome!" }, ...HELLO],
  });
  expect(sent["messages"]).toMatchObject([
    { role: "user" },
    { role: "assistant" },
    { role: "user" },
  ]);
});

describe("tools", () => {
  const tool = (name: string, more: object = {}) => ({
    type: "function",
    function: { name, description: "d", parameters: { properties: {} } },
    ...more,
  });
  const sentTool = (name: string) => ({
    name,
    description: "d",
    input_schema: { type: "object", properties: {} },
  });

  test("functions become tools; Anthropic's own pass unchanged", () => {
    const own = { type: "web_search_20250305", name: "web_search" };
    const { sent, lacks } = ask({
      tools: [
        tool("a", { cache_control: { type: "ephemeral" } }),
        { type: "function", function: { name: "b", strict: true } },
        own,
        { type: "custom", custom: { name: "grammar" } },
      ],
    });
    expect(sent["tools"]).toEqual([
      { ...sentTool("a"), cache_control: { type: "ephemeral" } },
      {
        name: "b",
        input_schema: { type: "object", properties: {} },
        strict: true,
      },
      own,
    ]);
    expect(lacks).toEqual(["tools[3]"]);
  });

  test.each<[string, object, unknown]>([
    ["auto", { tool_choice: "auto" }, { type: "auto" }],
    ["none", { tool_choice: "none" }, { type: "none" }],
    ["required", { tool_choice: "required" }, { type: "any" }],
    [
      "a named one",
      { tool_choice: { type: "function", function: { name: "a" } } },
      { type: "tool", name: "a" },
    ],
    [
      "one at a time",
      { parallel_tool_calls: false },
      { type: "auto", disable_parallel_tool_use: true },
    ],
    [
      "required, one at a time",
      { tool_choice: "required", parallel_tool_calls: false },
      { type: "any", disable_parallel_tool_use: true },
    ],
    ["unsaid", { parallel_tool_calls: true }, undefined],
  ])("tool choice: %s", (_name, fields, expected) => {
    const { sent } = ask({ tools: [tool("a"), tool("b")], ...fields });
    expect(sent["tool_choice"]).toEqual(expected);
  });

  test("allowed tools exclude the others", () => {
    const { sent } = ask({
      tools: [tool("a"), tool("b")],
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: {
          mode: "required",
          tools: [{ type: "function", function: { name: "b" } }],
        },
      },
    });
    expect(sent["tools"]).toEqual([sentTool("b")]);
    expect(sent["tool_choice"]).toEqual({ type: "any" });
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

describe("thinking", () => {
  const tools = [{ type: "function", function: { name: "a" } }];

  test.each<[string, object, object]>([
    [
      NEWEST,
      { reasoning_effort: "medium" },
      {
        thinking: { type: "adaptive", display: "summarized" },
        output_config: { effort: "medium" },
      },
    ],
    [
      NEWEST,
      { reasoning_effort: "minimal" },
      {
        thinking: { type: "adaptive", display: "summarized" },
        output_config: { effort: "low" },
      },
    ],
    [
      "claude-opus-4-6",
      { reasoning_effort: "xhigh" },
      {
        thinking: { type: "adaptive", display: "summarized" },
        output_config: { effort: "high" },
      },
    ],
    [NEWEST, { reasoning_effort: "none" }, { thinking: { type: "disabled" } }],
    [
      "claude-fable-5",
      { reasoning_effort: "none" },
      { output_config: { effort: "low" } },
    ],
    [
      NEWEST,
      { reasoning_effort: "high", tools, tool_choice: "required" },
      { output_config: { effort: "high" } },
    ],
    [
      OLDER,
      { reasoning_effort: "high", max_tokens: 64_000 },
      { thinking: { type: "enabled", budget_tokens: 16_384 } },
    ],
    [
      OLDER,
      { reasoning_effort: "high", max_tokens: 4_000 },
      { thinking: { type: "enabled", budget_tokens: 2_000 } },
    ],
    [OLDER, { reasoning_effort: "high", max_tokens: 1_500 }, {}],
    [OLDER, { reasoning_effort: "none" }, {}],
    [OLDER, { reasoning_effort: "low", tools, tool_choice: "required" }, {}],
    [
      OLDER,
      {
        thinking: { type: "enabled", budget_tokens: 1_111 },
        reasoning_effort: "high",
      },
      { thinking: { type: "enabled", budget_tokens: 1_111 } },
    ],
  ])("%s %j", (model, fields, expected) => {
    const { sent, lacks } = ask({ ...fields }, deployment(model));
    const { thinking, output_config } = sent;
    expect(JSON.parse(JSON.stringify({ thinking, output_config }))).toEqual(
      expected,
    );
    expect(lacks).toEqual([]);
  });

  test("a tool loop whose thinking the client lost continues without a budget", () => {
    const turn = (more: object) => [
      ...HELLO,
      {
        role: "assistant",
        tool_calls: [{ id: "c", function: { name: "a", arguments: "{}" } }],
        ...more,
      },
      { role: "tool", tool_call_id: "c", content: "x" },
    ];
    const fields = { reasoning_effort: "low", max_tokens: 9_000, tools };
    const lost = ask({ ...fields, messages: turn({}) }, deployment(OLDER));
    expect(lost.sent["thinking"]).toBeUndefined();
    const kept = [{ type: "thinking", thinking: "t", signature: "s" }];
    const whole = ask(
      { ...fields, messages: turn({ thinking_blocks: kept }) },
      deployment(OLDER),
    );
    expect(whole.sent["thinking"]).toBeDefined();
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
