import { expect, test } from "vitest";
import { eventsOf, fixture } from "./stream-fixture.ts";
import { isContent, openingUsage } from "./stream-content.ts";

const json = (event: object) => JSON.stringify(event);
const choice = (fields: object) => json({ choices: [{ index: 0, ...fields }] });
const item = (fields: object) =>
  json({ type: "response.output_item.added", item: { id: "i", ...fields } });
const block = (content_block: object) =>
  json({ type: "content_block_start", index: 0, content_block });
const delta = (fields: object) =>
  json({ type: "content_block_delta", index: 0, delta: fields });

test.each([
  "[DONE]",
  choice({ delta: { role: "assistant", content: "" }, finish_reason: null }),
  choice({ delta: { content: null, tool_calls: [] }, finish_reason: "" }),
  choice({ delta: {} }),
  choice({ text: "", logprobs: null, finish_reason: null }),
  json({ choices: [], prompt_filter_results: [{ prompt_index: 0 }] }),
  json({ choices: [], usage: { prompt_tokens: 3 } }),
  json({ type: "ping" }),
  json({ type: "message_start", message: { id: "m" } }),
  block({ type: "text", text: "" }),
  block({ type: "thinking", thinking: "", signature: "" }),
  delta({ type: "text_delta", text: "" }),
  delta({ type: "input_json_delta", partial_json: "" }),
  json({ type: "message_delta", delta: { stop_reason: null } }),
  json({ type: "response.created", response: { id: "r" } }),
  item({
    type: "message",
    status: "in_progress",
    role: "assistant",
    content: [],
  }),
  item({ type: "reasoning", summary: [] }),
  json({
    type: "response.content_part.added",
    part: { type: "output_text", text: "", annotations: [] },
  }),
  json({ type: "response.output_text.delta", delta: "" }),
])("%s is not content", (data) => {
  expect(isContent(data)).toBe(false);
});

test.each([
  "no JSON",
  choice({ delta: { content: "a" } }),
  choice({ delta: { reasoning_content: "a" } }),
  choice({ delta: { tool_calls: [{ index: 0, id: "t" }] } }),
  choice({ delta: {}, finish_reason: "length" }),
  choice({ text: "a" }),
  block({ type: "tool_use", id: "t", name: "read", input: {} }),
  block({ type: "redacted_thinking", data: "x" }),
  delta({ type: "thinking_delta", thinking: "a" }),
  delta({ type: "signature_delta", signature: "s" }),
  json({ type: "message_delta", delta: { stop_reason: "end_turn" } }),
  item({ type: "function_call", name: "read", arguments: "" }),
  item({ type: "web_search_call", status: "in_progress" }),
  json({ type: "response.output_text.delta", delta: "a" }),
  json({ type: "response.incomplete", response: {} }),
  json({ type: "speech.audio.delta", audio: "AA==" }),
  json({ type: "image_generation.partial_image", b64_json: "AA==" }),
])("%s is content", (data) => {
  expect(isContent(data)).toBe(true);
});

test.each([
  "anthropic/text.sse",
  "anthropic/thinking.sse",
  "anthropic/tools.sse",
  "anthropic/refusal.sse",
  "openai/text.sse",
  "openai/tools.sse",
  "openai/refusal.sse",
  "gemini/text.sse",
  "azure/text.sse",
])("a recorded stream has content before its end: %s", (path) => {
  const events = eventsOf(fixture(path));
  expect(events.slice(0, -1).some(({ data }) => isContent(data))).toBe(true);
});

test("the usage reported before the first content is known", () => {
  const message = { usage: { input_tokens: 5, output_tokens: 1 } };
  const usage = { prompt_tokens: 4, completion_tokens: 0 };
  expect(
    openingUsage([json({ type: "message_start", message }), '{"type":"ping"}']),
  ).toMatchObject({ inputTokens: 5, outputTokens: 0 });
  expect(openingUsage([json({ choices: [], usage })])).toMatchObject({
    inputTokens: 4,
    outputTokens: 0,
  });
  expect(openingUsage([choice({ delta: {} })])).toBeNull();
});
