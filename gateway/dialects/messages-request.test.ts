import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CallError } from "../http/errors.ts";
import { anthropicWire } from "../providers/anthropic.ts";
import { openaiRequest } from "../providers/openai.ts";
import { testDeployment } from "../providers/stream-fixture.ts";
import { messagesShape } from "./messages.ts";

const BODY = { model: "alias", max_tokens: 100, messages: [] };
const OPENAI = testDeployment();
const LOCAL = testDeployment({ providerName: "vllm", model: "qwen3:8b" });

const ask = (fields: object, to = OPENAI) =>
  messagesShape.chatBody(
    {
      ...BODY,
      messages: [{ role: "user", content: "Hello" }],
      ...fields,
    },
    to,
  );

test("the parameters, in each deployment's dialect", () => {
  const fields = {
    system: [
      { type: "text", text: "One.", cache_control: { type: "ephemeral" } },
      { type: "text", text: "Two." },
    ],
    stop_sequences: ["END"],
    temperature: 0.5,
    top_k: 4,
    metadata: { user_id: "u1" },
    stream: true,
    thinking: { type: "enabled", budget_tokens: 4_000 },
    output_config: { format: { type: "json_schema", schema: { a: 1 } } },
  };
  const common = {
    model: "alias",
    messages: [
      { role: "system", content: "One.\nTwo." },
      { role: "user", content: "Hello" },
    ],
    stop: ["END"],
    temperature: 0.5,
    user: "u1",
    stream: true,
    response_format: {
      type: "json_schema",
      json_schema: { name: "answer", schema: { a: 1 }, strict: true },
    },
  };
  expect(ask(fields)).toEqual({
    body: { ...common, max_completion_tokens: 100 },
    lacks: ["top_k"],
  });
  expect(ask(fields, LOCAL)).toEqual({
    body: { ...common, max_tokens: 100, top_k: 4 },
    lacks: [],
  });
  const thinker = testDeployment({ model: "gpt-5-mini" });
  expect(ask(fields, thinker).body["reasoning_effort"]).toBe("medium");
});

// OpenAI: "'required' is required to be supplied and to be an array including every key in properties".
test.each([
  ["all of its properties are required", ["a", "b"], true],
  ["one is optional", ["a"], undefined],
])("a schema is strict at OpenAI if %s", (_name, required, strict) => {
  const schema = {
    type: "object",
    properties: {
      in: {
        type: ["object", "null"],
        properties: { a: { type: "string" }, b: { type: "string" } },
        required,
        additionalProperties: false,
      },
    },
    required: ["in"],
    additionalProperties: false,
  };
  const { body } = ask({
    output_config: { format: { type: "json_schema", schema } },
    tools: [{ name: "f", input_schema: schema, strict: true }],
  });
  const { response_format: format, tools } = body as unknown as {
    response_format: { json_schema: { schema: object; strict?: boolean } };
    tools: [{ function: { strict?: boolean } }];
  };
  expect(format.json_schema.schema).toEqual(schema);
  expect(format.json_schema.strict).toBe(strict);
  expect(tools[0].function.strict).toBe(strict);
});

test("a schema that is open or nested too deep is not strict", () => {
  let deep: object = { type: "string" };
  for (let depth = 0; depth < 100; depth++) {
    deep = { type: "array", items: deep };
  }
  const open = { type: "object", properties: {}, required: [] };
  for (const schema of [open, { anyOf: [open] }, deep]) {
    const { body } = ask({ output_format: { type: "json_schema", schema } });
    expect(body["response_format"]).toEqual({
      type: "json_schema",
      json_schema: { name: "answer", schema },
    });
  }
});

