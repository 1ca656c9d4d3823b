import { expect, test } from "vitest";
import { wireOf } from "./families.ts";
import { messageOf, translated } from "./stream-fixture.ts";

const mistral = wireOf("openai");
const chunk = (text: string) => ({ type: "text", text });
const thinking = (...texts: readonly string[]) => ({
  type: "thinking",
  thinking: texts.map(chunk),
});

function wholeOf(content: unknown) {
  const message = { role: "assistant", content };
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  const bytes = Buffer.from(JSON.stringify({ choices }));
  const { body, facts } = mistral.answer("chat", bytes);
  const { choices: answered } = JSON.parse(body.toString()) as {
    choices: [{ message: object }];
  };
  return { message: answered[0].message, facts, isSame: body === bytes };
}

test("the thinking in an answer of Mistral is reasoning, and its content text", () => {
  const { message, facts } = wholeOf([
    thinking("One ", "and one."),
    chunk("It is "),
    chunk("two."),
  ]);
  expect(message).toEqual({
    role: "assistant",
    content: "It is two.",
    reasoning_content: "One and one.",
  });
  expect(facts.text).toBe("One and one.It is two.");
});

test("streamed thinking of Mistral is reasoning, piece by piece", () => {
  const contents = [[thinking("One ")], [thinking("and one.")], "Two."];
  const events = contents.map((content) => ({
    event: null,
    data: JSON.stringify({ choices: [{ index: 0, delta: { content } }] }),
  }));
  const done = { event: null, data: "[DONE]" };
  const pieces = translated(mistral.stream("chat"), [...events, done]);
  expect(messageOf(pieces).message).toEqual({
    reasoning_content: "One and one.",
    content: "Two.",
  });
});

test.each([
  'the word "thinking"',
  [chunk('"thinking"'), { type: "reference", reference_ids: [1] }],
])("other content passes as the same bytes: %j", (content) => {
  expect(wholeOf(content)).toMatchObject({
    isSame: true,
    message: { content },
  });
});
