import fc from "fast-check";
import { expect, test } from "vitest";
import { CallError } from "../http/errors.ts";
import { testDeployment } from "../providers/stream-fixture.ts";
import type { StreamPiece } from "../providers/wire.ts";
import { passed } from "./chat-stream-fixture.ts";
import { chatName } from "./responses-tools.ts";
import { responsesShape } from "./responses.ts";

const LOCAL = testDeployment({ providerName: "vllm", model: "qwen3:8b" });
const BODY = { model: "alias", input: "Hello" };

const tool = (name: string, more: object = {}) => ({
  type: "function",
  name,
  parameters: { type: "object" },
  ...more,
});
const AGENTS = {
  type: "namespace",
  name: "agents",
  description: "Agents that work side by side.",
  tools: [
    tool("spawn", { description: "Start one.", strict: true }),
    tool("wait"),
    { type: "web_search", name: "search" },
  ],
};
const TOOLS = [tool("spawn"), AGENTS];

const ask = (fields: object) =>
  responsesShape.chatBody({ ...BODY, ...fields }, LOCAL);

test("functions of a namespace are functions of their own in chat; what else it has is named as unsupported", () => {
  const { body, lacks } = ask({ tools: TOOLS });
  const parameters = { type: "object" };
  expect(body["tools"]).toEqual([
    { type: "function", function: { name: "spawn", parameters } },
    {
      type: "function",
      function: {
        name: "agents__spawn",
        description: "Start one.\n\nAgents that work side by side.",
        parameters,
        strict: true,
      },
    },
    { type: "function", function: { name: "agents__wait", parameters } },
  ]);
  expect(lacks).toEqual(["tools[1].tools[2] (web_search)"]);
});

test("a choice names a function of a namespace, or all of them", () => {
  const named = (name: string) => ({ type: "function", function: { name } });
  const { body } = ask({
    tools: TOOLS,
    tool_choice: { type: "function", name: "wait", namespace: "agents" },
  });
  expect(body["tool_choice"]).toEqual(named("agents__wait"));
  const permitted = ask({
    tools: TOOLS,
    tool_choice: {
      type: "allowed_tools",
      mode: "auto",
      tools: [
        { type: "function", name: "spawn" },
        { type: "namespace", name: "agents" },
      ],
    },
  });
  expect(permitted.body["tool_choice"]).toEqual({
    type: "allowed_tools",
    allowed_tools: {
      mode: "auto",
      tools: [named("spawn"), named("agents__spawn"), named("agents__wait")],
    },
  });
});

test("two functions that would get the same name are rejected", () => {
  expect(() => ask({ tools: [tool("agents__wait"), AGENTS] })).toThrow(
    CallError,
  );
  expect(() => ask({ tools: [tool("a"), tool("a")] })).not.toThrow();
});

test("as many functions as fit into a body are read, and a namespace that a choice names again permits no more", () => {
  const tools = [
    { type: "namespace", name: "a", tools: [tool("one"), tool("two")] },
    ...Array.from({ length: 300_000 }, (_, at) => tool(`f${at}`)),
  ];
  const named = { type: "namespace", name: "a" };
  const choice = {
    type: "allowed_tools",
    mode: "auto",
    tools: Array.from({ length: 300_000 }, () => named),
  };
  const { body } = ask({ tools, tool_choice: choice });
  expect(body["tools"]).toHaveLength(300_002);
  expect(body["tool_choice"]).toMatchObject({
    allowed_tools: {
      tools: [
        { function: { name: "a__one" } },
        { function: { name: "a__two" } },
      ],
    },
  });
});

/** An answer that calls this function, whole and as a stream. */
function answersOf(
  name: string,
  tools: readonly object[],
  written = '{"a":1}',
  input: unknown = "Hello",
) {
  const call = {
    index: 0,
    id: "call_1",
    type: "function",
    function: { name, arguments: written },
  };
  const head = { id: "chatcmpl-x", created: 1, model: "m" };
  const choice = { index: 0, finish_reason: "tool_calls" };
  const whole = Buffer.from(
    JSON.stringify({
      ...head,
      choices: [{ ...choice, message: { tool_calls: [call] } }],
    }),
  );
  const pieces: readonly StreamPiece[] = [
    {
      kind: "pass",
      event: null,
      data: JSON.stringify({
        ...head,
        choices: [{ ...choice, delta: { tool_calls: [call] } }],
      }),
    },
    { kind: "done", event: null, data: "[DONE]" },
  ];
  const body = { ...BODY, tools, input };
  const events = passed(responsesShape.stream(body), pieces).map(
    ({ data }) => JSON.parse(data) as Record<string, unknown>,
  );
  const last = events.at(-1) as { response: { output: readonly object[] } };
  const answer = JSON.parse(responsesShape.answer(whole, body).toString()) as {
    output: readonly object[];
  };
  return { events, streamed: last.response.output, answered: answer.output };
}

