import Anthropic from "@anthropic-ai/sdk";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CallError } from "../http/errors.ts";
import { anthropicWire } from "../providers/anthropic.ts";
import { openaiRequest } from "../providers/openai.ts";
import { cuts, testDeployment } from "../providers/stream-fixture.ts";
import { sseText, type StreamPiece } from "../providers/wire.ts";
import {
  anyChatStream,
  chatAnswerOf,
  chatPieces,
  fetchOf,
  passed,
  RECORDINGS,
} from "./chat-stream-fixture.ts";
import { messagesShape } from "./messages.ts";
import { responsesShape } from "./responses.ts";

const BODY = { model: "alias", max_tokens: 100, messages: [] };
const OPENAI = testDeployment();
const LOCAL = testDeployment({ providerName: "vllm", model: "qwen3:8b" });

interface Block {
  type: string;
  text?: string;
  thinking?: string;
  signature?: string;
  input?: unknown;
}

interface Message {
  readonly id: string;
  readonly model: string;
  readonly content: readonly Block[];
  readonly stop_reason: string;
  readonly usage: unknown;
}

interface Event {
  readonly type: string;
  readonly index: number;
  readonly message: Message;
  readonly content_block: Block;
  readonly delta: {
    readonly type: string;
    readonly text: string;
    readonly thinking: string;
    readonly signature: string;
    readonly partial_json: string;
    readonly stop_reason: string;
  };
  readonly usage: unknown;
}

/** Assembles a message and checks the order of its events. */
function assemble(pieces: readonly StreamPiece[]): Message {
  const events = pieces.map(({ event, data }) => {
    const parsed = JSON.parse(data) as Event;
    expect(event).toBe(parsed.type);
    return parsed;
  });
  expect(events[0]?.type).toBe("message_start");
  expect(events.at(-1)?.type).toBe("message_stop");
  expect(pieces.at(-1)?.kind).toBe("done");
  const blocks: Block[] = [];
  let open = false;
  let json = "";
  let message = events[0]?.message as Message;
  for (const event of events) {
    switch (event.type) {
      case "content_block_start":
        expect(open).toBe(false);
        expect(event.index).toBe(blocks.length);
        blocks.push({ ...event.content_block });
        open = true;
        json = "";
        break;
      case "content_block_delta": {
        expect(open).toBe(true);
        expect(event.index).toBe(blocks.length - 1);
        const block = blocks.at(-1) as Block;
        const { delta } = event;
        if (delta.type === "text_delta") {
          block.text += delta.text;
        } else if (delta.type === "thinking_delta") {
          block.thinking += delta.thinking;
        } else if (delta.type === "signature_delta") {
          block.signature = delta.signature;
        } else {
          json += delta.partial_json;
        }
        break;
      }
      case "content_block_stop":
        expect(open).toBe(true);
        open = false;
        if (json !== "") {
          (blocks.at(-1) as Block).input = JSON.parse(json);
        }
        break;
      case "message_delta":
        expect(open).toBe(false);
        message = {
          ...message,
          stop_reason: event.delta.stop_reason,
          usage: event.usage,
        };
    }
  }
  return { ...message, content: blocks };
}

describe.each(RECORDINGS)("%s %s", (provider, name) => {
  const whole = JSON.parse(
    messagesShape.answer(chatAnswerOf(provider, name), BODY).toString(),
  ) as Message;

  test("a stream, cut anywhere, equals the whole answer", () => {
    fc.assert(
      fc.property(cuts, (places) => {
        const pieces = passed(
          messagesShape.stream(BODY),
          chatPieces(provider, name, places),
        );
        expect(assemble(pieces)).toEqual(whole);
      }),
      { numRuns: 20 },
    );
  });

  test("Anthropic's own client reads the stream and the whole alike", async () => {
    const pieces = passed(
      messagesShape.stream(BODY),
      chatPieces(provider, name),
    );
    const streaming = new Anthropic({
      apiKey: "k",
      fetch: fetchOf(sseText(pieces), "text/event-stream"),
    });
    const answering = new Anthropic({
      apiKey: "k",
      fetch: fetchOf(JSON.stringify(whole), "application/json"),
    });
    const request = {
      model: "alias",
      max_tokens: 100,
      messages: [{ role: "user" as const, content: "Hello" }],
    };
    const streamed = await streaming.messages.stream(request).finalMessage();
    const answered = await answering.messages.create(request);
    expect(streamed.content).toEqual(answered.content);
    expect(streamed.stop_reason).toBe(answered.stop_reason);
    expect(streamed.usage).toMatchObject({ ...answered.usage });
    expect(streamed.id).toBe(answered.id);
  });
});

test("interleaved tool calls are sent one after the other, each complete", () => {
  fc.assert(
    fc.property(anyChatStream, ({ pieces, answer }) => {
      const streamed = assemble(passed(messagesShape.stream(BODY), pieces));
      const whole = JSON.parse(
        messagesShape.answer(answer, BODY).toString(),
      ) as Message;
      expect(streamed).toEqual(whole);
    }),
  );
});

