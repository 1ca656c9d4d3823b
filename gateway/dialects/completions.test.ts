import { expect, test } from "vitest";
import { CallError } from "../http/errors.ts";
import { testDeployment } from "../providers/stream-fixture.ts";
import {
  chatAnswerOf,
  chatPieces,
  passed,
  RECORDINGS,
} from "./chat-stream-fixture.ts";
import { completionsShape } from "./completions.ts";

const BODY = { model: "alias", prompt: "Once" };

interface Completion {
  readonly id: string;
  readonly object: string;
  readonly choices: readonly {
    readonly text: string;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: unknown;
}

test.each(RECORDINGS)(
  "%s %s: a stream equals the whole answer",
  (provider, name) => {
    const whole = JSON.parse(
      completionsShape.answer(chatAnswerOf(provider, name), BODY).toString(),
    ) as Completion;
    const pieces = passed(
      completionsShape.stream(BODY),
      chatPieces(provider, name),
    );
    const chunks = pieces
      .filter(({ kind }) => kind !== "done")
      .map(({ data }) => JSON.parse(data) as Completion);
    const choices = chunks.flatMap((chunk) => chunk.choices);
    expect(choices.map(({ text }) => text).join("")).toBe(
      whole.choices[0]?.text,
    );
    expect(choices.at(-1)?.finish_reason).toBe(whole.choices[0]?.finish_reason);
    expect(chunks.at(-1)?.usage).toEqual(whole.usage);
    expect(new Set(chunks.map(({ id }) => id))).toEqual(new Set([whole.id]));
    expect(pieces.at(-1)).toMatchObject({ kind: "done", data: "[DONE]" });
  },
);

test("the prompt becomes one message; unsupported parameters are named", () => {
  const body = {
    ...BODY,
    max_tokens: 5,
    suffix: "end",
    echo: false,
    best_of: 3,
    logprobs: 2,
  };
  expect(completionsShape.chatBody(body, testDeployment())).toEqual({
    body: {
      model: "alias",
      max_tokens: 5,
      messages: [{ role: "user", content: "Once" }],
    },
    lacks: ["suffix", "best_of", "logprobs"],
  });
});

test.each([[["a", "b"]], [[1, 2]], [undefined]])(
  "the prompt %j is rejected by name",
  (prompt) => {
    expect(() =>
      completionsShape.chatBody({ model: "alias", prompt }, testDeployment()),
    ).toThrow(CallError);
  },
);
