import fc from "fast-check";
import { expect, test } from "vitest";
import { createAnthropicWire } from "./anthropic.ts";
import {
  cuts,
  eventsOf,
  fixture,
  messageOf,
  translated,
  withParsedArguments,
} from "./stream-fixture.ts";

const wire = createAnthropicWire(() => 1_700_000_000_000);
const RECORDINGS = ["text", "tools", "thinking", "server-tools", "refusal"];

interface Completion {
  readonly id: string;
  readonly model: string;
  readonly choices: readonly [
    {
      readonly message: Readonly<Record<string, unknown>>;
      readonly finish_reason: string;
    },
  ];
  readonly usage: unknown;
}

function whole(name: string) {
  const { body, facts } = wire.answer(
    "chat",
    fixture(`anthropic/${name}.json`),
  );
  return { facts, completion: JSON.parse(body.toString()) as Completion };
}

test("pages that the text quotes are annotations, as in an answer of OpenAI", () => {
  const [{ message }] = whole("server-tools").completion.choices;
  expect(message).toMatchObject({
    content: "New York: It is sunny.",
    annotations: [
      {
        type: "url_citation",
        url_citation: {
          start_index: 10,
          end_index: 22,
          title: "Weather",
          url: "https://example.com",
        },
      },
    ],
  });
});

test.each(RECORDINGS)(
  "%s: a stream, cut anywhere, equals the whole answer",
  (name) => {
    const bytes = fixture(`anthropic/${name}.sse`);
    const { completion, facts } = whole(name);
    const [choice] = completion.choices;
    const expected = {
      id: completion.id,
      model: completion.model,
      message: withParsedArguments(choice.message),
      finishReason: choice.finish_reason,
      usage: completion.usage,
    };
    fc.assert(
      fc.property(cuts, (places) => {
        const translator = wire.stream("chat");
        const pieces = translated(translator, eventsOf(bytes, places));
        const assembled = messageOf(pieces);
        expect({
          ...assembled,
          message: {
            role: "assistant",
            ...withParsedArguments(assembled.message),
          },
        }).toEqual(expected);
        expect(pieces.at(-1)).toEqual({
          kind: "done",
          event: null,
          data: "[DONE]",
        });
        expect(translator.facts().usage).toEqual(facts.usage);
        expect(translator.facts().responseId).toBe(facts.responseId);
      }),
      { numRuns: 50 },
    );
  },
);

test("parallel tool calls keep their own places, and one without arguments has an empty object", () => {
  const pieces = translated(
    wire.stream("chat"),
    eventsOf(fixture("anthropic/tools.sse")),
  );
  expect(messageOf(pieces).message["tool_calls"]).toEqual([
    {
      id: "toolu_01A",
      type: "function",
      function: {
        name: "get_weather",
        arguments: '{"city": "São Paulo", "unit":"celsius"}',
      },
    },
    {
      id: "toolu_01B",
      type: "function",
      function: { name: "get_weather", arguments: '{"city":"Zürich"}' },
    },
    {
      id: "toolu_01C",
      type: "function",
      function: { name: "now", arguments: "{}" },
    },
  ]);
});

test("prompt tokens include cache reads and writes", () => {
  const { completion, facts } = whole("thinking");
  expect(completion.usage).toEqual({
    prompt_tokens: 2_070,
    completion_tokens: 120,
    total_tokens: 2_190,
    prompt_tokens_details: {
      cached_tokens: 1_800,
      cache_write_tokens: 240,
      cache_creation_tokens: 240,
    },
    cache_read_input_tokens: 1_800,
    cache_creation_input_tokens: 240,
    completion_tokens_details: { reasoning_tokens: 70 },
  });
  expect(facts.usage).toMatchObject({
    inputTokens: 2_070,
    outputTokens: 120,
    cachedInputTokens: 1_800,
    cacheWriteTokens: 240,
    reasoningTokens: 70,
  });
});

test.each([
  ["zeros leave the input as it was", [9, 7], [0, 0], [16, 7]],
  ["other counts replace it", [9, 0], [0, 7], [7, 7]],
])(
  "at the end of a stream of a compatible server, %s",
  (_title, [input, read], [lastInput, lastRead], [inputTokens, cached]) => {
    const translator = wire.stream("messages");
    const counts = (input_tokens = 0, cache_read_input_tokens = 0) => ({
      input_tokens,
      cache_read_input_tokens,
    });
    const events = [
      { type: "message_start", message: { usage: counts(input, read) } },
      {
        type: "message_delta",
        delta: { stop_reason: "end_turn" },
        usage: { ...counts(lastInput, lastRead), output_tokens: 5 },
      },
    ];
    translated(
      translator,
      events.map((event) => ({
        event: event.type,
        data: JSON.stringify(event),
      })),
    );
    expect(translator.facts().usage).toMatchObject({
      inputTokens,
      cachedInputTokens: cached,
      outputTokens: 5,
    });
  },
);

