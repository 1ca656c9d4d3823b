import fc from "fast-check";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { CallError } from "../http/errors.ts";
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
import { responsesShape } from "./responses.ts";

const BODY = { model: "alias", input: "Hello" };
const OPENAI = testDeployment();
const LOCAL = testDeployment({ providerName: "vllm", model: "qwen3:8b" });

interface Item {
  readonly id: string;
  readonly type: string;
}

interface Answer {
  readonly id: string;
  readonly status: string;
  readonly output: readonly Item[];
  readonly usage: unknown;
}

interface Event {
  readonly type: string;
  readonly sequence_number: number;
  readonly output_index: number;
  readonly item_id: string;
  readonly item: Item;
  readonly delta: string;
  readonly text: string;
  readonly arguments: string;
  readonly response: Answer;
}

/** The final Response, after checking that its events are numbered, in order and agree with it. */
function finalResponse(pieces: readonly StreamPiece[]): Answer {
  const deltas = new Map<string, string>();
  const open = new Set<number>();
  const done: Item[] = [];
  pieces.forEach(({ event, data }, index) => {
    const parsed = JSON.parse(data) as Event;
    expect(event).toBe(parsed.type);
    expect(parsed.sequence_number).toBe(index);
    switch (parsed.type) {
      case "response.output_item.added":
        open.add(parsed.output_index);
        break;
      case "response.output_text.delta":
      case "response.function_call_arguments.delta":
      case "response.reasoning_summary_text.delta":
      case "response.refusal.delta":
        expect(open).toContain(parsed.output_index);
        deltas.set(
          parsed.item_id,
          (deltas.get(parsed.item_id) ?? "") + parsed.delta,
        );
        break;
      case "response.output_text.done":
      case "response.reasoning_summary_text.done":
        expect(deltas.get(parsed.item_id)).toBe(parsed.text);
        break;
      case "response.function_call_arguments.done":
        expect(deltas.get(parsed.item_id) ?? "").toBe(parsed.arguments);
        break;
      case "response.output_item.done":
        expect(open.delete(parsed.output_index)).toBe(true);
        done[parsed.output_index] = parsed.item;
    }
  });
  expect(open.size).toBe(0);
  expect(pieces.at(-1)?.kind).toBe("done");
  const last = JSON.parse(pieces.at(-1)?.data ?? "") as Event;
  expect(last.type).toBe(`response.${last.response.status}`);
  expect(last.response.output).toEqual(done);
  return last.response;
}

/** Arguments may differ in white space between a stream and a whole answer. */
function withParsedArguments(answer: Answer): unknown {
  return JSON.parse(JSON.stringify(answer), (name, value: unknown) =>
    name === "arguments" && typeof value === "string"
      ? (JSON.parse(value) as unknown)
      : value,
  );
}

describe.each(RECORDINGS)("%s %s", (provider, name) => {
  const whole = JSON.parse(
    responsesShape.answer(chatAnswerOf(provider, name), BODY).toString(),
  ) as Answer & { created_at: number };

  test("a stream, cut anywhere, equals the whole answer", () => {
    fc.assert(
      fc.property(cuts, (places) => {
        const pieces = passed(
          responsesShape.stream(BODY),
          chatPieces(provider, name, places),
        );
        expect(withParsedArguments(finalResponse(pieces))).toEqual(
          withParsedArguments(whole),
        );
      }),
      { numRuns: 20 },
    );
  });

  test("OpenAI's own client reads the stream and the whole alike", async () => {
    const pieces = passed(
      responsesShape.stream(BODY),
      chatPieces(provider, name),
    );
    const streaming = new OpenAI({
      apiKey: "k",
      fetch: fetchOf(sseText(pieces), "text/event-stream"),
    });
    const answering = new OpenAI({
      apiKey: "k",
      fetch: fetchOf(JSON.stringify(whole), "application/json"),
    });
    const streamed = await streaming.responses.stream(BODY).finalResponse();
    const answered = await answering.responses.create(BODY);
    expect(streamed.output_text).toBe(answered.output_text);
    expect(streamed.output.map(({ type }) => type)).toEqual(
      answered.output.map(({ type }) => type),
    );
    expect(streamed.usage).toEqual(answered.usage);
    expect(streamed.status).toBe(answered.status);
  });
});

