import { expect, test } from "vitest";
import { testDeployment } from "../providers/stream-fixture.ts";
import { messagesShape } from "./messages.ts";
import { responsesShape } from "./responses.ts";

const RUNNER = testDeployment({
  provider: "ollama",
  providerName: "ollama",
  model: "qwen3:8b",
});
/** An OpenAI-compatible server on one's own machines, configured as `openai/…`. */
const LOCAL = testDeployment({ model: "openai/gpt-oss-20b", local: true });
const OPENAI = testDeployment({ model: "gpt-5-mini" });

const picture = {
  type: "image",
  source: { type: "base64", media_type: "image/png", data: "aGk=" },
};

/** As Claude Code sends its environment, and later what changed in it. */
const TURNS = {
  model: "alias",
  max_tokens: 10,
  system: "Be brief.",
  messages: [
    { role: "user", content: "Hello" },
    { role: "system", content: [{ type: "text", text: "Linux." }] },
    { role: "assistant", content: "Hi." },
    { role: "system", content: "Now at night." },
    { role: "user", content: [{ type: "text", text: "What?" }, picture] },
    { role: "system", content: "Look closely." },
  ],
};

function rolesOf(body: Readonly<Record<string, unknown>>): readonly string[] {
  return (body["messages"] as readonly { readonly role: string }[]).map(
    ({ role }) => role,
  );
}

test.each([RUNNER, LOCAL])(
  "a runner gets instructions at the start, and later ones in the user's turn",
  (runner) => {
    const { body } = messagesShape.chatBody(TURNS, runner);
    expect(body["messages"]).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hello\n\nLinux." },
      { role: "assistant", content: "Hi." },
      { role: "user", content: "Now at night." },
      {
        role: "user",
        content: [
          { type: "text", text: "What?" },
          {
            type: "image_url",
            image_url: { url: "data:image/png;base64,aGk=" },
          },
          { type: "text", text: "Look closely." },
        ],
      },
    ]);
  },
);

test("several instructions before the conversation are one message", () => {
  const input = [
    { role: "developer", content: "Use the tools." },
    { role: "user", content: "Hello" },
    { role: "developer", content: "Ask before you delete." },
  ];
  const request = { model: "alias", instructions: "Be brief.", input };
  expect(
    responsesShape.chatBody(request, RUNNER).body["messages"],
  ).toMatchObject([
    { role: "system", content: "Be brief.\n\nUse the tools." },
    { role: "user", content: "Hello\n\nAsk before you delete." },
  ]);
});

test("OpenAI's models get instructions where the client put them", () => {
  expect(rolesOf(messagesShape.chatBody(TURNS, OPENAI).body)).toEqual([
    "system",
    "user",
    "system",
    "assistant",
    "system",
    "user",
    "system",
  ]);
});

test("only instructions are still a conversation", () => {
  const request = {
    model: "alias",
    input: [{ role: "system", content: "Go" }],
  };
  expect(
    responsesShape.chatBody(request, RUNNER).body["messages"],
  ).toMatchObject([{ role: "system", content: "Go" }]);
});
