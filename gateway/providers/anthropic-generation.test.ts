import { expect, test } from "vitest";
import { wireOf } from "./families.ts";
import { testDeployment } from "./stream-fixture.ts";

const HELLO = { role: "user", content: "Hello" };
const ADAPTIVE = { type: "adaptive", display: "summarized" };
const BUDGET = { type: "enabled", budget_tokens: 4_000 };
/** As Claude Code asks a newer model. */
const NEWER = { thinking: ADAPTIVE, output_config: { effort: "high" } };

function sentTo(model: string, fields: object, endpoint = "messages" as const) {
  const { model: _model, ...sent } = wireOf("anthropic").request(
    endpoint,
    { model: "alias", max_tokens: 32_000, messages: [HELLO], ...fields },
    testDeployment({ provider: "anthropic", model }),
    false,
  );
  // As it is written.
  return JSON.parse(JSON.stringify(sent)) as Record<string, unknown>;
}

test.each([
  ["claude-haiku-4-5", NEWER, { type: "enabled", budget_tokens: 16_000 }],
  [
    "claude-haiku-4-5",
    { thinking: ADAPTIVE },
    { type: "enabled", budget_tokens: 4_096 },
  ],
  ["claude-opus-4-1", { ...NEWER, max_tokens: 1_000 }, undefined],
  ["claude-opus-4-1", { ...NEWER, tool_choice: { type: "any" } }, undefined],
  [
    "claude-opus-4-1",
    { thinking: { type: "between_tools" } },
    { type: "disabled" },
  ],
  ["claude-opus-4-8", { thinking: BUDGET }, ADAPTIVE],
  [
    "claude-sonnet-5-5",
    { thinking: { type: "disabled" } },
    { type: "between_tools" },
  ],
])("%s asked with %j thinks as %j", (model, fields, thinking) => {
  expect(sentTo(model, fields)["thinking"]).toEqual(thinking);
});

test("an effort reaches models that take it, and a schema every model", () => {
  const schema = { format: { type: "json_schema", schema: {} } };
  const configOf = (model: string, effort: string) =>
    sentTo(model, { output_config: { effort, ...schema } })["output_config"];
  expect(configOf("claude-haiku-4-5", "high")).toEqual(schema);
  expect(configOf("claude-opus-4-5", "low")).toEqual({
    effort: "low",
    ...schema,
  });
  expect(configOf("claude-sonnet-4-6", "xhigh")).toEqual({
    effort: "high",
    ...schema,
  });
  expect(configOf("claude-opus-4-8", "xhigh")).toEqual({
    effort: "xhigh",
    ...schema,
  });
  expect(sentTo("claude-haiku-4-5", NEWER)).not.toHaveProperty("output_config");
  const { output_config: config } = sentTo("claude-opus-4-8", {
    thinking: BUDGET,
  });
  expect(config).toEqual({ effort: "medium" });
});

test("instructions between messages are the user's for models without them", () => {
  const messages = [HELLO, { role: "system", content: "Be brief." }];
  expect(sentTo("claude-haiku-4-5", { messages })["messages"]).toEqual([
    HELLO,
    { role: "user", content: "Be brief." },
  ]);
  expect(sentTo("claude-opus-4-8", { messages })["messages"]).toEqual(messages);
});

test("a turn that called tools without thinking stays without it", () => {
  const use = { type: "tool_use", id: "a", name: "f", input: {} };
  const result = { type: "tool_result", tool_use_id: "a", content: "1" };
  const messages = [
    HELLO,
    { role: "assistant", content: [use] },
    { role: "user", content: [result] },
  ];
  expect(sentTo("claude-haiku-4-5", { ...NEWER, messages })).not.toHaveProperty(
    "thinking",
  );
});

test.each([
  ["claude-opus-4-8", NEWER],
  ["claude-haiku-4-5", { thinking: BUDGET, temperature: 1 }],
  ["glm-5", NEWER],
])("%s gets %j unchanged", (model, fields) => {
  expect(sentTo(model, fields)).toEqual({
    max_tokens: 32_000,
    messages: [HELLO],
    ...fields,
  });
});