test("interleaved tool calls keep their places", () => {
  fc.assert(
    fc.property(anyChatStream, ({ pieces, answer }) => {
      const streamed = finalResponse(
        passed(responsesShape.stream(BODY), pieces),
      );
      const whole = responsesShape.answer(answer, BODY).toString();
      expect(streamed).toEqual(JSON.parse(whole));
    }),
  );
});

test("the caller's parameters are repeated, and usage is counted", () => {
  const body = {
    ...BODY,
    instructions: "Be kind.",
    max_output_tokens: 9,
    temperature: 0.5,
    metadata: { a: "b" },
  };
  const response: unknown = JSON.parse(
    responsesShape.answer(chatAnswerOf("openai", "length"), body).toString(),
  );
  expect(response).toMatchObject({
    id: "resp_Ab1",
    object: "response",
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
    instructions: "Be kind.",
    max_output_tokens: 9,
    temperature: 0.5,
    metadata: { a: "b" },
    model: "gpt-5-mini-2025-08-07",
    usage: {
      input_tokens: 1_200,
      input_tokens_details: { cached_tokens: 1_024, cache_write_tokens: 0 },
      output_tokens: 64,
      output_tokens_details: { reasoning_tokens: 32 },
      total_tokens: 1_264,
    },
  });
});

/** The output for a chat message, after checking that the stream of it has the same. */
function outputOf(message: object, finishReason: string): Answer["output"] {
  const completion = (fields: object) =>
    JSON.stringify({
      id: "chatcmpl-1",
      model: "m",
      choices: [{ index: 0, finish_reason: finishReason, ...fields }],
    });
  const whole = JSON.parse(
    responsesShape
      .answer(Buffer.from(completion({ message })), BODY)
      .toString(),
  ) as Answer;
  const pieces: readonly StreamPiece[] = [
    { kind: "pass", event: null, data: completion({ delta: message }) },
    { kind: "done", event: null, data: "[DONE]" },
  ];
  const streamed = finalResponse(passed(responsesShape.stream(BODY), pieces));
  expect(streamed.output).toEqual(whole.output);
  return whole.output;
}

test("a tool call that was cut off is incomplete, the items before it are not", () => {
  const toolCalls = ['{"city":"Rome"}', '{"city":"Os'].map((given, index) => ({
    index,
    id: `call_${index}`,
    type: "function",
    function: { name: "weather", arguments: given },
  }));
  const message = { content: "Looking.", tool_calls: toolCalls };
  const output = outputOf(message, "length");
  expect(output).toMatchObject([
    { type: "message", status: "completed" },
    { type: "function_call", call_id: "call_0", status: "completed" },
    { type: "function_call", call_id: "call_1", status: "incomplete" },
  ]);
});

test("a tool call without arguments gets an empty object", () => {
  const call = { index: 0, id: "call_1", function: { name: "now" } };
  const message = { tool_calls: [call] };
  const output = outputOf(message, "tool_calls");
  expect(output).toMatchObject([{ name: "now", arguments: "{}" }]);
});

test("signed thinking is kept by the client and returned in the next call", () => {
  const { output } = JSON.parse(
    responsesShape
      .answer(chatAnswerOf("anthropic", "thinking"), BODY)
      .toString(),
  ) as Answer;
  const { body } = responsesShape.chatBody(
    { model: "alias", input: [...output, { role: "user", content: "On" }] },
    LOCAL,
  );
  expect(body["messages"]).toMatchObject([
    {
      role: "assistant",
      content: "27 × 453 = 12,231",
      reasoning_content: "27 * 453 = 27 * 400 + 27 * 53",
      thinking_blocks: [
        {
          type: "thinking",
          signature: expect.stringMatching(/^EqQB/) as unknown,
        },
        { type: "redacted_thinking" },
      ],
    },
    { role: "user", content: "On" },
  ]);
});

