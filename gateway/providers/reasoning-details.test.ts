import { expect, test } from "vitest";
import {
  listOf,
  parseRecord,
  recordOf,
  type JsonRecord,
} from "../../core/json.ts";
import type { CallBody } from "../calls/body.ts";
import type { ClientShape } from "../dialects/client-shape.ts";
import { messagesShape } from "../dialects/messages.ts";
import { responsesShape } from "../dialects/responses.ts";
import { signedMessages } from "./anthropic-signed.ts";
import { wireOf } from "./families.ts";
import { testDeployment } from "./stream-fixture.ts";

const CALL = {
  index: 0,
  id: "call_1",
  type: "function",
  function: { name: "f", arguments: "{}" },
};
const SIGNED = {
  type: "reasoning.text",
  text: "hm",
  signature: "c2ln",
  format: "anthropic-claude-v1",
  index: 0,
};
const ENCRYPTED = {
  type: "reasoning.encrypted",
  data: "ZW5j",
  id: "call_1",
  format: "google-gemini-v1",
  index: 2,
};
/** Has nothing but text, which is sent as such. */
const SUMMARY = { type: "reasoning.summary", summary: "hm", index: 1 };

const openrouter = testDeployment({ providerName: "openrouter" });
const BODY = { model: "alias", messages: [], input: [] };

/** What OpenRouter gets back, from a client of another API that has sent back what it got. */
function sentBack(body: JsonRecord, shape: ClientShape): JsonRecord {
  const chat = shape.chatBody({ ...BODY, ...body } as CallBody, openrouter);
  const sent = wireOf("openai").request("chat", chat.body, openrouter, false);
  return recordOf(
    listOf(sent["messages"]).find(
      (message) => recordOf(message)["role"] === "assistant",
    ),
  );
}

function answerOf(shape: ClientShape): JsonRecord {
  const message = {
    role: "assistant",
    content: null,
    reasoning: "hm",
    reasoning_details: [SIGNED, SUMMARY, ENCRYPTED],
    tool_calls: [CALL],
  };
  const choices = [{ index: 0, finish_reason: "tool_calls", message }];
  const bytes = Buffer.from(JSON.stringify({ id: "gen-1", choices }));
  return parseRecord(shape.answer(bytes, BODY).toString()) ?? {};
}

test("OpenRouter gets its signed and encrypted reasoning back from a client of Messages", () => {
  const { content } = answerOf(messagesShape);
  const messages = [
    { role: "user", content: "Hello" },
    { role: "assistant", content },
  ];
  expect(sentBack({ messages }, messagesShape)).toEqual({
    role: "assistant",
    content: null,
    tool_calls: [expect.objectContaining({ id: "call_1" })],
    reasoning_details: [SIGNED, ENCRYPTED],
  });
});

test("OpenRouter gets its signed and encrypted reasoning back from a client of Responses", () => {
  const { output } = answerOf(responsesShape);
  const input = [{ role: "user", content: "Hello" }, ...listOf(output)];
  expect(sentBack({ input }, responsesShape)).toMatchObject({
    tool_calls: [{ id: "call_1" }],
    reasoning_details: [SIGNED, ENCRYPTED],
  });
});

test("of a stream, the signature belongs to the text before it", () => {
  const { text: _text, ...signature } = SIGNED;
  const deltas = [
    { reasoning: "h", reasoning_details: [{ ...SUMMARY, summary: "h" }] },
    { reasoning: "m" },
    { reasoning_details: [signature] },
    { tool_calls: [CALL], reasoning_details: [ENCRYPTED] },
  ];
  const stream = messagesShape.stream(BODY);
  const events = [
    ...deltas.map((delta) =>
      JSON.stringify({ id: "gen-1", choices: [{ index: 0, delta }] }),
    ),
    "[DONE]",
  ].flatMap((data) =>
    stream.push({
      kind: data === "[DONE]" ? "done" : "pass",
      event: null,
      data,
    }),
  );
  const started = events
    .map(({ data }) => recordOf(parseRecord(data)?.["content_block"]))
    .filter(({ type }) => type !== undefined);
  expect(started.map(({ type }) => type)).toEqual([
    "thinking",
    "redacted_thinking",
    "redacted_thinking",
    "tool_use",
  ]);
  const content = [{ ...started[0], thinking: "hm" }, ...started.slice(1)];
  const messages = [{ role: "assistant", content }];
  expect(sentBack({ messages }, messagesShape)["reasoning_details"]).toEqual([
    SIGNED,
    ENCRYPTED,
  ]);
});

test("other providers get none of OpenRouter's reasoning", () => {
  const { content } = answerOf(messagesShape);
  const messages = [{ role: "assistant", content }];
  const vllm = testDeployment({ providerName: "vllm" });
  const { body } = messagesShape.chatBody({ ...BODY, messages }, vllm);
  const sent = wireOf("openai").request("chat", body, vllm, false);
  expect(sent["messages"]).toEqual([
    {
      role: "assistant",
      content: null,
      reasoning_content: "hm",
      tool_calls: [expect.objectContaining({ id: "call_1" })],
    },
  ]);
  expect(signedMessages(messages)).toEqual([
    { role: "assistant", content: [expect.objectContaining({ id: "call_1" })] },
  ]);
});
