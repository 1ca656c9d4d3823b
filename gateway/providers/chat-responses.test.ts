import fc from "fast-check";
import { expect, test } from "vitest";
import { PROVIDERS } from "../config/providers.ts";
import { readChatAnswer } from "../dialects/chat-answer.ts";
import {
  anyChatStream,
  chatAnswerOf,
  chatPieces,
  passed,
  RECORDINGS,
} from "../dialects/chat-stream-fixture.ts";
import { responsesShape } from "../dialects/responses.ts";
import { anthropicWire } from "./anthropic.ts";
import { signedMessages } from "./anthropic-signed.ts";
import {
  parseRecord,
  recordOf,
  recordsOf,
  type JsonRecord,
} from "../../core/json.ts";
import { chatByResponses, goesByResponses } from "./chat-responses.ts";
import { openaiWire } from "./openai-wire.ts";
import { messageOf, testDeployment, translated } from "./stream-fixture.ts";
import type { StreamPiece } from "./wire.ts";

const BODY = { model: "alias", messages: [] };
const TOOL = { name: "weather", parameters: { type: "object" } };
const TOOLS = [{ type: "function", function: TOOL }];
const OPENAI = { apiBase: PROVIDERS["openai"]?.apiBase ?? "" };
const DEPLOYMENT = testDeployment({ ...OPENAI, model: "gpt-5.6" });
const OTHER = testDeployment({ ...OPENAI, id: "d2", model: "gpt-5.6" });
const WIRE = chatByResponses(openaiWire, DEPLOYMENT);

test.each([
  ["gpt-5.4", { tools: TOOLS }, true],
  ["gpt-5.6-terra", { tools: TOOLS, reasoning_effort: "high" }, true],
  ["gpt-6", { tools: TOOLS }, true],
  ["gpt-5.6", { tools: TOOLS, reasoning_effort: "none" }, false],
  ["gpt-5.6", { tools: [] }, false],
  ["gpt-5.6", { tools: [{ type: "custom", custom: TOOL }] }, false],
  ["gpt-5.6-chat-latest", { tools: TOOLS }, false],
  ["gpt-5-mini", { tools: TOOLS, reasoning_effort: "high" }, false],
  ["gpt-4.1", { tools: TOOLS }, false],
  ["gpt-5-codex", {}, true],
  ["o3-pro", {}, true],
  ["gpt-5-mini", { web_search_options: {} }, true],
  ["gpt-4.1", { tools: [{ type: "web_search" }] }, true],
  ["gpt-4o-search-preview", { web_search_options: {} }, false],
])("a chat with %s and %j: by its Responses API is %s", (model, fields, is) => {
  const body = { ...BODY, ...fields };
  const goes = (of: object) =>
    goesByResponses(openaiWire, body, testDeployment({ model, ...of }));
  expect(goes(OPENAI)).toBe(is);
  // Another server under the same name of a model may have nothing but chat.
  expect(goes({})).toBe(false);
  expect(goes({ mode: "responses" })).toBe(true);
});

test.each([
  ["gpt-5.3-codex", OPENAI, ["commentary", "final_answer"]],
  ["gpt-5.12", OPENAI, ["commentary", "final_answer"]],
  ["gpt-6", OPENAI, ["commentary", "final_answer"]],
  ["gpt-5-codex", OPENAI, [undefined, undefined]],
  ["o3-pro", OPENAI, [undefined, undefined]],
  ["gpt-5.6", {}, [undefined, undefined]],
])("what %s said is labelled as it needs it back", (model, of, phases) => {
  const called = { name: "weather", arguments: "{}" };
  const messages = [
    {
      role: "assistant",
      content: "I look.",
      tool_calls: [{ id: "call_1", type: "function", function: called }],
    },
    { role: "tool", tool_call_id: "call_1", content: "sunny" },
    { role: "assistant", content: "It is sunny." },
  ];
  const deployment = testDeployment({ ...of, model });
  const { input } = WIRE.request(
    "chat",
    { ...BODY, messages },
    deployment,
    false,
  );
  const said = recordsOf(input).filter(({ type }) => type === "message");
  expect(said.map(({ phase }) => phase)).toEqual(phases);
});

