import { expect, test } from "vitest";
import { errorInBody, errorInEvent } from "./answered-error.ts";
import { errorMessageOf } from "./error-message.ts";

const ERRORS: readonly (readonly [string, unknown, number, string])[] = [
  [
    "OpenRouter, before its model answered",
    {
      error: { code: 429, message: "Rate limited upstream", metadata: {} },
      user_id: "u",
    },
    429,
    "Rate limited upstream",
  ],
  [
    "OpenRouter, while its model answered",
    {
      id: "gen-1",
      choices: [
        {
          index: 0,
          finish_reason: "error",
          message: { role: "assistant", content: "So " },
          error: { code: 502, message: "Provider disconnected" },
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 1 },
    },
    502,
    "Provider disconnected",
  ],
  [
    "a code without a type",
    { error: { code: "insufficient_quota", message: "No credit" } },
    429,
    "No credit",
  ],
  ["only a sentence", { error: "model is loading" }, 502, "model is loading"],
  [
    "vLLM",
    {
      object: "error",
      message: "m is unknown",
      type: "NotFoundError",
      code: 404,
    },
    404,
    "m is unknown",
  ],
  [
    "Gemini's list",
    [{ error: { code: 503, message: "Overloaded", status: "UNAVAILABLE" } }],
    503,
    "Overloaded",
  ],
  [
    "Anthropic",
    {
      type: "error",
      error: { type: "overloaded_error", message: "Overloaded" },
    },
    503,
    "Overloaded",
  ],
  [
    "a failed response",
    {
      object: "response",
      status: "failed",
      error: { code: "server_error", message: "It failed" },
    },
    502,
    "It failed",
  ],
];

test.each(ERRORS)(
  "an error in a success: %s",
  (_, answer, status, sentence) => {
    const error = errorInBody(Buffer.from(JSON.stringify(answer)));
    expect(error?.status).toBe(status);
    expect(errorMessageOf(status, error?.text ?? "")).toBe(sentence);
    if (!Array.isArray(answer)) {
      expect(errorInEvent(JSON.stringify(answer))).toEqual(error);
    }
  },
);

test.each([
  { error: null, choices: [{ message: { content: "fine" } }] },
  { choices: [{ message: { content: 'say {"error": "x"}' } }] },
  {
    choices: [
      { finish_reason: "error", message: {} },
      { finish_reason: "stop", message: { content: "fine" } },
    ],
  },
  { object: "response", status: "incomplete", error: null },
  { object: "list", data: [{ embedding: [1] }], note: "error" },
  "error",
  null,
])("an answer without an error: %j", (answer) => {
  expect(errorInBody(Buffer.from(JSON.stringify(answer)))).toBeNull();
});

test("bytes that are not JSON are no error", () => {
  expect(errorInBody(Buffer.from('{"error"'))).toBeNull();
  expect(errorInEvent("[DONE]")).toBeNull();
});