describe("requests", () => {
  const ask = (fields: object, to = LOCAL) =>
    responsesShape.chatBody({ ...BODY, ...fields }, to);

  test("the parameters, in each deployment's dialect", () => {
    const fields = {
      instructions: "Be kind.",
      max_output_tokens: 50,
      temperature: 0.5,
      top_p: 0.9,
      reasoning: { effort: "low", summary: "auto" },
      text: {
        format: {
          type: "json_schema",
          name: "n",
          schema: { a: 1 },
          strict: true,
        },
        verbosity: "low",
      },
      user: "u",
      store: false,
      include: ["reasoning.encrypted_content"],
      truncation: "auto",
      stream: true,
    };
    const common = {
      model: "alias",
      temperature: 0.5,
      top_p: 0.9,
      reasoning_effort: "low",
      response_format: {
        type: "json_schema",
        json_schema: { name: "n", schema: { a: 1 }, strict: true },
      },
      verbosity: "low",
      user: "u",
      stream: true,
    };
    const hello = { role: "user", content: "Hello" };
    expect(ask(fields)).toEqual({
      body: {
        ...common,
        messages: [{ role: "system", content: "Be kind." }, hello],
        max_tokens: 50,
      },
      lacks: [],
    });
    expect(ask(fields, OPENAI).body).toEqual({
      ...common,
      messages: [{ role: "developer", content: "Be kind." }, hello],
      max_completion_tokens: 50,
    });
  });

  test("items become messages: the calls of a turn in one, each result in another", () => {
    const { body, lacks } = ask({
      input: [
        {
          role: "developer",
          content: [
            { type: "input_text", text: "Short." },
            { type: "input_text", text: "Kind." },
          ],
        },
        {
          type: "message",
          role: "user",
          content: [
            { type: "input_text", text: "Look" },
            {
              type: "input_image",
              image_url: "https://x/y.png",
              detail: "low",
            },
            { type: "input_file", file_url: "https://x/y.pdf" },
          ],
        },
        { type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] },
        {
          type: "message",
          role: "assistant",
          content: [{ type: "output_text", text: "I look." }],
        },
        {
          type: "function_call",
          call_id: "call_1",
          name: "a",
          arguments: '{"x":1}',
        },
        {
          type: "function_call",
          call_id: "call_2",
          name: "a",
          arguments: "{}",
        },
        {
          type: "function_call_output",
          call_id: "call_2",
          output: [
            { type: "input_text", text: "two" },
            { type: "input_image", image_url: "data:image/png;base64,aGk=" },
            { type: "input_text", text: "three" },
          ],
        },
        { type: "function_call_output", call_id: "call_1", output: "one" },
        { type: "web_search_call", id: "ws_1" },
        {
          type: "message",
          role: "assistant",
          content: [{ type: "output_text", text: "Done." }],
        },
        { role: "user", content: "Thanks" },
      ],
    });
    const call = (id: string, written: string) => ({
      id,
      type: "function",
      function: { name: "a", arguments: written },
    });
    expect(body["messages"]).toEqual([
      { role: "system", content: "Short.\nKind." },
      {
        role: "user",
        content: [
          { type: "text", text: "Look" },
          {
            type: "image_url",
            image_url: { url: "https://x/y.png", detail: "low" },
          },
        ],
      },
      {
        role: "assistant",
        content: "I look.",
        reasoning_content: "hm",
        tool_calls: [call("call_1", '{"x":1}'), call("call_2", "{}")],
      },
      { role: "tool", tool_call_id: "call_2", content: "two\nthree" },
      { role: "tool", tool_call_id: "call_1", content: "one" },
      {
        role: "user",
        content: [
          {
            type: "image_url",
            image_url: { url: "data:image/png;base64,aGk=" },
          },
        ],
      },
      { role: "assistant", content: "Done." },
      { role: "user", content: "Thanks" },
    ]);
    expect(lacks).toEqual([
      "input[1].content[2]",
      "input[8] (web_search_call)",
    ]);
  });

  // The AI SDK sends the addresses of documents so.
  test.each([
    { provider: "anthropic", providerName: "anthropic" },
    { provider: "openai", providerName: "openrouter" },
  ] as const)("a file by its address is fetched by %j", (provider) => {
    const content = [{ type: "input_file", file_url: "https://x/y.pdf" }];
    const input = [{ role: "user", content }];
    const { body, lacks } = ask({ input }, testDeployment(provider));
    const file = { file_data: "https://x/y.pdf" };
    expect(body["messages"]).toEqual([
      { role: "user", content: [{ type: "file", file }] },
    ]);
    expect(lacks).toEqual([]);
  });

  test("images from tools follow the results of their turn, before the next one", () => {
    const call = (id: string) => ({
      type: "function_call",
      call_id: id,
      name: "a",
      arguments: "{}",
    });
    const result = (id: string, ...names: readonly string[]) => ({
      type: "function_call_output",
      call_id: id,
      output: names.map((name) => ({
        type: "input_image",
        image_url: `https://x/${name}.png`,
      })),
    });
    const { body } = ask({
      input: [
        call("1"),
        call("2"),
        result("1", "a"),
        result("2", "b", "c"),
        call("3"),
        result("3", "d"),
        { role: "user", content: "Now" },
        call("4"),
        result("4", "e"),
      ],
    });
    const shown = (body["messages"] as readonly Record<string, unknown>[]).map(
      ({ role, content }) => [
        role,
        ...(JSON.stringify(content).match(/\w(?=\.png)/g) ?? []),
      ],
    );
    expect(shown).toEqual([
      ["assistant"],
      ["tool"],
      ["tool"],
      ["user", "a", "b", "c"],
      ["assistant"],
      ["tool"],
      ["user", "d"],
      ["user"],
      ["assistant"],
      ["tool"],
      ["user", "e"],
    ]);
  });

  test("Gemini searches where a call has no functions", () => {
    const google = testDeployment({
      provider: "gemini",
      apiBase: "https://google.example/v1beta/openai",
    });
    const search = { type: "web_search", search_context_size: "low" };
    const alone = responsesShape.chatBody({ ...BODY, tools: [search] }, google);
    expect(alone.body["web_search_options"]).toEqual({
      search_context_size: "low",
    });
    const tools = [{ type: "function", name: "a" }, search];
    const { body, lacks } = responsesShape.chatBody({ ...BODY, tools }, google);
    expect(body["web_search_options"]).toBeUndefined();
    expect([alone.lacks, lacks]).toEqual([[], ["tools[1] (web_search)"]]);
  });

  test("functions and tool choice; other tools are named as unsupported", () => {
    const tool = {
      type: "function",
      name: "a",
      description: "d",
      parameters: { type: "object" },
      strict: true,
    };
    const { type: _type, ...inner } = tool;
    const request = ask({
      tools: [tool, { type: "web_search" }],
      tool_choice: { type: "function", name: "a" },
      parallel_tool_calls: false,
    });
    expect(request.body).toMatchObject({
      tools: [{ type: "function", function: inner }],
      tool_choice: { type: "function", function: { name: "a" } },
      parallel_tool_calls: false,
    });
    expect(request.lacks).toEqual(["tools[1] (web_search)"]);
    const allowed = ask({
      tools: [tool],
      tool_choice: {
        type: "allowed_tools",
        mode: "required",
        tools: [{ type: "function", name: "a" }],
      },
    });
    expect(allowed.body["tool_choice"]).toEqual({
      type: "allowed_tools",
      allowed_tools: {
        mode: "required",
        tools: [{ type: "function", function: { name: "a" } }],
      },
    });
  });

  test.each([
    [{ prompt: { id: "pmpt_1" } }, "prompt"],
    [{ input: 3 }, "input"],
    [{ input: null }, "input"],
  ])("%j is rejected by name, with an alternative", (fields, param) => {
    try {
      ask(fields);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(CallError);
      expect((error as CallError).details.param).toBe(param);
      expect((error as CallError).message).toContain(`\`${param}\``);
    }
  });

  test.each([
    [{ top_logprobs: 2 }, "top_logprobs"],
    [
      { include: ["message.output_text.logprobs"] },
      "include (message.output_text.logprobs)",
    ],
    [{ moderation: { model: "omni-moderation-latest" } }, "moderation"],
  ])("%j, which an answer of chat would lack, is named", (fields, name) => {
    expect(ask(fields).lacks).toEqual([name]);
  });

  test("a search of the web is the provider's where a chat can ask for it", () => {
    const claude = testDeployment({ provider: "anthropic" });
    const search = {
      type: "web_search",
      search_context_size: "low",
      user_location: { type: "approximate", city: "Paris" },
    };
    const { body, lacks } = ask({ tools: [search] }, claude);
    expect(body["web_search_options"]).toEqual({
      search_context_size: "low",
      user_location: { type: "approximate", approximate: { city: "Paris" } },
    });
    expect(body["tools"]).toBeUndefined();
    expect(lacks).toEqual([]);
    const filters = { allowed_domains: ["example.com"] };
    expect(ask({ tools: [{ ...search, filters }] }, claude).lacks).toEqual([
      "tools[0].filters",
    ]);
    expect(ask({ tools: [search] }).lacks).toEqual(["tools[0] (web_search)"]);
  });

  test("an object that cannot be converted to a number is not a number", () => {
    const request = { ...BODY, top_logprobs: { toString: false } };
    expect(() => responsesShape.chatBody(request, LOCAL)).not.toThrow(
      TypeError,
    );
  });

  test("any invalid body is rejected with the name of a field", () => {
    const item = fc.oneof(
      fc.anything(),
      fc.record(
        {
          type: fc.constantFrom(
            "message",
            "function_call",
            "function_call_output",
            "reasoning",
            "item_reference",
          ),
          role: fc.constantFrom("user", "assistant", "developer"),
          content: fc.oneof(fc.anything(), fc.array(fc.anything())),
          output: fc.anything(),
          summary: fc.anything(),
          arguments: fc.anything(),
          encrypted_content: fc.oneof(
            fc.anything(),
            fc.string().map((text) => `hearth:${text}`),
          ),
        },
        { requiredKeys: [] },
      ),
    );
    const body = fc.record(
      {
        model: fc.constant("m"),
        input: fc.oneof(fc.array(item), fc.anything()),
        tools: fc.anything(),
        tool_choice: fc.anything(),
        text: fc.anything(),
        reasoning: fc.anything(),
        top_logprobs: fc.jsonValue(),
      },
      { requiredKeys: ["model"] },
    );
    fc.assert(
      fc.property(body, (request) => {
        try {
          responsesShape.chatBody(request, LOCAL);
        } catch (error) {
          expect(error).toBeInstanceOf(CallError);
        }
      }),
      { numRuns: 300 },
    );
  });
});