test("a summary of the reasoning, as LiteLLM asks for it, is one of the Responses API", () => {
  const of = (reasoning_effort: unknown) => ({ ...BODY, reasoning_effort });
  const deployment = testDeployment({ ...OPENAI, model: "gpt-5-mini" });
  const asked = of({ effort: "xhigh", summary: "auto" });
  const spoken = openaiWire;
  expect(goesByResponses(spoken, asked, deployment)).toBe(true);
  expect(goesByResponses(spoken, of("high"), deployment)).toBe(false);
  expect(WIRE.request("chat", asked, deployment, false)["reasoning"]).toEqual({
    effort: "high",
    summary: "auto",
  });
});

test("the request, with the deployment's defaults", () => {
  const deployment = testDeployment({
    model: "gpt-5.6",
    defaults: { max_tokens: 7, reasoning_effort: "low" },
  });
  const body = {
    ...BODY,
    messages: [
      { role: "system", content: "Be kind." },
      {
        role: "user",
        content: [
          { type: "text", text: "Look" },
          { type: "image_url", image_url: { url: "https://x", detail: "low" } },
          { type: "image_url", image_url: "https://y" },
          { type: "file", file: { file_data: "data:", filename: "a.pdf" } },
        ],
      },
      {
        role: "assistant",
        content: "I look.",
        reasoning_content: "hm",
        tool_calls: [
          {
            id: "call_1",
            type: "function",
            function: { name: "weather", arguments: "{}" },
          },
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: "sunny" },
    ],
    tools: TOOLS,
    tool_choice: { type: "function", function: { name: "weather" } },
    response_format: {
      type: "json_schema",
      json_schema: { name: "a", schema: {}, strict: true },
    },
    verbosity: "low",
    prompt_cache_options: { mode: "explicit" },
    parallel_tool_calls: false,
    metadata: { a: "b" },
    stream: true,
    stream_options: { include_usage: true },
  };
  expect(WIRE.request("chat", body, deployment, true)).toEqual({
    model: "gpt-5.6",
    max_output_tokens: 16,
    tools: [{ type: "function", strict: false, ...TOOL }],
    tool_choice: { type: "function", name: "weather" },
    prompt_cache_options: { mode: "explicit" },
    parallel_tool_calls: false,
    reasoning: { effort: "low" },
    text: {
      format: { type: "json_schema", name: "a", schema: {}, strict: true },
      verbosity: "low",
    },
    input: [
      { type: "message", role: "system", content: "Be kind." },
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "Look" },
          { type: "input_image", image_url: "https://x", detail: "low" },
          { type: "input_image", image_url: "https://y" },
          { type: "input_file", file_data: "data:", filename: "a.pdf" },
        ],
      },
      {
        type: "message",
        role: "assistant",
        content: [{ type: "output_text", text: "I look." }],
      },
      {
        type: "function_call",
        call_id: "call_1",
        name: "weather",
        arguments: "{}",
      },
      { type: "function_call_output", call_id: "call_1", output: "sunny" },
    ],
    stream: true,
    store: false,
  });
  const lacks = WIRE.unsupported(
    "chat",
    {
      ...BODY,
      stop: ["a"],
      n: 1,
      logprobs: false,
      logit_bias: {},
      functions: [],
      presence_penalty: 0.5,
      moderation: { model: "omni-moderation-latest" },
    },
    deployment,
  );
  expect(lacks).toEqual(["stop", "presence_penalty", "moderation"]);
});

test("a search is a tool of the Responses API, and what it quotes is in the answer", () => {
  const approximate = { country: "DE", city: "Kiel" };
  const asked = {
    ...BODY,
    tools: TOOLS,
    web_search_options: {
      search_context_size: "low",
      user_location: { type: "approximate", approximate },
    },
  };
  expect(WIRE.request("chat", asked, DEPLOYMENT, false)["tools"]).toEqual([
    { type: "function", strict: false, ...TOOL },
    {
      type: "web_search",
      search_context_size: "low",
      user_location: { type: "approximate", ...approximate },
    },
  ]);
  const tool = { type: "web_search", search_context_size: "high" };
  expect(
    WIRE.request("chat", { ...BODY, tools: [tool] }, DEPLOYMENT, false)[
      "tools"
    ],
  ).toEqual([tool]);
  const lacks = (web_search_options: unknown) =>
    WIRE.unsupported("chat", { ...BODY, web_search_options }, DEPLOYMENT);
  expect([lacks({}), lacks(true)]).toEqual([[], ["web_search_options"]]);

  const page = { title: "Weather", url: "https://weather.example" };
  const quoted = {
    type: "url_citation",
    start_index: 0,
    end_index: 3,
    ...page,
  };
  const said = (text: string, ...annotations: readonly object[]) => ({
    type: "message",
    content: [{ type: "output_text", text, annotations }],
  });
  const output = [
    { type: "web_search_call", action: { type: "search" } },
    said("I look. "),
    said("Sun", quoted, { type: "file_citation" }),
  ];
  const { whole, stream } = messagesOf(output);
  expect(whole).toMatchObject({
    content: "I look. Sun",
    annotations: [
      {
        type: "url_citation",
        url_citation: { start_index: 8, end_index: 11, ...page },
      },
    ],
  });
  expect(stream.message["annotations"]).toEqual(whole["annotations"]);
});

