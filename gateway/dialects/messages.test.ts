import Anthropic from "@anthropic-ai/sdk";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { recordOf, recordsOf, textOf } from "../../core/json.ts";
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
import { messagesShape } from "./messages.ts";
import { responsesShape } from "./responses.ts";

const BODY = { model: "alias", max_tokens: 100, messages: [] };

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

test("a stream starts with the estimated input, and ends with the reported one", () => {
  const usage = { prompt_tokens: 19, completion_tokens: 13 };
  const choices = [{ index: 0, delta: { content: "Hi" } }];
  const data = [{ choices }, { choices: [], usage }].map((chunk) =>
    JSON.stringify(chunk),
  );
  const events = passed(messagesShape.stream(BODY, undefined, 17), [
    ...data.map((chunk) => ({
      kind: "pass" as const,
      event: null,
      data: chunk,
    })),
    { kind: "done", event: null, data: "[DONE]" },
  ]).map((piece) => JSON.parse(piece.data) as Event & { usage?: unknown });
  expect(events.flatMap(({ message }) => message?.usage ?? [])).toEqual([
    expect.objectContaining({ input_tokens: 17, output_tokens: 0 }),
  ]);
  expect(events.flatMap(({ usage: reported }) => reported ?? [])).toEqual([
    expect.objectContaining({ input_tokens: 19, output_tokens: 13 }),
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

test("a tool's name that is too long for chat is shortened there, and comes back as the client gave it", () => {
  const name = `mcp__plugin_${"x".repeat(80)}__search`;
  const other = `mcp__plugin_${"x".repeat(80)}__fetch`;
  const body = {
    ...BODY,
    tools: [{ name, input_schema: { type: "object" } }],
    tool_choice: { type: "tool", name },
    messages: [
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: [{ type: "tool_use", id: "t1", name, input: {} }],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "t1", content: "ok" }],
      },
      {
        role: "system",
        content: [
          {
            type: "tool_addition",
            tool: {
              type: "tool_definition",
              definition: { name: other, input_schema: { type: "object" } },
            },
          },
        ],
      },
    ],
  };
  const { body: chat } = messagesShape.chatBody(body, testDeployment({}));
  const [short = "", shortOther] = recordsOf(chat["tools"]).map((tool) =>
    textOf(recordOf(tool["function"])["name"]),
  );
  expect(short).toMatch(/^mcp__plugin_x+_[0-9a-f]{8}$/);
  expect(short).toHaveLength(64);
  expect(shortOther).not.toBe(short);
  expect(chat["tool_choice"]).toMatchObject({ function: { name: short } });
  expect(recordsOf(chat["messages"])[1]).toMatchObject({
    tool_calls: [{ function: { name: short } }],
  });
  const calls = [short, shortOther].map((called, index) => ({
    index,
    id: `c${index}`,
    type: "function",
    function: { name: called, arguments: "{}" },
  }));
  const answered = {
    id: "1",
    model: "m",
    created: 1,
    choices: [{ index: 0, message: { tool_calls: calls } }],
  };
  const expected = [
    { type: "tool_use", name },
    { type: "tool_use", name: other },
  ];
  const whole = messagesShape.answer(
    Buffer.from(JSON.stringify(answered)),
    body,
  );
  expect(JSON.parse(whole.toString())).toMatchObject({ content: expected });
  const stream = messagesShape.stream(body);
  const pieces = [
    ...stream.push({
      kind: "pass",
      event: null,
      data: JSON.stringify({
        ...answered,
        choices: [{ index: 0, delta: { tool_calls: calls } }],
      }),
    }),
    ...stream.push({ kind: "done", event: null, data: "[DONE]" }),
  ];
  expect(assemble(pieces).content).toMatchObject(expected);
});