// Claude Code sends `xhigh` for some names of models, whichever model has that name here.
test.each([
  [{ model: "gpt-5-mini" }, "xhigh", "high"],
  [{ model: "gpt-5.1" }, "max", "high"],
  [{ model: "gpt-5.1-codex-max" }, "xhigh", "xhigh"],
  [{ model: "gpt-5.5" }, "max", "xhigh"],
  [{ model: "mine", baseModel: "gpt-5.5" }, "xhigh", "xhigh"],
  [{ model: "openai/gpt-oss-120b", providerName: "groq" }, "xhigh", "high"],
  [{ model: "openai/o3", providerName: "openrouter" }, "xhigh", "xhigh"],
  [{ model: "gpt-5-mini" }, "low", "low"],
])("%j gets the effort %s as %s", (deployment, effort, sent) => {
  const { body } = ask(
    { output_config: { effort } },
    testDeployment(deployment),
  );
  expect(body["reasoning_effort"]).toBe(sent);
});

// Otherwise it would think with its default effort, which may use up all of `max_tokens`.
test.each([
  [{ model: "gpt-5.2" }, "none"],
  [{ model: "gemini-2.5-flash", provider: "gemini" }, "none"],
  [{ model: "gemini-2.5-pro", provider: "gemini" }, "minimal"],
  [{ model: "gemini-3-flash", provider: "gemini" }, "minimal"],
  [{ model: "openai/gpt-oss-120b", providerName: "groq" }, "low"],
  [{ model: "deepseek-v4-pro", providerName: "deepseek" }, "none"],
  [{ model: "kimi-k2.6", providerName: "moonshot" }, "none"],
  [{ model: "kimi-k2.7-code", providerName: "moonshot" }, undefined],
  [{ model: "gpt-4.1" }, undefined],
] as const)("%j with thinking disabled gets the effort %s", (fields, sent) => {
  const thinking = { type: "disabled" };
  const { body } = ask(
    { thinking, output_config: { effort: "high" } },
    testDeployment(fields),
  );
  expect(body["reasoning_effort"]).toBe(sent);
});

test("a model for chat alone gets no effort, which it rejects", () => {
  const fields = { output_config: { effort: "high" } };
  const deployment = testDeployment({ model: "gpt-5.1-chat-latest" });
  expect(ask(fields, deployment).body).not.toHaveProperty("reasoning_effort");
});

test.each([
  ["", "Error:"],
  ["Exit code 1", "Error: Exit code 1"],
  ["Error: no such file", "Error: no such file"],
  ["Errors were found: 0", "Error: Errors were found: 0"],
])("the result %j of a failed tool reads %j", (content, read) => {
  const result = (is_error: boolean) =>
    ask({
      messages: [
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t", content, is_error },
          ],
        },
      ],
    }).body["messages"];
  const message = { role: "tool", tool_call_id: "t" };
  expect(result(true)).toEqual([{ ...message, content: read }]);
  expect(result(false)).toEqual([{ ...message, content }]);
});

test("tools and tool choice; Anthropic's server tools are named as unsupported", () => {
  const { body, lacks } = ask({
    tools: [
      {
        name: "a",
        description: "d",
        input_schema: { type: "object" },
        cache_control: { type: "ephemeral" },
      },
      { type: "web_search_20250305", name: "web_search" },
    ],
    tool_choice: {
      type: "tool",
      name: "a",
      disable_parallel_tool_use: true,
    },
  });
  expect(body).toMatchObject({
    tools: [
      {
        type: "function",
        function: {
          name: "a",
          description: "d",
          parameters: { type: "object" },
        },
      },
    ],
    tool_choice: { type: "function", function: { name: "a" } },
    parallel_tool_calls: false,
  });
  expect(lacks).toEqual(["tools[1] (web_search_20250305)"]);
});

