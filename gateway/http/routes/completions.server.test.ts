import { afterAll, beforeAll, expect, test } from "vitest";
import {
  modelYaml,
  OUTPUT_PRICE,
  startTestbed,
  type Testbed,
} from "../../../test/servers/gateway.ts";

let strict: Testbed;

beforeAll(async () => {
  strict = await startTestbed(
    (url) => `${modelYaml(url)}general_settings: { budget_mode: strict }\n`,
  );
});

afterAll(() => strict?.stop());

test.each([
  ["several prompts", { prompt: ["a", "b", "c"] }],
  ["several prompts of token numbers", { prompt: [[1], [2], [3]] }],
  ["the best of several answers", { prompt: "a", best_of: 3 }],
])(
  "a call for %s is rejected where the budget is too small for all of them",
  async (_what, fields) => {
    const { gateway } = strict;
    const key = await gateway.createKey({ max_budget: 250 * OUTPUT_PRICE });
    const complete = (body: object) =>
      gateway.request(
        "POST",
        "/v1/completions",
        { model: "mock", max_tokens: 100, ...body },
        key,
      );
    expect((await complete(fields)).json["error"]).toMatchObject({
      type: "budget_exceeded",
    });
    for (const prompt of ["a", [1, 2, 3]]) {
      expect((await complete({ prompt })).status).toBe(200);
    }
  },
);

test("a number of answers to choose from without a limit is rejected", async () => {
  const { status, json } = await strict.gateway.request(
    "POST",
    "/v1/completions",
    { model: "mock", prompt: ["a", "b"], best_of: Number.MAX_VALUE },
  );
  expect(status).toBe(400);
  expect(json["error"]).toMatchObject({ param: "best_of" });
});

test.each([
  ["/v1/chat/completions", { messages: [{ role: "user", content: "a" }] }],
  ["/v1/completions", { prompt: "a" }],
])(
  "%s: -1, which stands for no limit at llama.cpp and LM Studio, is sent to no provider",
  async (path, body) => {
    const { status } = await strict.gateway.request("POST", path, {
      model: "mock",
      max_tokens: -1,
      ...body,
    });
    expect(status).toBe(200);
    expect(strict.provider.requests.at(-1)?.body).not.toHaveProperty(
      "max_tokens",
    );
  },
);

test("a prompt may be rated without an answer", async () => {
  const rated = await strict.gateway.request("POST", "/v1/completions", {
    model: "mock",
    prompt: "a",
    max_tokens: 0,
    echo: true,
    logprobs: 1,
  });
  expect(rated.status).toBe(200);
  expect(strict.provider.requests.at(-1)?.body).toMatchObject({
    max_tokens: 0,
    echo: true,
  });
});
