import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestbed, type Testbed } from "../../../test/servers/gateway.ts";

let testbed: Testbed;

beforeAll(async () => {
  testbed = await startTestbed();
});

afterAll(() => testbed?.stop());

async function count(body: object, key?: string) {
  const path = "/utils/token_counter";
  return testbed.gateway.request("POST", path, body, key);
}

async function total(body: object): Promise<number> {
  const { status, json } = await count({ model: "mock", ...body });
  expect(status).toBe(200);
  return Number(json["total_tokens"]);
}

const PROMPT = {
  messages: [{ role: "user", content: "How many tokens is this?" }],
};

test("messages are counted in LiteLLM's shape without a call to a provider", async () => {
  const { json } = await count({ model: "mock", ...PROMPT });
  expect(json).toEqual({
    total_tokens: expect.any(Number),
    request_model: "mock",
    model_used: "mock-model",
    tokenizer_type: "openai_tokenizer",
    count_source: "local_estimate",
    original_response: null,
    error: false,
    error_message: null,
    status_code: null,
  });
  expect(testbed.provider.requests).toHaveLength(0);
});

test("the count is that of Anthropic's route; tools and the system prompt add to it", async () => {
  const bare = await total(PROMPT);
  expect(await total(PROMPT)).toBe(bare);
  const other = await testbed.gateway.request(
    "POST",
    "/v1/messages/count_tokens",
    { model: "mock", ...PROMPT },
  );
  expect(bare).toBe(other.json["input_tokens"]);
  const tools = [
    { type: "function", function: { name: "look_up", parameters: {} } },
  ];
  expect(await total({ ...PROMPT, tools })).toBeGreaterThan(bare);
  expect(await total({ ...PROMPT, system: "Be brief." })).toBeGreaterThan(bare);
});

test("a prompt and Google's contents are counted too", async () => {
  expect(await total({ prompt: "one two three" })).toBe(3);
  const contents = [
    { role: "user", parts: [{ text: PROMPT.messages[0]?.content }] },
  ];
  expect(await total({ contents })).toBe(await total(PROMPT));
});

test("a long prompt is counted from samples, as messages are: in full it would take up to a minute", async () => {
  const prompt = "one two three four ".repeat(3_000);
  const messages = [{ role: "user", content: prompt }];
  // A message has four tokens of its own, and the start of an answer three.
  expect(await total({ prompt })).toBe((await total({ messages })) - 7);
});

test("a model that is not configured is counted by its name; one that the key may not use is denied", async () => {
  const { json } = await count({ model: "gpt-4o", prompt: "one two three" });
  expect(json).toMatchObject({ total_tokens: 3, model_used: "gpt-4o" });
  const key = await testbed.gateway.createKey({ models: ["other"] });
  const denied = await count({ model: "mock", ...PROMPT }, key);
  expect(denied.status).toBe(403);
});

test.each([
  [PROMPT, "model"],
  [{ model: "mock" }, "messages"],
  [{ model: "mock", messages: "hello" }, "messages"],
])("%j is rejected and names %s", async (body, param) => {
  const { status, json } = await count(body);
  expect([status, json["error"]?.["param"]]).toEqual([400, param]);
});