describe("tools that are loaded in the conversation", () => {
  const tool = (name: string, fields: object = {}) => ({
    name,
    input_schema: { type: "object" },
    ...fields,
  });
  const deferred = (name: string) => tool(name, { defer_loading: true });
  const loads = (...names: readonly string[]) => [
    {
      role: "assistant",
      content: [{ type: "tool_use", id: "t", name: "search", input: {} }],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "t",
          content: names.map((tool_name) => ({
            type: "tool_reference",
            tool_name,
          })),
        },
      ],
    },
  ];
  const changes = (...content: readonly object[]) => ({
    role: "system",
    content,
  });
  const byName = (name: string) => ({ type: "tool_reference", name });
  const offered = (tools: readonly object[], ...later: readonly object[]) => {
    const { body, lacks } = ask({
      tools,
      messages: [{ role: "user", content: "Hello" }, ...later],
    });
    const functions = (body["tools"] ?? []) as {
      function: { name: string };
    }[];
    return {
      names: functions.map(({ function: { name } }) => name),
      messages: body["messages"] as { role: string; content: string }[],
      lacks,
    };
  };

  test("deferred ones follow the others once a result refers to them", () => {
    const tools = [deferred("a"), deferred("b"), tool("search")];
    expect(offered(tools).names).toEqual(["search"]);
    const { names, messages, lacks } = offered(tools, ...loads("b", "gone"));
    expect(names).toEqual(["search", "b"]);
    expect(messages.at(-1)).toEqual({
      role: "tool",
      tool_call_id: "t",
      content: "The tool b is loaded.\nThe tool gone is loaded.",
    });
    expect(lacks).toEqual([]);
  });

  test("all are offered where Anthropic's own search, which loads them, is left out", () => {
    const search = { type: "tool_search_tool_bm25_20251119", name: "s" };
    const { names, lacks } = offered([search, deferred("a")]);
    expect(names).toEqual(["a"]);
    expect(lacks).toEqual(["tools[0] (tool_search_tool_bm25_20251119)"]);
  });

  test("system messages offer and withdraw tools, declared or defined there", () => {
    const { names, messages } = offered(
      [tool("a"), deferred("b"), tool("c")],
      changes(
        { type: "tool_removal", tool: byName("a") },
        { type: "tool_addition", tool: byName("b") },
        {
          type: "tool_addition",
          tool: { type: "tool_definition", definition: tool("d") },
        },
      ),
      changes(
        { type: "tool_removal", tool: byName("d") },
        { type: "text", text: "Two are gone." },
      ),
    );
    expect(names).toEqual(["c", "b"]);
    expect(messages.slice(1)).toEqual([
      { role: "system", content: "Two are gone." },
    ]);
  });

  test("a tool of Anthropic's that a system message defines is named as unsupported", () => {
    const definition = { type: "web_search_20250305", name: "web_search" };
    const addition = {
      type: "tool_addition",
      tool: { type: "tool_definition", definition },
    };
    expect(offered([tool("a")], changes(addition)).lacks).toEqual([
      "messages[1].content[0].tool (web_search_20250305)",
    ]);
  });
});

test.each([
  ["billing_policy", { type: "billing_policy", bill_to: "user_profile" }],
  ["compaction", { type: "summarize" }],
  ["container", "container_1"],
  ["container", { skills: [{ type: "anthropic", skill_id: "pdf" }] }],
  ["inference_geo", "us"],
  ["mcp_servers", [{ type: "url", url: "https://mcp.test", name: "a" }]],
])("%s, which only Anthropic has, is named as unsupported", (name, value) => {
  expect(ask({ [name]: value }).lacks).toEqual([name]);
  expect(ask({ [name]: null }).lacks).toEqual([]);
});

test("what only saves tokens or time at Anthropic is left out", () => {
  const fields = {
    billing_policy: { type: "billing_policy", bill_to: "self" },
    cache_control: { type: "ephemeral" },
    context_management: { edits: [{ type: "clear_tool_uses_20250919" }] },
    diagnostics: { previous_message_id: null },
    fallback_credit_token: "token",
    output_config: { task_budget: { type: "tokens", total: 20_000 } },
    service_tier: "standard_only",
    speed: "fast",
  };
  expect(ask(fields)).toEqual(ask({}));
});