/** The answer of a chat as the Responses API gives it, and back. */
function wholeOf(chat: Buffer) {
  const response = responsesShape.answer(chat, BODY);
  const { body, facts } = WIRE.answer("chat", response);
  return { answer: readChatAnswer(body.toString()), facts };
}

function streamOf(chat: readonly StreamPiece[]) {
  const stream = WIRE.stream("chat");
  const pieces = translated(stream, passed(responsesShape.stream(BODY), chat));
  const { message, finishReason, usage } = messageOf(pieces);
  const choices = [{ message, finish_reason: finishReason }];
  const answer = readChatAnswer(JSON.stringify({ choices, usage }));
  return { pieces, answer, facts: stream.facts() };
}

test.each(RECORDINGS)(
  "%s %s: the stream and the whole have the content of the chat",
  (provider, name) => {
    const chat = chatAnswerOf(provider, name);
    const expected = readChatAnswer(chat.toString());
    const content = {
      text: expected?.text,
      refusal: expected?.refusal,
      reasoning: expected?.reasoning,
      toolCalls: expected?.toolCalls.map(({ name }) => ({ name })),
      finishReason: expected?.finishReason,
      usage: expected?.usage,
    };
    const whole = wholeOf(chat);
    expect(whole.answer).toMatchObject(content);
    expect(whole.answer?.toolCalls).toEqual(expected?.toolCalls);
    const { pieces, answer, facts } = streamOf(chatPieces(provider, name));
    expect(answer).toMatchObject(content);
    expect(facts.usage).toEqual(whole.facts.usage);
    const kinds = pieces.map(({ kind }) => kind);
    expect(kinds.slice(-2)).toEqual(["usage_only", "done"]);
  },
);

test("any stream equals its whole answer, however its tool calls interleave", () => {
  fc.assert(
    fc.property(anyChatStream, ({ pieces, answer }) => {
      const whole = wholeOf(answer).answer;
      const streamed = streamOf(pieces).answer;
      expect(streamed?.text).toBe(whole?.text);
      expect(streamed?.reasoning).toBe(whole?.reasoning);
      expect(streamed?.toolCalls).toEqual(whole?.toolCalls);
    }),
  );
});

test("a failed stream, and one that is cut, end with an error of chat", () => {
  const events = (data: object) => [
    { event: null, data: JSON.stringify(data) },
  ];
  const response = { error: { code: "rate_limit_exceeded", message: "Slow." } };
  const failed = translated(
    WIRE.stream("chat"),
    events({ type: "response.failed", response }),
  );
  expect(failed.map(({ kind }) => kind)).toEqual(["error", "done"]);
  expect(JSON.parse(failed[0]?.data ?? "")).toMatchObject({
    error: { message: "Slow.", code: "429" },
  });
  const cut = translated(
    WIRE.stream("chat"),
    events({ type: "response.created", response: { id: "resp_1" } }),
  );
  expect(cut.map(({ kind }) => kind)).toEqual(["pass", "error", "done"]);
});

const THOUGHT = {
  type: "reasoning",
  summary: [{ type: "summary_text", text: "hm" }],
  encrypted_content: "c2VjcmV0",
};
const UNTOLD = { type: "reasoning", summary: [], encrypted_content: "bW9yZQ" };
const CALL = { type: "function_call", call_id: "call_1", name: "weather" };
const OUTPUT = [
  { id: "rs_1", ...THOUGHT },
  { id: "rs_2", ...UNTOLD },
  { id: "fc_1", ...CALL, arguments: "{}", status: "completed" },
];

