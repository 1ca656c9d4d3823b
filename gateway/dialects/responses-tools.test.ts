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
    { type: "custom", name: "patch" },
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
  expect(lacks).toEqual(["tools[1].tools[2] (custom)"]);
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
function answersOf(name: string, tools: readonly object[]) {
  const call = {
    index: 0,
    id: "call_1",
    type: "function",
    function: { name, arguments: '{"a":1}' },
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
  const body = { ...BODY, tools };
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