test("a summary that Anthropic wrote in place of earlier messages is kept", () => {
  const summary = { type: "compaction", content: "Anna's code is 7." };
  const text = { type: "text", text: "Go on?" };
  const question = { role: "user", content: "Which code?" };
  const given = {
    role: "user",
    content: "Summary of our conversation so far:\n\nAnna's code is 7.",
  };
  const messagesOf = (content: readonly object[]) =>
    ask({ messages: [{ role: "assistant", content }, question] }).body[
      "messages"
    ];
  expect(messagesOf([summary])).toEqual([given, question]);
  expect(messagesOf([summary, text])).toEqual([
    given,
    { role: "assistant", content: "Go on?" },
    question,
  ]);
});

test("the texts of a system message are lines", () => {
  const content = ["One.", "Two."].map((text) => ({ type: "text", text }));
  const { body } = ask({ messages: [{ role: "system", content }] });
  expect(body["messages"]).toEqual([{ role: "system", content: "One.\nTwo." }]);
});

test("a system message for one turn is left out of the later ones", () => {
  const reminder = {
    role: "system",
    content: "Now.",
    clear_at: "next_user_message",
  };
  const hello = { role: "user", content: "Hello" };
  const texts = (...messages: readonly object[]) =>
    (ask({ messages }).body["messages"] as { content: string }[]).map(
      ({ content }) => content,
    );
  expect(texts(hello, reminder)).toEqual(["Hello", "Now."]);
  expect(texts(hello, reminder, hello)).toEqual(["Hello", "Hello"]);
});

test("tool results come first, then their images with the user's text", () => {
  const image = {
    type: "image",
    source: { type: "base64", media_type: "image/png", data: "aGk=" },
  };
  const { body, lacks } = ask({
    messages: [
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", signature: "s" },
          { type: "text", text: "I look." },
          { type: "tool_use", id: "toolu_1", name: "a", input: { x: 1 } },
          { type: "tool_use", id: "toolu_2", name: "a", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: "one" },
          {
            type: "tool_result",
            tool_use_id: "toolu_2",
            content: [
              { type: "text", text: "two" },
              image,
              { type: "text", text: "three" },
            ],
            is_error: true,
          },
          { type: "text", text: "And?" },
          { type: "document", source: { type: "url", url: "https://x" } },
        ],
      },
    ],
  });
  const picture = {
    type: "image_url",
    image_url: { url: "data:image/png;base64,aGk=" },
  };
  expect(body["messages"]).toEqual([
    { role: "user", content: "Go" },
    {
      role: "assistant",
      content: "I look.",
      reasoning_content: "hm",
      thinking_blocks: [{ type: "thinking", thinking: "hm", signature: "s" }],
      tool_calls: [
        {
          id: "toolu_1",
          type: "function",
          function: { name: "a", arguments: '{"x":1}' },
        },
        {
          id: "toolu_2",
          type: "function",
          function: { name: "a", arguments: "{}" },
        },
      ],
    },
    { role: "tool", tool_call_id: "toolu_1", content: "one" },
    { role: "tool", tool_call_id: "toolu_2", content: "Error: two\nthree" },
    { role: "user", content: [picture, { type: "text", text: "And?" }] },
  ]);
  expect(lacks).toEqual(["messages[2].content[3] (document)"]);
  const openai = { ...OPENAI, model: "gpt-4.1" };
  const sent = openaiRequest("chat", body, openai, false)[
    "messages"
  ] as object[];
  expect(Object.keys(sent[1] as object)).toEqual([
    "role",
    "content",
    "tool_calls",
  ]);
});

test.each([
  [{}, "messages"],
  [{ messages: "x" }, "messages"],
  [{ messages: [] }, "messages"],
  [{ messages: [{ role: "user", content: "x" }, 3] }, "messages[1]"],
  [{ messages: [{ content: "x" }] }, "messages[0]"],
])("%j is rejected by name", (fields, param) => {
  const body = { model: "alias", ...fields };
  expect(() => messagesShape.chatBody(body, OPENAI)).toThrow(CallError);
  try {
    messagesShape.chatBody(body, OPENAI);
  } catch (error) {
    expect((error as CallError).details.param).toBe(param);
    expect((error as CallError).message).toContain(`\`${param}\``);
  }
});