/** The message of an answer with this output, whole and as a stream. */
function messagesOf(output: readonly JsonRecord[]) {
  const response = { id: "resp_1", status: "completed", output };
  const { body } = WIRE.answer("chat", Buffer.from(JSON.stringify(response)));
  const [choice] = recordsOf(recordOf(parseRecord(body.toString()))["choices"]);
  const events = [
    { type: "response.created", response: { id: "resp_1" } },
    ...output.flatMap((item, output_index) => [
      // What is encrypted at the start of an item is not all of it.
      { type: "response.output_item.added", output_index, item },
      ...recordsOf(item["summary"]).map(({ text }) => ({
        type: "response.reasoning_summary_text.delta",
        output_index,
        delta: text,
      })),
      ...recordsOf(item["content"]).flatMap(({ text, annotations }) => [
        { type: "response.content_part.added", output_index },
        { type: "response.output_text.delta", output_index, delta: text },
        ...recordsOf(annotations).map((annotation) => ({
          type: "response.output_text.annotation.added",
          output_index,
          annotation,
        })),
      ]),
      { type: "response.output_item.done", output_index, item },
    ]),
    { type: "response.completed", response },
  ];
  const pieces = translated(
    WIRE.stream("chat"),
    events.map((event) => ({ event: null, data: JSON.stringify(event) })),
  );
  return { whole: recordOf(choice?.["message"]), stream: messageOf(pieces) };
}

test("encrypted reasoning comes back with the client's next call, to the deployment that it came from", () => {
  const { whole, stream } = messagesOf(OUTPUT);
  expect(whole["thinking_blocks"]).toMatchObject([
    { type: "thinking", thinking: "hm" },
    { type: "redacted_thinking" },
  ]);
  expect(stream.message).toMatchObject({
    reasoning_content: "hm",
    thinking_blocks: whole["thinking_blocks"],
  });
  const result = { role: "tool", tool_call_id: "call_1", content: "sunny" };
  const sent = (message: JsonRecord, deployment = DEPLOYMENT) =>
    chatByResponses(openaiWire, deployment).request(
      "chat",
      { ...BODY, messages: [message, result] },
      deployment,
      false,
    );
  const input = [
    { ...CALL, arguments: "{}" },
    { type: "function_call_output", call_id: "call_1", output: "sunny" },
  ];
  expect(sent(whole)).toMatchObject({
    input: [THOUGHT, UNTOLD, ...input],
    include: ["reasoning.encrypted_content"],
    store: false,
  });
  expect(sent(whole, OTHER)["input"]).toEqual(input);
  const signed = { type: "thinking", thinking: "hm", signature: "c2lnbmVk" };
  expect(sent({ ...whole, thinking_blocks: [signed] })["input"]).toEqual(input);
});

test("reasoning without the answer that followed it is left out: the provider would reject it", () => {
  const { whole } = messagesOf(OUTPUT.slice(0, 1));
  const messages = [whole, { role: "user", content: "Go on" }];
  const { input } = WIRE.request(
    "chat",
    { ...BODY, messages },
    DEPLOYMENT,
    false,
  );
  expect(input).toMatchObject([{ role: "user" }]);
});

test("a provider's answer without encrypted reasoning has no thinking blocks", () => {
  const { encrypted_content: _encrypted, ...plain } = THOUGHT;
  const { whole, stream } = messagesOf([plain, ...OUTPUT.slice(2)]);
  expect(whole).not.toHaveProperty("thinking_blocks");
  expect(stream.message).not.toHaveProperty("thinking_blocks");
});

test("Anthropic gets no reasoning of the Responses API", () => {
  const { whole } = messagesOf(OUTPUT);
  const { content } = recordOf(
    recordsOf(
      anthropicWire.request(
        "chat",
        { ...BODY, messages: [{ role: "user", content: "Hi" }, whole] },
        testDeployment({ provider: "anthropic", model: "claude-sonnet-4-5" }),
        false,
      )["messages"],
    )[1],
  );
  expect(content).toMatchObject([{ type: "tool_use" }]);
  const messages = [{ role: "assistant", content: whole["thinking_blocks"] }];
  expect(signedMessages(messages)).toEqual([]);
});
