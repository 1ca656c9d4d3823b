import fc from "fast-check";
import { expect, test } from "vitest";
import { listOf, parseRecord, recordsOf } from "../../core/json.ts";
import { readChatAnswer } from "../dialects/chat-answer.ts";
import { signedMessages } from "./anthropic-signed.ts";
import { wireOf } from "./families.ts";
import {
  cuts,
  eventsOf,
  fixture,
  messageOf,
  testDeployment,
  translated,
} from "./stream-fixture.ts";
import type { Endpoint } from "./wire.ts";

const gemini = wireOf("gemini");
const azure = wireOf("azure");
const openai = wireOf("openai");
const HELLO = [{ role: "user", content: "Hello" }];

test.each(["text", "tools"])(
  "Gemini's %s: a stream, cut anywhere, equals the whole answer",
  (name) => {
    const answer = gemini.answer("chat", fixture(`gemini/${name}.json`));
    const whole = JSON.parse(answer.body.toString()) as {
      id: string;
      model: string;
      choices: [{ message: Record<string, unknown>; finish_reason: string }];
      usage: unknown;
    };
    fc.assert(
      fc.property(cuts, (places) => {
        const translator = gemini.stream("chat");
        const pieces = translated(
          translator,
          eventsOf(fixture(`gemini/${name}.sse`), places),
        );
        const { message, ...rest } = messageOf(pieces);
        expect({ role: "assistant", ...message }).toEqual(
          whole.choices[0].message,
        );
        expect(rest).toEqual({
          id: whole.id,
          model: whole.model,
          finishReason: whole.choices[0].finish_reason,
          usage: whole.usage,
        });
        expect(translator.facts().usage).toEqual(answer.facts.usage);
      }),
      { numRuns: 50 },
    );
  },
);

test("an answer that Gemini filters ends as OpenAI's do, with a message", () => {
  const finish_reason = "content_filter: PROHIBITED_CONTENT";
  const answer = { id: "1", choices: [{ index: 0, finish_reason }] };
  const text = JSON.stringify(answer);
  const whole = gemini.answer("chat", Buffer.from(text)).body.toString();
  expect(JSON.parse(whole)).toMatchObject({
    choices: [
      {
        message: { role: "assistant", content: null },
        finish_reason: "content_filter",
      },
    ],
  });
  const [piece] = gemini.stream("chat").push({ event: null, data: text });
  expect(JSON.parse(piece?.data ?? "")).toMatchObject({
    choices: [{ delta: {}, finish_reason: "content_filter" }],
  });
});

test("each chunk of Gemini has a finish reason, null until the last", () => {
  const reasons = translated(
    gemini.stream("chat"),
    eventsOf(fixture("gemini/text.sse")),
  )
    .map(({ data }) => parseRecord(data)?.["choices"])
    .flatMap(recordsOf)
    .map((choice) => choice["finish_reason"]);
  expect(reasons.slice(0, -1).every((reason) => reason === null)).toBe(true);
  expect(reasons.at(-1)).toBe("stop");
});

test("Gemini's thinking is billed as output, and tool calls have an index and a finish reason", () => {
  const translator = gemini.stream("chat");
  const assembled = messageOf(
    translated(translator, eventsOf(fixture("gemini/tools.sse"))),
  );
  expect(assembled.finishReason).toBe("tool_calls");
  expect(assembled.message["tool_calls"]).toHaveLength(2);
  expect(translator.facts().usage).toMatchObject({
    inputTokens: 58,
    outputTokens: 75,
    reasoningTokens: 57,
  });
});

test("a thought signature of Gemini comes back by the thinking of other APIs, and is for Gemini alone", () => {
  const bytes = fixture("gemini/tools.json");
  const answers = [
    readChatAnswer(gemini.answer("chat", bytes).body.toString()),
    readChatAnswer(
      JSON.stringify({
        choices: [
          messageOf(
            translated(
              gemini.stream("chat"),
              eventsOf(fixture("gemini/tools.sse")),
            ),
          ),
        ],
      }),
    ),
  ];
  const signature = "CuwBAb4+9vsMc2ln";
  for (const answer of answers) {
    const blocks = answer?.thinkingBlocks;
    expect(blocks).toMatchObject([{ type: "redacted_thinking" }]);
    const message = {
      role: "assistant",
      thinking_blocks: blocks,
      tool_calls: [{ id: "a", type: "function", function: { name: "f" } }],
    };
    const body = { model: "alias", messages: [...HELLO, message] };
    const to = testDeployment({ provider: "gemini", model: "gemini-3-pro" });
    const sent = gemini.request("chat", body, to, false)["messages"];
    expect(listOf(sent).at(-1)).toEqual({
      role: "assistant",
      tool_calls: [
        {
          ...message.tool_calls[0],
          extra_content: { google: { thought_signature: signature } },
        },
      ],
    });
    expect(signedMessages([{ role: "assistant", content: blocks }])).toEqual(
      [],
    );
  }
});