test("an answer of Anthropic reaches an Anthropic client unchanged", () => {
  const { content, stop_reason, usage } = JSON.parse(
    messagesShape
      .answer(chatAnswerOf("anthropic", "thinking"), BODY)
      .toString(),
  ) as Message;
  expect(content.map(({ type }) => type)).toEqual([
    "thinking",
    "redacted_thinking",
    "text",
  ]);
  expect(content[0]?.signature).toMatch(/^EqQB/);
  expect(stop_reason).toBe("end_turn");
  expect(usage).toEqual({
    input_tokens: 30,
    cache_creation_input_tokens: 240,
    cache_read_input_tokens: 1_800,
    output_tokens: 120,
  });
});

test.each([
  [
    "OpenAI's names",
    {
      prompt_tokens: 100,
      prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 },
    },
  ],
  ["Moonshot's name for reads", { prompt_tokens: 100, cached_tokens: 60 }],
])("reads and writes of the cache are counted by %s", (_names, usage) => {
  const answer = Buffer.from(
    JSON.stringify({ choices: [], usage: { ...usage, completion_tokens: 5 } }),
  );
  const written = "prompt_tokens_details" in usage ? 30 : 0;
  const message = JSON.parse(
    messagesShape.answer(answer, BODY).toString(),
  ) as Message;
  expect(message.usage).toEqual({
    input_tokens: 40 - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: 60,
    output_tokens: 5,
  });
  const response: unknown = JSON.parse(
    responsesShape.answer(answer, BODY).toString(),
  );
  expect(response).toMatchObject({
    usage: {
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 60, cache_write_tokens: written },
    },
  });
});

test("reasoning beside a thought signature of Gemini is kept, whole or streamed", () => {
  const call = {
    index: 0,
    id: "a",
    function: { name: "f", arguments: "{}" },
    extra_content: { google: { thought_signature: "c2ln" } },
  };
  const said = { reasoning_content: "hm", tool_calls: [call] };
  const choice = { index: 0, finish_reason: "tool_calls" };
  const blocks = [
    { type: "thinking", thinking: "hm", signature: "" },
    { type: "redacted_thinking", data: "hearth-google:c2ln" },
    { type: "tool_use", id: "a", name: "f", input: {} },
  ];
  const whole = Buffer.from(
    JSON.stringify({ choices: [{ ...choice, message: said }] }),
  );
  expect(
    JSON.parse(messagesShape.answer(whole, BODY).toString()),
  ).toMatchObject({ content: blocks });
  const chunk = JSON.stringify({ choices: [{ ...choice, delta: said }] });
  const events = passed(messagesShape.stream(BODY), [
    { kind: "pass", event: null, data: chunk },
    { kind: "done", event: null, data: "[DONE]" },
  ]).map(({ data }) => JSON.parse(data) as { content_block?: object });
  expect(
    events.flatMap(({ content_block: block }) => block ?? []),
  ).toMatchObject(blocks.map(({ type }) => ({ type })));
});

describe("requests", () => {
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
        content: "The tool b is loaded.\nThe tool gone is loaded.\n",
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
              content: [{ type: "text", text: "two" }, image],
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
      { role: "tool", tool_call_id: "toolu_2", content: "Error: two" },
      { role: "user", content: [picture, { type: "text", text: "And?" }] },
    ]);
    expect(lacks).toEqual(["messages[2].content[3] (document)"]);
    const sent = openaiRequest("chat", body, OPENAI, false)[
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
});

test.each([
  [400, "invalid_request_error"],
  [401, "authentication_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [413, "request_too_large"],
  [422, "invalid_request_error"],
  [429, "rate_limit_error"],
  [500, "api_error"],
  [502, "api_error"],
  [503, "overloaded_error"],
  [408, "timeout_error"],
])("status %i is a %s", (status, type) => {
  const error = new CallError("upstream_error", "No.", { status });
  expect(messagesShape.errorBody(error)).toEqual({
    type: "error",
    error: { type, message: "No." },
  });
});

test("a stream that fails ends with one error event and nothing after it", () => {
  const stream = messagesShape.stream(BODY);
  const pieces = passed(stream, chatPieces("anthropic", "overloaded"));
  expect(pieces.at(-1)).toEqual({
    kind: "error",
    event: "error",
    data: '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded (overloaded_error)"}}',
  });
  expect(stream.push({ kind: "done", event: null, data: "[DONE]" })).toEqual(
    [],
  );
  const cut = messagesShape.stream(BODY);
  const error = new CallError("upstream_error", "Gone.", { status: 502 });
  expect(cut.fail(error)).toEqual([
    {
      kind: "error",
      event: "error",
      data: '{"type":"error","error":{"type":"api_error","message":"Gone."}}',
    },
  ]);
});

test("a client sees the usage that a stream reports inside its last choice", () => {
  const usage = { prompt_tokens: 19, completion_tokens: 13 };
  const choice = { index: 0, delta: {}, finish_reason: "stop", usage };
  const pieces = passed(messagesShape.stream({ model: "m" }), [
    { kind: "pass", event: null, data: JSON.stringify({ choices: [choice] }) },
    { kind: "done", event: null, data: "[DONE]" },
  ]);
  const ending = pieces.find(({ event }) => event === "message_delta");
  expect(JSON.parse(ending?.data ?? "")).toMatchObject({
    usage: { input_tokens: 19, output_tokens: 13 },
  });
});
