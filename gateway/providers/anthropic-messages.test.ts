import { expect, test } from "vitest";
import {
  HELLO,
  OLDER,
  ask,
  deployment,
  text,
} from "./anthropic-request-fixture.ts";

const MARK = { type: "ephemeral", ttl: "1h" };
/** Instructions at the start, and others that a client adds during the conversation. */
const INSTRUCTED = [
  { role: "system", content: "One." },
  { role: "developer", content: "Two." },
  { role: "user", content: "Hi" },
  { role: "developer", content: [{ ...text("Three."), cache_control: MARK }] },
  { role: "assistant", content: "Hello." },
  { role: "system", content: "Four." },
  { role: "user", content: "Continue" },
  { role: "system", content: "Five." },
];
const ASSISTANT = { role: "assistant", content: [text("Hello.")] };

test("later instructions keep their position after the user's turn, so that the cached prefix stays", () => {
  const { sent, lacks } = ask({ messages: INSTRUCTED });
  expect(lacks).toEqual([]);
  expect(sent["system"]).toEqual([text("One."), text("Two.")]);
  expect(sent["messages"]).toEqual([
    { role: "user", content: [text("Hi")] },
    {
      role: "system",
      content: [{ ...text("Three."), cache_control: MARK }],
    },
    ASSISTANT,
    { role: "user", content: [text("Continue")] },
    { role: "system", content: [text("Four."), text("Five.")] },
  ]);
});

test.each([OLDER, "claude-opus-4-7", "claude-sonnet-5", "glm-5"])(
  "%s rejects the role in the conversation and gets them in the user's turn",
  (model) => {
    const { sent } = ask({ messages: INSTRUCTED }, deployment(model));
    expect(sent["system"]).toEqual([text("One."), text("Two.")]);
    expect(sent["messages"]).toEqual([
      {
        role: "user",
        content: [text("Hi"), { ...text("Three."), cache_control: MARK }],
      },
      ASSISTANT,
      {
        role: "user",
        content: [text("Continue"), text("Four."), text("Five.")],
      },
    ]);
  },
);

test("instructions between two answers, or after the last, are a user turn; between a call and its result they follow the result", () => {
  const later = { role: "system", content: "Later." };
  const { sent } = ask({
    messages: [
      ...HELLO,
      {
        role: "assistant",
        tool_calls: [
          {
            id: "c1",
            type: "function",
            function: { name: "f", arguments: "" },
          },
        ],
      },
      later,
      { role: "tool", tool_call_id: "c1", content: "done" },
      { role: "assistant", content: "Hello." },
      later,
      { role: "assistant", content: "Hello." },
      later,
    ],
  });
  const asUser = { role: "user", content: [text("Later.")] };
  expect((sent["messages"] as readonly unknown[]).slice(2)).toEqual([
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "c1", content: "done" }],
    },
    { ...asUser, role: "system" },
    ASSISTANT,
    asUser,
    ASSISTANT,
    asUser,
  ]);
});

test("images and files become blocks; audio is named as unsupported", () => {
  const { sent, lacks } = ask({
    messages: [
      {
        role: "user",
        content: [
          text("Look:"),
          {
            type: "image_url",
            image_url: { url: "data:image/png;base64,aGk=" },
          },
          {
            type: "image_url",
            image_url: { url: "https://example.com/a.jpg", detail: "low" },
          },
          {
            type: "file",
            file: {
              filename: "a.pdf",
              file_data: "data:application/pdf;base64,JVBERg==",
            },
          },
          {
            type: "file",
            file: { file_data: "data:text/plain;base64,aGVsbG8=" },
          },
          { type: "input_audio", input_audio: { data: "xx", format: "wav" } },
          { type: "document", source: { type: "url", url: "https://x.pdf" } },
          { type: "file", file: { file_data: "https://y.pdf" } },
          { type: "file", file: { file_id: "https://z.pdf" } },
          { type: "file", file: { file_id: "file_1" } },
          text(""),
        ],
      },
    ],
  });
  expect(sent["messages"]).toEqual([
    {
      role: "user",
      content: [
        text("Look:"),
        {
          type: "image",
          source: { type: "base64", media_type: "image/png", data: "aGk=" },
        },
        {
          type: "image",
          source: { type: "url", url: "https://example.com/a.jpg" },
        },
        {
          type: "document",
          source: {
            type: "base64",
            media_type: "application/pdf",
            data: "JVBERg==",
          },
          title: "a.pdf",
        },
        {
          type: "document",
          source: { type: "text", media_type: "text/plain", data: "hello" },
        },
        { type: "document", source: { type: "url", url: "https://x.pdf" } },
        { type: "document", source: { type: "url", url: "https://y.pdf" } },
        { type: "document", source: { type: "url", url: "https://z.pdf" } },
        { type: "document", source: { type: "file", file_id: "file_1" } },
      ],
    },
  ]);
  expect(lacks).toEqual(["messages[0].content[5]"]);
});

test("parallel calls are one assistant turn, their results one user turn", () => {
  const call = (id: string, written: string) => ({
    id,
    type: "function",
    function: { name: "get", arguments: written },
  });
  const { sent } = ask({
    messages: [
      { role: "user", content: "Compare" },
      {
        role: "assistant",
        content: "I look.",
        thinking_blocks: [
          { type: "thinking", thinking: "hm", signature: "sig" },
          { type: "thinking", thinking: "unsigned" },
          { type: "redacted_thinking", data: "xx" },
        ],
        tool_calls: [
          call("call_1", '{"a":1}'),
          call("functions.get:1", ""),
          call("call_3", "not json"),
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: "one" },
      {
        role: "tool",
        tool_call_id: "functions.get:1",
        content: [text("two")],
      },
      { role: "tool", tool_call_id: "call_3", content: "bad", is_error: true },
      { role: "user", content: "Now?" },
    ],
  });
  expect(sent["messages"]).toEqual([
    { role: "user", content: [text("Compare")] },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", signature: "sig" },
        { type: "redacted_thinking", data: "xx" },
        text("I look."),
        { type: "tool_use", id: "call_1", name: "get", input: { a: 1 } },
        { type: "tool_use", id: "functions_get_1", name: "get", input: {} },
        {
          type: "tool_use",
          id: "call_3",
          name: "get",
          input: { arguments: "not json" },
        },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "call_1", content: "one" },
        {
          type: "tool_result",
          tool_use_id: "functions_get_1",
          content: [text("two")],
        },
        {
          type: "tool_result",
          tool_use_id: "call_3",
          content: "bad",
          is_error: true,
        },
        text("Now?"),
      ],
    },
  ]);
});

test("an answer started by the caller is continued, without its trailing space", () => {
  const { sent } = ask({
    messages: [...HELLO, { role: "assistant", content: "The answer is ( \n" }],
  });
  expect(sent["messages"]).toEqual([
    { role: "user", content: [text("Hello")] },
    { role: "assistant", content: [text("The answer is (")] },
  ]);
});

test("a conversation that starts with the assistant gets a user turn before it", () => {
  const { sent } = ask({
    messages: [{ role: "assistant", content: "Welcome!" }, ...HELLO],
  });
  expect(sent["messages"]).toMatchObject([
    { role: "user" },
    { role: "assistant" },
    { role: "user" },
  ]);
});