test("a search that Gemini's endpoint does not have is named, or left out", () => {
  const tool = { type: "function", function: { name: "f" } };
  const to = testDeployment({ provider: "gemini" });
  const lacks = (fields: object) =>
    gemini.unsupported("chat", { model: "alias", ...fields }, to);
  const sent = (fields: object) =>
    gemini.request("chat", { model: "alias", ...fields }, to, false);
  expect(lacks({ web_search_options: {} })).toEqual(["web_search_options"]);
  const search = { googleSearch: {} };
  expect(lacks({ tools: [tool, search] })).toEqual(["tools[1] (googleSearch)"]);
  expect(lacks({ tools: [{ type: "web_search" }] })).toEqual([
    "tools[0] (web_search)",
  ]);
  expect(sent({ tools: [tool, search] })["tools"]).toEqual([tool]);
  const alone = sent({ tools: [search], tool_choice: "auto" });
  expect(alone).not.toHaveProperty("tools");
  expect(alone).not.toHaveProperty("tool_choice");
});

test("Gemini is not asked for one call at a time; with one tool, as structured answers have it, that is no reason to reject", () => {
  const tool = (name: string) => ({ type: "function", function: { name } });
  const lacksWith = (tools: readonly object[], parallel = false) =>
    gemini.unsupported(
      "chat",
      { model: "alias", tools, parallel_tool_calls: parallel },
      testDeployment({ provider: "gemini" }),
    );
  const several = [tool("a"), tool("b")];
  expect(lacksWith(several)).toEqual(["parallel_tool_calls"]);
  expect(lacksWith(several, true)).toEqual([]);
  expect(lacksWith([tool("a")])).toEqual([]);
});

test("Gemini gets the schemas of tools without their dialect", () => {
  const $schema = "http://json-schema.org/draft-07/schema#";
  const properties = { $id: { type: "string" } };
  const tool = (parameters: object) => ({
    type: "function",
    function: { name: "f", parameters },
  });
  const sent = gemini.request(
    "chat",
    {
      model: "alias",
      messages: HELLO,
      tools: [tool({ $schema, $id: "f", type: "object", properties })],
    },
    testDeployment({ provider: "gemini", model: "gemini-3.8-flash" }),
    false,
  );
  expect(sent["tools"]).toEqual([tool({ type: "object", properties })]);
});

test("Gemini gets a placeholder for lost signatures, and no fields that it rejects", () => {
  const call = (more: object) => ({
    role: "assistant",
    tool_calls: [
      { id: "a", type: "function", function: {}, ...more },
      { id: "b", type: "function", function: {} },
    ],
  });
  const kept = { extra_content: { google: { thought_signature: "own" } } };
  const body = {
    model: "alias",
    messages: [...HELLO, call({}), call(kept)],
    logit_bias: { "1": 2 },
    logprobs: false,
    store: true,
    prompt_cache_options: { mode: "explicit" },
    audio: { voice: "alloy", format: "wav" },
    moderation: { model: "omni-moderation-latest" },
    user: "u",
    seed: 3,
    parallel_tool_calls: false,
    extra_body: { google: { thinking_config: { include_thoughts: true } } },
  };
  const to = testDeployment({ provider: "gemini", model: "gemini-3.8-flash" });
  expect(gemini.unsupported("chat", body, to)).toEqual([
    "logit_bias",
    "audio",
    "moderation",
    "parallel_tool_calls",
  ]);
  const sent = gemini.request("chat", body, to, true);
  expect(Object.keys(sent).sort()).toEqual([
    "extra_body",
    "messages",
    "model",
    "seed",
    "stream_options",
  ]);
  expect(sent["messages"]).toEqual([
    ...HELLO,
    call({
      extra_content: {
        google: { thought_signature: "skip_thought_signature_validator" },
      },
    }),
    call(kept),
  ]);
  const older = testDeployment({ provider: "gemini", model: "gemini-2.5-pro" });
  expect(gemini.request("chat", body, older, true)["messages"]).toBe(
    body.messages,
  );
});