test("a call names its function and namespace as the client does, whole or streamed", () => {
  const called = { type: "function_call", name: "wait", namespace: "agents" };
  const { events, streamed, answered } = answersOf("agents__wait", TOOLS);
  expect(answered).toMatchObject([called]);
  expect(streamed).toEqual(answered);
  const items = events.filter(({ item }) => item !== undefined);
  expect(items).toHaveLength(2);
  for (const { item } of items) {
    expect(item).toMatchObject(called);
  }
  expect(
    events.find(({ type }) => type === "response.function_call_arguments.done"),
  ).toMatchObject({ name: "wait" });
  const plain = answersOf("spawn", TOOLS);
  expect(plain.answered).toMatchObject([{ name: "spawn" }]);
  expect(plain.answered[0]).not.toHaveProperty("namespace");
});

test("whatever names are, chat accepts them, and the call of a client comes back as it was", () => {
  const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 80 });
  fc.assert(
    fc.property(name, name, (namespace, inner) => {
      const tools = [{ ...AGENTS, name: namespace, tools: [tool(inner)] }];
      const inChat = chatName({ namespace, name: inner });
      expect(inChat).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      const [call] = answersOf(inChat, tools).answered;
      expect(call).toMatchObject({ name: inner, namespace });
      const { body } = ask({
        tools,
        input: [
          { role: "user", content: "Hello" },
          call,
          { type: "function_call_output", call_id: "call_1", output: "done" },
        ],
      });
      expect(body["messages"]).toMatchObject([
        { role: "user" },
        { tool_calls: [{ function: { name: inChat } }] },
        { role: "tool", tool_call_id: "call_1" },
      ]);
      expect(body["tools"]).toMatchObject([{ function: { name: inChat } }]);
    }),
    { numRuns: 100 },
  );
});

test("long names stay different", () => {
  const long = "n".repeat(70);
  const names = ["a", "b"].map((end) =>
    chatName({ namespace: long, name: `${long}${end}` }),
  );
  expect(new Set(names).size).toBe(2);
});

const GRAMMAR = { type: "grammar", syntax: "lark", definition: "start: patch" };
const PATCH = {
  type: "custom",
  name: "apply_patch",
  description: "Edits files.",
  format: GRAMMAR,
};
const CUSTOM = [PATCH, { ...AGENTS, tools: [{ type: "custom", name: "run" }] }];

test("a custom tool is a function with one text in chat, which a choice names, too", () => {
  const { body, lacks } = ask({
    tools: CUSTOM,
    tool_choice: { type: "custom", name: "apply_patch" },
  });
  expect(lacks).toEqual([]);
  expect(body["tools"]).toMatchObject([
    {
      type: "function",
      function: {
        name: "apply_patch",
        parameters: {
          type: "object",
          properties: { input: { type: "string" } },
          required: ["input"],
        },
      },
    },
    { type: "function", function: { name: "agents__run" } },
  ]);
  const [{ function: patch }] = body["tools"] as [
    { function: { description: string } },
  ];
  expect(patch.description).toMatch(/^Edits files\.\n\n.*lark[^]*start: patch/);
  const named = (name: string) => ({ type: "function", function: { name } });
  expect(body["tool_choice"]).toEqual(named("apply_patch"));
  const allowed = [{ type: "custom", name: "apply_patch" }];
  const permitted = ask({
    tools: CUSTOM,
    tool_choice: { type: "allowed_tools", mode: "auto", tools: allowed },
  });
  expect(permitted.body["tool_choice"]).toMatchObject({
    allowed_tools: { tools: [named("apply_patch")] },
  });
});

const DIFF = '*** Begin Patch\n+"a" \\\n*** End Patch';

