import { expect, test } from "vitest";
import { PROVIDERS } from "../config/providers.ts";
import { wireOf } from "./families.ts";
import { openaiWire } from "./openai-wire.ts";
import { testDeployment } from "./stream-fixture.ts";

const CALL = {
  id: "call_1",
  type: "function",
  function: { name: "find", arguments: "{}" },
};
/** As an SDK of OpenAI writes the answer of a server that reasons, here of Gemini. */
const SAID = {
  role: "assistant",
  content: null,
  refusal: null,
  annotations: [],
  audio: null,
  function_call: null,
  reasoning_content: "Find it.",
  extra_content: { google: {} },
  tool_calls: [
    {
      ...CALL,
      index: 0,
      extra_content: { google: { thought_signature: "s" } },
    },
  ],
};
const HELLO = { role: "user", content: "Hello", name: "anna" };
const RESULT = { role: "tool", content: "1", tool_call_id: "call_1" };

function sentTo(
  providerName: string,
  more: object = {},
  model = providerName === "openai" ? "gpt-5.2" : "some-model",
) {
  const provider = PROVIDERS[providerName]?.family ?? "openai";
  const to = testDeployment({ provider, providerName, model });
  const messages = [HELLO, SAID, RESULT];
  const body = { model: "alias", messages, ...more };
  return wireOf(provider).request("chat", body, to, false);
}

function historyAt(providerName: string): readonly unknown[] {
  const { messages } = sentTo(providerName);
  return messages as readonly unknown[];
}

const KNOWN = { role: "assistant", content: null, tool_calls: [CALL] };

test("Cerebras gets no fields that it rejects in messages", () => {
  expect(historyAt("cerebras")).toEqual([HELLO, KNOWN, RESULT]);
});

test.each(["groq", "mistral"])(
  "%s gets neither those nor names of users",
  (providerName) => {
    const { name: _name, ...hello } = HELLO;
    expect(historyAt(providerName)).toEqual([hello, KNOWN, RESULT]);
  },
);

test("parameters that Groq and Mistral reject whatever their value are not sent, and named where they would matter", () => {
  const neutral = { n: 1, logit_bias: {}, logprobs: false, top_logprobs: 0 };
  const asked = { n: 2, logit_bias: { "1": 1 }, logprobs: true };
  const lacking = (providerName: string, fields: object) =>
    wireOf("openai").unsupported(
      "chat",
      { model: "alias", ...fields },
      testDeployment({ providerName }),
    );
  for (const fields of [neutral, asked]) {
    const sent = sentTo("groq", fields);
    expect(Object.keys(sent).sort()).toEqual(["messages", "model"]);
  }
  expect(lacking("groq", neutral)).toEqual([]);
  expect(lacking("groq", asked)).toEqual(["logit_bias", "logprobs", "n"]);
  expect(lacking("mistral", asked)).toEqual(["logit_bias", "logprobs"]);
  expect(lacking("deepseek", asked)).toEqual([]);
});

test("OpenAI gets no reasoning and no fields of other providers", () => {
  const {
    reasoning_content: _reasoning,
    extra_content: _extra,
    ...rest
  } = SAID;
  expect(historyAt("openai")[1]).toEqual({ ...rest, tool_calls: [CALL] });
});

test("Gemini gets its signatures back", () => {
  const [call] = SAID.tool_calls;
  const { index: _index, ...signed } = call ?? { index: 0 };
  expect(historyAt("gemini")[1]).toEqual({
    role: "assistant",
    content: null,
    extra_content: { google: {} },
    tool_calls: [signed],
  });
});

test("Ollama gets reasoning by the name that it reads", () => {
  const { reasoning_content: reasoning, ...rest } = SAID;
  expect(historyAt("ollama")[1]).toEqual({ ...rest, reasoning });
});

test.each([
  ["deepseek", "deepseek-v4-pro"],
  ["moonshot", "kimi-k2.6"],
  ["openai", "deepseek-chat"],
])("%s gets reasoning with each answer of %s", (providerName, model) => {
  const answers = [
    { role: "assistant", content: "1" },
    { role: "assistant", content: "2", reasoning_content: "" },
    { role: "assistant", content: "3", reasoning: "Three." },
    SAID,
  ];
  const messages = [HELLO, ...answers];
  const { messages: sent } = sentTo(providerName, { messages }, model);
  expect(sent).toMatchObject([
    HELLO,
    { content: "1", reasoning_content: " " },
    { content: "2", reasoning_content: " " },
    { content: "3", reasoning_content: "Three." },
    SAID,
  ]);
});

test("a server of one's own with the provider openai gets reasoning back", () => {
  expect(sentTo("openai", {}, "gpt-oss-20b")["messages"]).toEqual([
    HELLO,
    SAID,
    RESULT,
  ]);
});

test("other servers get messages as they are", () => {
  expect(historyAt("deepseek")).toEqual([HELLO, SAID, RESULT]);
});

test("an image that a client writes as its address alone is sent as OpenAI takes it", () => {
  const text = { type: "text", text: "Look" };
  const image = (url: unknown) => ({
    role: "user",
    content: [text, { type: "image_url", image_url: url }],
  });
  const { messages } = sentTo("openai", {
    messages: [image("https://x"), image({ url: "https://y", detail: "low" })],
  });
  expect(messages).toEqual([
    image({ url: "https://x" }),
    image({ url: "https://y", detail: "low" }),
  ]);
});

test("Mistral gets a seed by its own name, and no hints that it rejects", () => {
  const hints = { user: "anna", store: false, safety_identifier: "a" };
  const sent = sentTo("mistral", { ...hints, seed: 7, temperature: 0 });
  const { messages: _messages, model: _model, ...rest } = sent;
  expect(rest).toEqual({ random_seed: 7, temperature: 0 });
});

test.each([
  [{ think: false }, "none"],
  [{ think: true }, undefined],
  [{ think: "high" }, "high"],
  [{ think: true, reasoning_effort: "low" }, "low"],
  [{ reasoning_effort: "disable" }, "none"],
  [{ reasoning_effort: "minimal" }, "low"],
  [{ reasoning_effort: "max" }, "high"],
])("Ollama gets %j as the effort %s", (fields, effort) => {
  const sent = sentTo("ollama", fields);
  expect(sent["reasoning_effort"]).toBe(effort);
  expect(sent).not.toHaveProperty("think");
});

test.each([
  [{ reasoning_effort: "none" }, { thinking: { type: "disabled" } }],
  [
    { thinking: { type: "disabled" }, reasoning_effort: "low" },
    { thinking: { type: "disabled" } },
  ],
  [
    { thinking: { type: "adaptive", display: "summarized" } },
    { thinking: { type: "enabled" } },
  ],
  [{ reasoning_effort: "medium" }, { reasoning_effort: "medium" }],
])("DeepSeek and Kimi get %j as %j", (fields, expected) => {
  for (const [providerName, model] of [
    ["deepseek", "deepseek-v4-pro"],
    ["moonshot", "kimi-k2.6"],
  ] as const) {
    const deployment = testDeployment({ providerName, model });
    expect(
      openaiWire.request("chat", { model: "m", ...fields }, deployment, false),
    ).toEqual({ model, ...expected });
  }
});