test.each(["gemini-3.8-flash", "gemini-2.5-pro"])(
  "%s gets no fields of other formats from the history",
  (model) => {
    const said = { role: "assistant", content: "Hi" };
    const foreign = {
      ...said,
      reasoning_content: "hm",
      thinking_blocks: [{ type: "thinking", thinking: "hm", signature: "s" }],
      provider_blocks: [{ type: "server_tool_use" }],
    };
    const body = { model: "alias", messages: [...HELLO, foreign] };
    const to = testDeployment({ provider: "gemini", model });
    expect(gemini.request("chat", body, to, false)["messages"]).toEqual([
      ...HELLO,
      said,
    ]);
  },
);

test("Gemini's errors are wrapped in lists, also in a stream", () => {
  const text = '[{"error":{"code":400,"message":"Unknown name \\"x\\""}}]';
  expect(gemini.error(400, text)).toBe('Unknown name "x"');
  const [piece] = gemini.stream("chat").push({ event: null, data: text });
  expect(piece).toMatchObject({ kind: "error" });
  expect(JSON.parse(piece?.data ?? "")).toMatchObject({
    error: { code: 400 },
  });
});

test.each<[string, string | null, Endpoint, string]>([
  [
    "https://r.openai.azure.com",
    "2024-10-21",
    "chat",
    "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
  ],
  [
    "https://r.openai.azure.com",
    null,
    "embeddings",
    "/openai/deployments/my%20gpt/embeddings?api-version=2024-10-21",
  ],
  [
    "https://r.openai.azure.com/openai",
    "2025-01-01-preview",
    "images",
    "/deployments/my%20gpt/images/generations?api-version=2025-01-01-preview",
  ],
  [
    "https://r.openai.azure.com/openai/deployments/one",
    "2024-10-21",
    "chat",
    "/chat/completions?api-version=2024-10-21",
  ],
  [
    "https://r.openai.azure.com",
    "2025-04-01-preview",
    "responses",
    "/openai/responses?api-version=2025-04-01-preview",
  ],
  [
    "https://r.openai.azure.com/openai/v1",
    "2024-10-21",
    "chat",
    "/chat/completions",
  ],
])(
  "Azure's address at %s (%s) for %s",
  (apiBase, apiVersion, endpoint, path) => {
    const to = testDeployment({
      provider: "azure",
      model: "my gpt",
      apiBase,
      apiVersion,
    });
    expect(azure.path(endpoint, to)).toBe(path);
    expect(azure.speaks(endpoint, to)).toBe(true);
    expect(azure.headers(to, {})).toEqual({ "api-key": "provider-key" });
  },
);

test("Azure's dated versions before responses do not have them", () => {
  const to = testDeployment({
    provider: "azure",
    apiVersion: "2024-10-21",
    providerName: "azure",
  });
  expect(azure.speaks("responses", to)).toBe(false);
  expect(azure.speaks("moderations", to)).toBe(false);
});

test.each(["azure/text.sse", "gemini/text.sse"])(
  "%s passes through the OpenAI format untouched",
  (path) => {
    const events = eventsOf(fixture(path));
    const translator = openai.stream("chat");
    const pieces = translated(translator, events);
    expect(pieces.map(({ event, data }) => ({ event, data }))).toEqual(events);
    expect(translator.facts().usage?.inputTokens).toBeGreaterThan(0);
  },
);

test("only a usage chunk that was not requested can be omitted", () => {
  const kinds = translated(
    azure.stream("chat"),
    eventsOf(fixture("azure/text.sse")),
  ).map(({ kind }) => kind);
  expect(kinds).toEqual(["pass", "pass", "pass", "pass", "usage_only", "done"]);
});

test.each([
  { reasoning: "hm" },
  { reasoning_content: "hm" },
  { reasoning: "hm", reasoning_content: "hm" },
])(
  "what is read of a stream that breaks off has its reasoning once: %j",
  (delta) => {
    const translator = openai.stream("chat");
    const data = JSON.stringify({ choices: [{ index: 0, delta }] });
    translator.push({ event: null, data });
    expect(translator.facts()).toMatchObject({ usage: null, text: "hm" });
  },
);