test("the pages that a text quotes are its annotations, in a stream and in the whole", () => {
  const annotation = {
    type: "url_citation",
    start_index: 10,
    end_index: 22,
    title: "Weather",
    url: "https://example.com",
  };
  const pieces = passed(
    responsesShape.stream(BODY),
    chatPieces("anthropic", "server-tools"),
  );
  const added = pieces
    .map(({ data }) => JSON.parse(data) as Event)
    .filter(({ type }) => type === "response.output_text.annotation.added");
  expect(added).toMatchObject([{ annotation_index: 0, annotation }]);
  const whole = JSON.parse(
    responsesShape
      .answer(chatAnswerOf("anthropic", "server-tools"), BODY)
      .toString(),
  ) as Answer;
  const expected = [
    {
      type: "message",
      content: [{ text: "New York: It is sunny.", annotations: [annotation] }],
    },
  ];
  expect(whole.output).toMatchObject(expected);
  expect(finalResponse(pieces).output).toMatchObject(expected);
});

test("a stream whose prompt was too long says so in OpenAI's code", () => {
  const tooLong = new CallError("upstream_error", "m: prompt is too long", {
    status: 400,
  });
  const pieces = responsesShape.stream(BODY).fail(tooLong);
  expect(JSON.parse(pieces.at(-1)?.data ?? "")).toMatchObject({
    type: "response.failed",
    response: { error: { code: "context_length_exceeded" } },
  });
});

test("a failed stream ends with one response.failed event", () => {
  const stream = responsesShape.stream(BODY);
  const pieces = passed(stream, chatPieces("anthropic", "overloaded"));
  expect(pieces.at(-1)?.kind).toBe("error");
  expect(JSON.parse(pieces.at(-1)?.data ?? "")).toMatchObject({
    type: "response.failed",
    response: {
      status: "failed",
      error: { code: "server_error", message: "Overloaded (overloaded_error)" },
    },
  });
  expect(stream.push({ kind: "done", event: null, data: "[DONE]" })).toEqual(
    [],
  );
});