test.each([
  ["all for an hour", [0, 100], 300],
  ["a part of it for an hour", [50, 50], 150],
  ["none for an hour", [100, 0], undefined],
])(
  "what tools of the server write to the cache is split as at the start of the stream: %s",
  (_title, [minutes, hour], expected) => {
    const translator = wire.stream("messages");
    const start = {
      input_tokens: 3,
      cache_creation_input_tokens: 100,
      cache_creation: {
        ephemeral_5m_input_tokens: minutes,
        ephemeral_1h_input_tokens: hour,
      },
    };
    const usage = {
      input_tokens: 5,
      cache_creation_input_tokens: 300,
      output_tokens: 7,
    };
    const events = [
      { type: "message_start", message: { usage: start } },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage },
    ];
    translated(
      translator,
      events.map((event) => ({
        event: event.type,
        data: JSON.stringify(event),
      })),
    );
    const reported = translator.facts().usage;
    expect(reported?.cacheWriteTokens).toBe(300);
    expect(reported?.cacheWrite1hTokens).toBe(expected);
  },
);

test.each([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["pause_turn", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool_calls"],
  ["refusal", "content_filter"],
  ["something_new", "stop"],
])("stop reason %s is finish reason %s", (stopReason, finishReason) => {
  const answer = { id: "m", model: "x", content: [], stop_reason: stopReason };
  const { body } = wire.answer("chat", Buffer.from(JSON.stringify(answer)));
  const completion = JSON.parse(body.toString()) as Completion;
  expect(completion.choices[0].finish_reason).toBe(finishReason);
});

test("an error in the middle of a stream is its last event", () => {
  const translator = wire.stream("chat");
  const pieces = translated(
    translator,
    eventsOf(fixture("anthropic/overloaded.sse")),
  );
  expect(pieces.at(-1)).toMatchObject({ kind: "done" });
  expect(pieces.at(-2)).toMatchObject({ kind: "error", event: null });
  expect(JSON.parse(pieces.at(-2)?.data ?? "")).toEqual({
    error: {
      message: "Overloaded (overloaded_error)",
      type: "upstream_error",
      param: null,
      code: "529",
    },
  });
  expect(messageOf(pieces).message["content"]).toBe("Hello");
});

test.each(["chat", "messages"] as const)(
  "a %s stream that breaks off ends with an error, and its input is reported",
  (endpoint) => {
    const text = fixture("anthropic/thinking.sse").toString();
    const half = Buffer.from(
      text.slice(0, text.indexOf("event: message_delta")),
    );
    const translator = wire.stream(endpoint);
    const pieces = translated(translator, eventsOf(half));
    const ending = endpoint === "chat" ? ["error", "done"] : ["error"];
    expect(pieces.slice(-ending.length).map(({ kind }) => kind)).toEqual(
      ending,
    );
    const facts = translator.facts();
    expect(facts.usage).toBeNull();
    expect(facts.inputUsage).toMatchObject({
      inputTokens: 2_070,
      outputTokens: 0,
      cachedInputTokens: 1_800,
    });
    expect(facts.text).toContain("12,231");
  },
);

test.each([...RECORDINGS, "overloaded"])(
  "%s passes unchanged to a client of the same shape",
  (name) => {
    const bytes = fixture(`anthropic/${name}.sse`);
    const events = eventsOf(bytes);
    const translator = wire.stream("messages");
    const pieces = translated(translator, events);
    expect(pieces.map(({ event, data }) => ({ event, data }))).toEqual(events);
    expect(pieces.at(-1)?.kind).toBe(name === "overloaded" ? "error" : "done");
    if (name === "overloaded") {
      return;
    }
    const answer = fixture(`anthropic/${name}.json`);
    const { body, facts } = wire.answer("messages", answer);
    expect(body).toBe(answer);
    expect(translator.facts().usage).toEqual(facts.usage);
    expect(facts.usage).toEqual(whole(name).facts.usage);
  },
);

test("any event is handled without an exception", () => {
  const type = fc.constantFrom(
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "error",
    "ping",
    "new_event",
  );
  const inner = fc.record(
    {
      type: fc.constantFrom(
        "text",
        "tool_use",
        "thinking",
        "text_delta",
        "input_json_delta",
        "signature_delta",
        "new_block",
      ),
      text: fc.anything(),
      partial_json: fc.anything(),
      thinking: fc.anything(),
      usage: fc.anything(),
      stop_reason: fc.anything(),
    },
    { requiredKeys: [] },
  );
  const event = fc.record(
    {
      type,
      index: fc.oneof(fc.nat(3), fc.anything()),
      message: fc.oneof(inner, fc.anything()),
      content_block: fc.oneof(inner, fc.anything()),
      delta: fc.oneof(inner, fc.anything()),
      usage: fc.anything(),
      error: fc.anything(),
    },
    { requiredKeys: ["type"] },
  );
  const text = (value: unknown): string => {
    try {
      return JSON.stringify(value) ?? "null";
    } catch {
      return "{";
    }
  };
  fc.assert(
    fc.property(
      fc.array(fc.oneof(event.map(text), fc.json(), fc.string())),
      (events) => {
        for (const endpoint of ["chat", "messages"] as const) {
          const pieces = translated(
            wire.stream(endpoint),
            events.map((data) => ({ event: null, data })),
          );
          if (endpoint === "chat") {
            messageOf(pieces);
          }
        }
        for (const data of events) {
          wire.answer("chat", Buffer.from(data));
        }
      },
    ),
  );
});

test.each([
  [
    '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    "Overloaded (overloaded_error)",
  ],
  [
    '{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: too large"}}',
    "max_tokens: too large",
  ],
  ["<html>Bad gateway</html>", "<html>Bad gateway</html>"],
  ["", "The provider answered 502 without a message."],
])("the error %s reads: %s", (text, sentence) => {
  expect(wire.error(502, text)).toBe(sentence);
});
