import { describe, expect, test } from "vitest";
import { OLDER, ask, deployment } from "./anthropic-request-fixture.ts";

describe("tools", () => {
  const tool = (name: string, more: object = {}) => ({
    type: "function",
    function: { name, description: "d", parameters: { properties: {} } },
    ...more,
  });
  const sentTool = (name: string) => ({
    name,
    description: "d",
    input_schema: { type: "object", properties: {} },
  });

  test("web_search_options become a tool, unless a tool has its name", () => {
    const asked = (fields: Record<string, unknown>) => {
      const { sent, lacks } = ask(fields);
      expect(lacks).toEqual([]);
      return sent["tools"];
    };
    const search = { type: "web_search_20250305", name: "web_search" };
    expect(
      asked({
        tools: [tool("a")],
        web_search_options: {
          search_context_size: "low",
          user_location: {
            type: "approximate",
            approximate: { city: "Paris", country: "FR", region: null },
          },
        },
      }),
    ).toEqual([
      sentTool("a"),
      {
        ...search,
        max_uses: 1,
        user_location: { type: "approximate", city: "Paris", country: "FR" },
      },
    ]);
    const own = { ...search, max_uses: 2 };
    expect(asked({ tools: [own], web_search_options: {} })).toEqual([own]);
    expect(ask({ web_search_options: true }).lacks).toEqual([
      "web_search_options",
    ]);
  });

  test("functions become tools; Anthropic's own pass unchanged", () => {
    const own = { type: "web_search_20250305", name: "web_search" };
    const { sent, lacks } = ask({
      tools: [
        tool("a", { cache_control: { type: "ephemeral" } }),
        { type: "function", function: { name: "b", strict: true } },
        own,
        { type: "custom", custom: { name: "grammar" } },
      ],
    });
    expect(sent["tools"]).toEqual([
      { ...sentTool("a"), cache_control: { type: "ephemeral" } },
      {
        name: "b",
        input_schema: {
          type: "object",
          properties: {},
          additionalProperties: false,
        },
        strict: true,
      },
      own,
    ]);
    expect(lacks).toEqual(["tools[3]"]);
  });

  // Anthropic: "tools.0.custom: For 'integer' type, properties maximum, minimum are not supported".
  test("constraints of a strict tool become a description, those of others stay", () => {
    const count = { type: "integer", minimum: 1, maximum: 9 };
    const parameters = {
      type: "object",
      properties: { count },
      required: ["count"],
      additionalProperties: false,
    };
    const countSent = (strict: boolean) => {
      const called = { name: "a", parameters, strict };
      const { sent } = ask({
        tools: [{ type: "function", function: called }],
      });
      const [{ input_schema: schema }] = sent["tools"] as [
        { input_schema: typeof parameters },
      ];
      return schema.properties.count;
    };
    expect(countSent(true)).toEqual({
      type: "integer",
      description: "minimum: 1, maximum: 9",
    });
    expect(countSent(false)).toEqual(count);
  });

  test.each<[string, object, unknown]>([
    ["auto", { tool_choice: "auto" }, { type: "auto" }],
    ["none", { tool_choice: "none" }, { type: "none" }],
    ["required", { tool_choice: "required" }, { type: "any" }],
    [
      "a named one",
      { tool_choice: { type: "function", function: { name: "a" } } },
      { type: "tool", name: "a" },
    ],
    [
      "one at a time",
      { parallel_tool_calls: false },
      { type: "auto", disable_parallel_tool_use: true },
    ],
    [
      "required, one at a time",
      { tool_choice: "required", parallel_tool_calls: false },
      { type: "any", disable_parallel_tool_use: true },
    ],
    ["unsaid", { parallel_tool_calls: true }, undefined],
  ])("tool choice: %s", (_name, fields, expected) => {
    const { sent, lacks } = ask(
      { tools: [tool("a"), tool("b")], ...fields },
      deployment(OLDER),
    );
    expect(sent["tool_choice"]).toEqual(expected);
    expect(lacks).toEqual([]);
  });

  test.each([
    ["claude-opus-5-5", false],
    ["claude-sonnet-5-5", false],
    ["claude-fable-5-1", false],
    ["claude-mythos-5-1", false],
    ["claude-opus-6", false],
    ["claude-opus-5", true],
    ["claude-sonnet-5", true],
    ["claude-fable-5", true],
    ["claude-haiku-5-5", true],
  ])("whether a call can be demanded of %s: %s", (model, expected) => {
    const { sent, lacks } = ask(
      {
        tools: [tool("a")],
        tool_choice: "required",
        parallel_tool_calls: false,
      },
      deployment(model),
    );
    expect(sent["tool_choice"]).toEqual({
      type: expected ? "any" : "auto",
      disable_parallel_tool_use: true,
    });
    expect(lacks).toEqual(expected ? [] : ["tool_choice"]);
  });

  test("allowed tools exclude the others", () => {
    const { sent } = ask(
      {
        tools: [tool("a"), tool("b")],
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: {
            mode: "required",
            tools: [{ type: "function", function: { name: "b" } }],
          },
        },
      },
      deployment(OLDER),
    );
    expect(sent["tools"]).toEqual([sentTool("b")]);
    expect(sent["tool_choice"]).toEqual({ type: "any" });
  });
});