test("a conversation translated to chat and on to Anthropic arrives unchanged", () => {
  const text = fc
    .string({ unit: "grapheme", minLength: 1 })
    .filter((words) => words.trim() === words && words !== "")
    .map((words) => ({ type: "text", text: words }));
  const image = fc.constantFrom(
    { type: "image", source: { type: "url", url: "https://x/y.png" } },
    {
      type: "image",
      source: { type: "base64", media_type: "image/png", data: "aGk=" },
    },
  );
  const thinking = fc.record({
    type: fc.constant("thinking"),
    thinking: fc.string(),
    signature: fc.string({ minLength: 1 }),
  });
  const rounds = fc.array(
    fc.record({
      words: fc.array(fc.oneof(text, image), { minLength: 1, maxLength: 3 }),
      thoughts: fc.array(thinking, { maxLength: 2 }),
      answer: text,
      inputs: fc.array(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 1 }), {
          noNullPrototype: true,
        }),
        { maxLength: 3 },
      ),
    }),
    { minLength: 1, maxLength: 4 },
  );
  fc.assert(
    fc.property(rounds, text, (all, last) => {
      const messages: { role: string; content: object[] }[] = [];
      let results: object[] = [];
      all.forEach(({ words, thoughts, answer, inputs }, round) => {
        messages.push({ role: "user", content: [...results, ...words] });
        const id = (index: number) => `toolu_${round}_${index}`;
        messages.push({
          role: "assistant",
          content: [
            ...thoughts,
            answer,
            ...inputs.map((input, index) => ({
              type: "tool_use",
              id: id(index),
              name: "t",
              input: JSON.parse(JSON.stringify(input)) as object,
            })),
          ],
        });
        results = inputs.map((_, index) => ({
          type: "tool_result",
          tool_use_id: id(index),
          content: "done",
        }));
      });
      messages.push({ role: "user", content: [...results, last] });
      const { body, lacks } = messagesShape.chatBody(
        { ...BODY, messages },
        LOCAL,
      );
      expect(lacks).toEqual([]);
      const to = testDeployment({ model: "claude-sonnet-5-5" });
      expect(
        anthropicWire.request("chat", body, to, false)["messages"],
      ).toEqual(messages);
    }),
  );
});

test("any invalid body is rejected with the name of a field", () => {
  const message = fc.oneof(
    fc.anything(),
    fc.record(
      {
        role: fc.constantFrom("user", "assistant", "system", "new"),
        content: fc.oneof(
          fc.anything(),
          fc.array(
            fc.oneof(
              fc.anything(),
              fc.record(
                {
                  type: fc.constantFrom(
                    "text",
                    "image",
                    "document",
                    "tool_use",
                    "tool_result",
                    "thinking",
                    "search_result",
                    "new",
                  ),
                  text: fc.anything(),
                  source: fc.anything(),
                  content: fc.anything(),
                  input: fc.jsonValue(),
                },
                { requiredKeys: ["type"] },
              ),
            ),
          ),
        ),
      },
      { requiredKeys: ["role"] },
    ),
  );
  const body = fc.record(
    {
      model: fc.constant("m"),
      messages: fc.oneof(fc.array(message), fc.anything()),
      system: fc.anything(),
      tools: fc.anything(),
      tool_choice: fc.anything(),
      metadata: fc.anything(),
      thinking: fc.anything(),
      output_config: fc.anything(),
    },
    { requiredKeys: ["model"] },
  );
  fc.assert(
    fc.property(body, (request) => {
      try {
        messagesShape.chatBody(request, LOCAL);
      } catch (error) {
        expect(error).toBeInstanceOf(CallError);
      }
    }),
    { numRuns: 300 },
  );
});
