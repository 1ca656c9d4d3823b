import fc from "fast-check";
import { expect, test } from "vitest";
import { inputMessages, outputMessages } from "./messages.ts";

test("prompts of every API become messages with parts", () => {
  const chat = {
    messages: [
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AA" } },
        ],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "t1", function: { name: "look", arguments: '{"a":1}' } },
        ],
      },
      { role: "tool", tool_call_id: "t1", content: "a cat" },
    ],
  };
  expect(JSON.parse(inputMessages(chat))).toEqual([
    { role: "system", parts: [{ type: "text", content: "Be brief." }] },
    {
      role: "user",
      parts: [
        { type: "text", content: "What is this?" },
        { type: "image_url" },
      ],
    },
    {
      role: "assistant",
      parts: [
        { type: "tool_call", id: "t1", name: "look", arguments: '{"a":1}' },
      ],
    },
    {
      role: "tool",
      parts: [{ type: "tool_call_response", id: "t1", response: "a cat" }],
    },
  ]);
  expect(
    JSON.parse(
      inputMessages({ instructions: "Be brief.", input: ["one", "two"] }),
    ),
  ).toEqual([
    { role: "system", parts: [{ type: "text", content: "Be brief." }] },
    {
      role: "user",
      parts: [
        { type: "text", content: "one" },
        { type: "text", content: "two" },
      ],
    },
  ]);
});

test.each([
  ["function_call", { arguments: "a" }, "function_call_output"],
  ["custom_tool_call", { input: "a" }, "custom_tool_call_output"],
])(
  "a %s of the Responses API and its output are parts",
  (type, given, output) => {
    const input = [
      { type, call_id: "t1", name: "look", ...given },
      { type: output, call_id: "t1", output: "a cat" },
    ];
    expect(
      (JSON.parse(inputMessages({ input })) as { parts: unknown[] }[]).flatMap(
        ({ parts }) => parts,
      ),
    ).toEqual([
      { type: "tool_call", id: "t1", name: "look", arguments: "a" },
      { type: "tool_call_response", id: "t1", response: "a cat" },
    ]);
  },
);

test("answers of every API become messages with parts", () => {
  const text = (content: string) => [
    { role: "assistant", parts: [{ type: "text", content }] },
  ];
  const answers = [
    { choices: [{ message: { role: "assistant", content: "Hi" } }] },
    { choices: [{ text: "Hi" }] },
    { content: [{ type: "text", text: "Hi" }] },
    { output: [{ content: [{ type: "output_text", text: "Hi" }] }] },
    "Hi",
  ];
  for (const answer of answers) {
    expect(JSON.parse(outputMessages(JSON.stringify(answer)))).toEqual(
      text("Hi"),
    );
  }
  expect(JSON.parse(outputMessages("no JSON"))).toEqual(text("no JSON"));
});

test("no body and no answer makes it throw", () => {
  fc.assert(
    fc.property(
      fc.dictionary(
        fc.constantFrom("messages", "input", "prompt", "system", "choices"),
        fc.jsonValue(),
      ),
      (body) => {
        expect(Array.isArray(JSON.parse(inputMessages(body)))).toBe(true);
        expect(
          Array.isArray(JSON.parse(outputMessages(JSON.stringify(body)))),
        ).toBe(true);
      },
    ),
  );
});
