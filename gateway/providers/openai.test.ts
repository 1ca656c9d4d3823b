import { expect, test } from "vitest";
import { openaiRequest } from "./openai.ts";
import { testDeployment } from "./stream-fixture.ts";

const LOCAL = { providerName: "ollama", model: "qwen3:8b" };
const AZURE = { provider: "azure", providerName: "azure" } as const;
const REASONING = { model: "gpt-5-mini" };

test.each([
  ["OpenAI's reasoning models", REASONING, "max_completion_tokens"],
  [
    "a deployment of Azure with one",
    { ...AZURE, model: "mine", baseModel: "o4-mini" },
    "max_completion_tokens",
  ],
  ["Ollama", LOCAL, "max_tokens"],
  ["Mistral", { providerName: "mistral", model: "large" }, "max_tokens"],
  [
    "a local server of OpenAI's API",
    { model: "gpt-oss-20b", local: true },
    "max_tokens",
  ],
])("%s get the limit of a chat by the name they read", (_, fields, name) => {
  const sentOf = (body: object, defaults: Record<string, unknown> = {}) =>
    openaiRequest(
      "chat",
      { model: "alias", ...body },
      testDeployment({ ...fields, defaults }),
      false,
    );
  const model = testDeployment(fields).model;
  expect(sentOf({ max_tokens: 7 })).toEqual({ model, [name]: 7 });
  expect(sentOf({ max_completion_tokens: 7 })).toEqual({ model, [name]: 7 });
  const both = { max_completion_tokens: 7, max_tokens: 9 };
  expect(sentOf(both)).toEqual({ model, [name]: 7 });
  expect(sentOf({}, { max_tokens: 5 })).toEqual({ model, [name]: 5 });
  expect(sentOf({ max_tokens: 7 }, { max_completion_tokens: 5 })).toEqual({
    model,
    [name]: 7,
  });
  expect(sentOf({})).toEqual({ model });
});

test("other models of OpenAI's API read both names, and legacy completions only the old one", () => {
  const body = { model: "alias", max_tokens: 7 };
  expect(openaiRequest("chat", body, testDeployment(), false)).toEqual({
    model: "model-1",
    max_tokens: 7,
  });
  const reasoning = testDeployment(REASONING);
  expect(openaiRequest("completions", body, reasoning, false)).toEqual({
    model: "gpt-5-mini",
    max_tokens: 7,
  });
});
