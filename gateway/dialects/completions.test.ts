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

test("each choice of an answer is a choice of the completion, whole or streamed", () => {
  const head = { id: "chatcmpl-1", created: 1, model: "m" };
  const said = ["a", "b"].map((content, index) => ({
    index,
    finish_reason: "stop",
    message: { role: "assistant", content },
  }));
  const answer = Buffer.from(JSON.stringify({ ...head, choices: said }));
  const expected = ["a", "b"].map((text, index) => ({
    index,
    text,
    logprobs: null,
    finish_reason: "stop",
  }));
  const whole: unknown = JSON.parse(
    completionsShape.answer(answer, BODY).toString(),
  );
  expect(whole).toMatchObject({ choices: expected });
  const chunks = said.map(({ message: delta, ...choice }) => ({
    kind: "pass" as const,
    event: null,
    data: JSON.stringify({ ...head, choices: [{ ...choice, delta }] }),
  }));
  expect(
    passed(completionsShape.stream(BODY), chunks).flatMap(
      ({ data }) => (JSON.parse(data) as Completion).choices,
    ),
  ).toEqual(expected);
});

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