test("what is read of a tool call without usage is what the model has written, in a stream as in a whole answer", () => {
  const call = (index: number, called: object) => ({ index, ...called });
  const named = { id: "call_1", type: "function" };
  const written = [
    call(0, { ...named, function: { name: "find", arguments: "" } }),
    call(0, { function: { arguments: '{"city":' } }),
    call(0, { function: { arguments: ' "Oslo"}' } }),
    call(1, { ...named, type: "custom", custom: { name: "run", input: "ls" } }),
  ];
  const translator = openai.stream("chat");
  for (const one of written) {
    const choices = [{ index: 0, delta: { tool_calls: [one] } }];
    translator.push({ event: null, data: JSON.stringify({ choices }) });
  }
  const text = 'find{"city": "Oslo"}runls';
  expect(translator.facts()).toMatchObject({ usage: null, text });
  const message = {
    tool_calls: [
      {
        ...named,
        function: { name: "find", arguments: '{"city": "Oslo"}' },
      },
      written[3],
    ],
  };
  const answer = Buffer.from(JSON.stringify({ choices: [{ message }] }));
  expect(openai.answer("chat", answer).facts).toMatchObject({ text });
});

test.each([
  [null, "error"],
  ["", "error"],
  ["stop", "done"],
])(
  "a stream that ends in order after the finish reason %j is complete only if that is one",
  (finish_reason, last) => {
    const translator = openai.stream("chat");
    const choices = [{ index: 0, delta: { content: "a" }, finish_reason }];
    translator.push({ event: null, data: JSON.stringify({ choices }) });
    const [end] = translator.end();
    expect(end?.kind).toBe(last);
    expect(translator.facts().endAnnounced).toBe(last === "done");
  },
);

test("a whole answer of OpenAI's shape passes as the same bytes", () => {
  const bytes = Buffer.from('{ "id":"x",  "choices":[]}');
  expect(openai.answer("chat", bytes).body).toBe(bytes);
  expect(azure.answer("chat", bytes).body).toBe(bytes);
  expect(gemini.answer("chat", bytes).body).toBe(bytes);
});

test("what a response wrote for its tools is text, to be counted where no usage is reported", () => {
  const output = [
    { type: "message", content: [{ type: "output_text", text: "I patch." }] },
    { type: "function_call", arguments: "{}" },
    { type: "custom_tool_call", input: "*** Begin Patch" },
  ];
  const answer = Buffer.from(JSON.stringify({ output }));
  expect(openai.answer("responses", answer).facts.text).toBe(
    "I patch.{}*** Begin Patch",
  );
});

test("responses pass event by event, and their usage is read", () => {
  const events = [
    { type: "response.created", response: { id: "resp_1" } },
    { type: "response.output_text.delta", delta: "Hi" },
    {
      type: "response.completed",
      response: { id: "resp_1", usage: { input_tokens: 3, output_tokens: 4 } },
    },
  ].map((event) => ({ event: event.type, data: JSON.stringify(event) }));
  const translator = openai.stream("responses");
  const pieces = translated(translator, events);
  expect(pieces.map(({ kind }) => kind)).toEqual(["pass", "pass", "done"]);
  expect(translator.facts()).toMatchObject({
    responseId: "resp_1",
    text: "Hi",
    usage: { inputTokens: 3, outputTokens: 4 },
  });
  const cut = translated(openai.stream("responses"), events.slice(0, 2));
  expect(cut.at(-1)?.kind).toBe("error");
});

test("the searches of a response that breaks off are read", () => {
  const stream = openai.stream("responses");
  const search = { type: "web_search_call", action: { type: "search" } };
  for (const item of [search, search, { type: "file_search_call" }]) {
    const event = { type: "response.output_item.done", item };
    stream.push({ event: event.type, data: JSON.stringify(event) });
  }
  expect(stream.facts()).toMatchObject({
    usage: null,
    pieces: { webSearches: 2, fileSearches: 1 },
  });
});

test("any chunk is handled without an exception", () => {
  const chunk = fc.record(
    {
      choices: fc.oneof(
        fc.anything(),
        fc.array(
          fc.record(
            {
              index: fc.anything(),
              finish_reason: fc.constantFrom("stop", null),
              delta: fc.record({
                tool_calls: fc.oneof(fc.array(fc.anything()), fc.anything()),
              }),
              message: fc.anything(),
            },
            { requiredKeys: [] },
          ),
        ),
      ),
      usage: fc.anything(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(chunk, fc.anything()), (value) => {
      let data: string | undefined;
      try {
        data = JSON.stringify(value);
      } catch {
        return;
      }
      if (data === undefined) {
        return;
      }
      gemini.stream("chat").push({ event: null, data });
      gemini.answer("chat", Buffer.from(data));
      openai.stream("chat").push({ event: null, data });
      openai.answer("responses", Buffer.from(data));
      openai.stream("responses").push({ event: null, data });
      gemini.error(400, data);
    }),
  );
});
