import { expect, test } from "vitest";
import { HELLO, ask, text } from "./anthropic-request-fixture.ts";

test("system and developer messages at any position form the system prompt", () => {
  const { sent } = ask({
    messages: [
      { role: "system", content: "One." },
      { role: "user", content: "Hi" },
      {
        role: "developer",
        content: [
          {
            type: "text",
            text: "Two.",
            cache_control: { type: "ephemeral", ttl: "1h" },
          },
        ],
      },
      { role: "assistant", content: "Hello." },
      { role: "user", content: "Continue" },
    ],
  });
  expect(sent["system"]).toEqual([
    text("One."),
    { ...text("Two."), cache_control: { type: "ephemeral", ttl: "1h" } },
  ]);
  expect(sent["messages"]).toEqual([
    { role: "user", content: [text("Hi")] },
    { role: "assistant", content: [text("Hello.")] },
    { role: "user", content: [text("Continue")] },
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
