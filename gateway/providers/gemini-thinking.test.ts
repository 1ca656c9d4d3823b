import { expect, test } from "vitest";
import { wireOf } from "./families.ts";
import { messageOf, testDeployment, translated } from "./stream-fixture.ts";

const gemini = wireOf("gemini");
const HELLO = [{ role: "user", content: "Hello" }];

function sentTo(model: string, fields: object) {
  const {
    messages,
    model: _model,
    ...sent
  } = gemini.request(
    "chat",
    { model: "alias", messages: HELLO, ...fields },
    testDeployment({ provider: "gemini", model }),
    false,
  );
  expect(messages).toEqual(HELLO);
  return sent;
}

function asking(config: object) {
  const thinking_config = { include_thoughts: true, ...config };
  return { extra_body: { google: { thinking_config } } };
}

test.each([
  ["gemini-2.5-flash", "low", { thinking_budget: 1_024 }],
  ["gemini-2.5-pro", "high", { thinking_budget: 24_576 }],
  ["gemini-3.8-flash", "medium", { thinking_level: "medium" }],
  ["gemini-flash-latest", "low", { thinking_level: "low" }],
])("%s with the effort %s shows its thinking", (model, effort, depth) => {
  const sent = sentTo(model, { reasoning_effort: effort });
  expect(sent).toEqual(asking(depth));
});

test.each([{}, { reasoning_effort: "none" }, { reasoning_effort: "minimal" }])(
  "a call with %j does not ask Gemini for its thinking",
  (fields) => {
    expect(sentTo("gemini-2.5-flash", fields)).toEqual(fields);
  },
);

test.each(["gemini-2.5-pro", "gemini-3.8-flash", "gemini-pro-latest"])(
  "%s, which always thinks, thinks least without it",
  (model) => {
    const least = { reasoning_effort: "minimal" };
    expect(sentTo(model, { reasoning_effort: "none" })).toEqual(least);
    expect(sentTo(model, { reasoning_effort: "disable" })).toEqual(least);
    expect(sentTo(model, { thinking: { type: "disabled" } })).toEqual(least);
  },
);

test("Anthropic's thinking in a chat is an effort of Gemini", () => {
  const sent = (thinking: object, more: object = {}) =>
    sentTo("gemini-3.8-flash", { thinking, ...more });
  const level = (thinking_level: string) => asking({ thinking_level });
  const enabled = { type: "enabled", budget_tokens: 4_000 };
  expect(sent(enabled)).toEqual(level("medium"));
  expect(sent(enabled, { reasoning_effort: "low" })).toEqual(level("low"));
  expect(sent({ type: "adaptive" })).toEqual(asking({}));
  expect(sent({ ...enabled, display: "omitted" })).toEqual({
    reasoning_effort: "medium",
  });
});

test("an effort joins what the configuration sets for Gemini", () => {
  const defaults = {
    reasoning_effort: "low",
    extra_body: { google: { cached_content: "cachedContents/1" } },
  };
  const sent = gemini.request(
    "chat",
    { model: "alias", messages: HELLO },
    testDeployment({ provider: "gemini", model: "gemini-3-pro", defaults }),
    false,
  );
  expect(sent["extra_body"]).toEqual({
    google: {
      cached_content: "cachedContents/1",
      thinking_config: { include_thoughts: true, thinking_level: "low" },
    },
  });
});

test("Gemini's own parameters of a call join the configured ones; its thinking_config replaces an effort", () => {
  const defaults = {
    reasoning_effort: "low",
    extra_body: { google: { cached_content: "c", thinking_config: {} } },
  };
  const sentWith = (fields: object) => {
    const { messages: _messages, ...sent } = gemini.request(
      "chat",
      { model: "alias", messages: HELLO, ...fields },
      testDeployment({ provider: "gemini", model: "gemini-3-pro", defaults }),
      false,
    );
    return sent;
  };
  const thinking_config = { thinking_budget: 0 };
  expect(sentWith({ extra_body: { google: { thinking_config } } })).toEqual({
    model: "gemini-3-pro",
    extra_body: { google: { cached_content: "c", thinking_config } },
  });
  const safety_settings = [{ category: "c", threshold: "BLOCK_NONE" }];
  expect(
    sentWith({ extra_body: { google: { safety_settings } } }),
  ).toMatchObject({
    extra_body: {
      google: {
        cached_content: "c",
        safety_settings,
        thinking_config: { include_thoughts: true, thinking_level: "low" },
      },
    },
  });
  // Beside a configured thinking_config, an effort would be rejected.
  expect(sentWith({ reasoning_effort: "minimal" })).toMatchObject({
    reasoning_effort: "minimal",
    extra_body: { google: { cached_content: "c" } },
  });
  expect(
    JSON.stringify(sentWith({ reasoning_effort: "minimal" })),
  ).not.toContain("thinking_config");
});

const MARK = { extra_content: { google: { thought: true } } };

function wholeOf(message: object): unknown {
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  const bytes = Buffer.from(JSON.stringify({ choices }));
  const { body, facts } = gemini.answer("chat", bytes);
  const answer = JSON.parse(body.toString()) as {
    choices: [{ message: object }];
  };
  return { ...answer.choices[0].message, facts: facts.text };
}

function streamOf(...deltas: readonly object[]) {
  const events = deltas.map((delta) => ({
    event: null,
    data: JSON.stringify({ choices: [{ index: 0, delta }] }),
  }));
  const done = { event: null, data: "[DONE]" };
  return messageOf(translated(gemini.stream("chat"), [...events, done]))
    .message;
}

test("Gemini's thinking is reasoning, apart from its answer", () => {
  const content = "<thought>**Adding**\n\nOne and one.</thought>Two.";
  const google = { thought: true, thought_signature: "s" };
  expect(wholeOf({ role: "assistant", content, ...MARK })).toEqual({
    role: "assistant",
    content: "Two.",
    reasoning_content: "**Adding**\n\nOne and one.",
    facts: "**Adding**\n\nOne and one.Two.",
  });
  expect(wholeOf({ content, extra_content: { google } })).toMatchObject({
    content: "Two.",
    extra_content: { google: { thought_signature: "s" } },
  });
  expect(wholeOf({ content: "<thought>No end", ...MARK })).toMatchObject({
    content: null,
    reasoning_content: "No end",
  });
});

test("streamed thinking of Gemini is reasoning, piece by piece", () => {
  const message = streamOf(
    { role: "assistant", content: "<thought>One ", ...MARK },
    { content: "and one.", ...MARK },
    { content: "</thought>Tw" },
    { content: "o." },
  );
  expect(message).toEqual({
    role: "assistant",
    reasoning_content: "One and one.",
    content: "Two.",
  });
});

test("thinking before a tool call leaves the call and its signature", () => {
  const call = {
    id: "call_1",
    type: "function",
    function: { name: "find", arguments: "{}" },
    extra_content: { google: { thought_signature: "s" } },
  };
  const message = streamOf(
    { content: "<thought>Find it.", ...MARK },
    { tool_calls: [call] },
    { content: "</thought>" },
  );
  expect(message).toMatchObject({
    reasoning_content: "Find it.",
    tool_calls: [{ id: "call_1" }],
  });
  expect(message["content"] ?? "").toBe("");
});

test("the same tags in an answer without the mark are its text", () => {
  const content = "<thought>is a tag</thought>";
  expect(wholeOf({ content })).toMatchObject({ content });
  expect(
    streamOf({ content: "<thought>is" }, { content: "</thought>" }),
  ).toEqual({ content: "<thought>is</thought>" });
});
