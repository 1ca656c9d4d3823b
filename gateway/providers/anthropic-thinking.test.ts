import { describe, expect, test } from "vitest";
import {
  HELLO,
  NEWEST,
  OLDER,
  ask,
  deployment,
} from "./anthropic-request-fixture.ts";

describe("thinking", () => {
  const tools = [{ type: "function", function: { name: "a" } }];

  test.each<[string, object, object]>([
    [
      NEWEST,
      { reasoning_effort: "medium" },
      {
        thinking: { type: "adaptive", display: "summarized" },
        output_config: { effort: "medium" },
      },
    ],
    [
      NEWEST,
      { reasoning_effort: "minimal" },
      {
        thinking: { type: "adaptive", display: "summarized" },
        output_config: { effort: "low" },
      },
    ],
    [
      "claude-opus-4-6",
      { reasoning_effort: "xhigh" },
      {
        thinking: { type: "adaptive", display: "summarized" },
        output_config: { effort: "high" },
      },
    ],
    [
      "claude-opus-5",
      { reasoning_effort: "none" },
      { thinking: { type: "disabled" } },
    ],
    [
      "claude-haiku-5-5",
      { reasoning_effort: "none" },
      { thinking: { type: "disabled" } },
    ],
    [
      NEWEST,
      { reasoning_effort: "none" },
      { thinking: { type: "between_tools" } },
    ],
    ...["claude-fable-5", "claude-opus-5-5", "claude-mythos-5-1"].map(
      (model): [string, object, object] => [
        model,
        { reasoning_effort: "none" },
        { output_config: { effort: "low" } },
      ],
    ),
    [
      "claude-opus-5",
      { reasoning_effort: "high", tools, tool_choice: "required" },
      { output_config: { effort: "high" } },
    ],
    [
      OLDER,
      { reasoning_effort: "high", max_tokens: 64_000 },
      { thinking: { type: "enabled", budget_tokens: 16_384 } },
    ],
    [
      OLDER,
      { reasoning_effort: "high", max_tokens: 4_000 },
      { thinking: { type: "enabled", budget_tokens: 2_000 } },
    ],
    [OLDER, { reasoning_effort: "high", max_tokens: 1_500 }, {}],
    [OLDER, { reasoning_effort: "none" }, {}],
    [OLDER, { reasoning_effort: "low", tools, tool_choice: "required" }, {}],
    [
      OLDER,
      {
        thinking: { type: "enabled", budget_tokens: 1_111 },
        reasoning_effort: "high",
      },
      { thinking: { type: "enabled", budget_tokens: 1_111 } },
    ],
    // What clients send for a model of another generation.
    [
      NEWEST,
      { thinking: { type: "enabled", budget_tokens: 4_096 } },
      {
        thinking: { type: "adaptive", display: "summarized" },
        output_config: { effort: "medium" },
      },
    ],
    [
      "claude-opus-4-7",
      {
        thinking: {
          type: "enabled",
          budget_tokens: 1_024,
          display: "omitted",
        },
        reasoning_effort: "xhigh",
      },
      {
        thinking: { type: "adaptive", display: "omitted" },
        output_config: { effort: "xhigh" },
      },
    ],
    [
      "claude-opus-4-6",
      { thinking: { type: "enabled", budget_tokens: 4_096 } },
      { thinking: { type: "enabled", budget_tokens: 4_096 } },
    ],
    [
      OLDER,
      { thinking: { type: "adaptive" }, max_tokens: 64_000 },
      { thinking: { type: "enabled", budget_tokens: 4_096 } },
    ],
    [
      OLDER,
      { thinking: { type: "between_tools" } },
      { thinking: { type: "disabled" } },
    ],
    [
      NEWEST,
      { thinking: { type: "disabled" } },
      { thinking: { type: "between_tools" } },
    ],
    [
      NEWEST,
      { thinking: { type: "disabled" }, reasoning_effort: "xhigh" },
      {
        thinking: { type: "between_tools" },
        output_config: { effort: "high" },
      },
    ],
    [
      "claude-opus-5-5",
      { thinking: { type: "disabled" } },
      { output_config: { effort: "low" } },
    ],
  ])("%s %j", (model, fields, expected) => {
    const { sent, lacks } = ask({ ...fields }, deployment(model));
    const { thinking, output_config } = sent;
    expect(JSON.parse(JSON.stringify({ thinking, output_config }))).toEqual(
      expected,
    );
    expect(lacks).toEqual([]);
  });

  test("a tool loop whose thinking the client lost continues without a budget", () => {
    const turn = (more: object) => [
      ...HELLO,
      {
        role: "assistant",
        tool_calls: [{ id: "c", function: { name: "a", arguments: "{}" } }],
        ...more,
      },
      { role: "tool", tool_call_id: "c", content: "x" },
    ];
    const fields = { reasoning_effort: "low", max_tokens: 9_000, tools };
    const lost = ask({ ...fields, messages: turn({}) }, deployment(OLDER));
    expect(lost.sent["thinking"]).toBeUndefined();
    const kept = [{ type: "thinking", thinking: "t", signature: "s" }];
    const whole = ask(
      { ...fields, messages: turn({ thinking_blocks: kept }) },
      deployment(OLDER),
    );
    expect(whole.sent["thinking"]).toBeDefined();
  });
});