test.each([
  ["as it was asked to", JSON.stringify({ input: DIFF }), DIFF],
  ["without JSON", DIFF, DIFF],
  ["under another name", '{"patch":"a"}', '{"patch":"a"}'],
  ["not at all", "", ""],
])(
  "what a model writes %s is the input of a custom tool",
  (_, given, input) => {
    const item = {
      type: "custom_tool_call",
      call_id: "call_1",
      name: "apply_patch",
      input,
      status: "completed",
    };
    const { events, streamed, answered } = answersOf(
      "apply_patch",
      CUSTOM,
      given,
    );
    expect(answered).toMatchObject([item]);
    expect(answered[0]).not.toHaveProperty("arguments");
    expect(streamed).toEqual(answered);
    const pieces = events.filter(({ item_id }) => item_id !== undefined);
    const ofInput = "response.custom_tool_call_input";
    expect(pieces).toMatchObject([
      ...(input === "" ? [] : [{ type: `${ofInput}.delta`, delta: input }]),
      { type: `${ofInput}.done`, input },
    ]);
    const added = events.find(({ item }) => item !== undefined);
    expect(added).toMatchObject({ item: { input: "", status: "in_progress" } });
    const output = { type: "custom_tool_call_output", call_id: "call_1" };
    const { body, lacks } = ask({
      tools: CUSTOM,
      input: [...answered, { ...output, output: "Done." }],
    });
    expect(lacks).toEqual([]);
    const call = { name: "apply_patch", arguments: JSON.stringify({ input }) };
    expect(body["messages"]).toMatchObject([
      { role: "assistant", tool_calls: [{ id: "call_1", function: call }] },
      { role: "tool", tool_call_id: "call_1", content: "Done." },
    ]);
  },
);

test("a custom tool of a namespace comes back under its name there", () => {
  const { answered } = answersOf("agents__run", CUSTOM, '{"input":"ls"}');
  expect(answered).toMatchObject([
    { type: "custom_tool_call", namespace: "agents", name: "run", input: "ls" },
  ]);
});

const SEARCH = {
  type: "tool_search",
  execution: "client",
  description: "Finds tools.",
  parameters: { type: "object", properties: { query: { type: "string" } } },
};

test("a client's search for tools is a function in chat, whose call comes back as a search", () => {
  const { body, lacks } = ask({ tools: [SEARCH] });
  const { description, parameters } = SEARCH;
  expect(lacks).toEqual([]);
  expect(body["tools"]).toEqual([
    {
      type: "function",
      function: { name: "tool_search", description, parameters },
    },
  ]);
  const { events, streamed, answered } = answersOf(
    "tool_search",
    [SEARCH],
    '{"query":"mail"}',
  );
  expect(answered).toMatchObject([
    {
      type: "tool_search_call",
      call_id: "call_1",
      execution: "client",
      arguments: { query: "mail" },
      status: "completed",
    },
  ]);
  expect(answered[0]).not.toHaveProperty("name");
  expect(streamed).toEqual(answered);
  expect(events.map(({ type }) => type)).toEqual([
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.output_item.done",
    "response.completed",
  ]);
  const onServer = { type: "tool_search", execution: "server" };
  expect(ask({ tools: [onServer] }).lacks).toEqual(["tools[0] (tool_search)"]);
});

test("what a client has found can be called as if it had been sent from the start", () => {
  const [call] = answersOf("tool_search", [SEARCH], '{"query":"a"}').answered;
  const found = (...tools: object[]) => ({
    type: "tool_search_output",
    call_id: "call_1",
    execution: "client",
    status: "completed",
    tools,
  });
  const fields = {
    tools: [SEARCH, tool("plain")],
    input: [call, found(AGENTS, PATCH), call, found(AGENTS), call, found()],
  };
  const { body, lacks } = ask(fields);
  expect(lacks[0]).toBe("input[1].tools[0].tools[2] (web_search)");
  const called = ["agents__spawn", "agents__wait", "apply_patch"];
  expect(body["tools"]).toMatchObject(
    ["tool_search", "plain", ...called].map((name) => ({ function: { name } })),
  );
  const asked = {
    role: "assistant",
    tool_calls: [
      { function: { name: "tool_search", arguments: '{"query":"a"}' } },
    ],
  };
  const names = `These tools can be called now: ${called.join(", ")}`;
  expect(body["messages"]).toMatchObject([
    asked,
    { role: "tool", tool_call_id: "call_1", content: names },
    asked,
    { role: "tool" },
    asked,
    { role: "tool", content: "No tools were found." },
  ]);
  const { tools, input } = fields;
  const { answered } = answersOf("agents__wait", tools, "{}", input);
  expect(answered).toMatchObject([{ name: "wait", namespace: "agents" }]);
});
