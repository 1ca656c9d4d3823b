import OpenAI, { APIError } from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  modelYaml,
  startTestbed,
  type Testbed,
} from "../../servers/gateway.ts";
import { caught } from "../testbed.ts";

// Errors, lists and shapes as LiteLLM's clients read them: https://docs.litellm.ai/docs/proxy/response_headers,
// https://docs.litellm.ai/docs/proxy/user_keys, https://docs.litellm.ai/docs/proxy/customers
let testbed: Testbed;

beforeAll(async () => {
  testbed = await startTestbed(
    (url) =>
      `${modelYaml(
        url,
        `
  - model_name: openai/*
    litellm_params: { model: openai/*, api_base: ${url}, api_key: x }
    model_info: { access_groups: [open-models] }
`,
      )}litellm_settings: { litellm_headers: true, num_retries: 0 }\n`,
  );
});

afterAll(() => testbed?.stop());

function clientOf(apiKey: string): OpenAI {
  const baseURL = `${testbed.gateway.url}/v1`;
  return new OpenAI({ apiKey, baseURL, maxRetries: 0 });
}

async function clientWith(fields: object = {}): Promise<OpenAI> {
  return clientOf(await testbed.gateway.createKey({ ...fields }));
}

const hello = (model: string, content = "hello") => ({
  model,
  messages: [{ role: "user" as const, content }],
});

async function errorOf(client: OpenAI, model: string, content?: string) {
  const error = await caught(
    client.chat.completions.create(hello(model, content)),
  );
  expect(error).toBeInstanceOf(APIError);
  return error as APIError;
}

test("the client's error of a used-up budget has the figures last, and LiteLLM's headers", async () => {
  const client = await clientWith({ max_budget: 5e-10 });
  await client.chat.completions.create(hello("mock"));
  const { status, message, headers } = await errorOf(client, "mock");
  expect(status).toBe(400);
  const [, max] = /Max budget: (.*)$/.exec(message) ?? [];
  expect(Number(max)).toBe(5e-10);
  for (const name of [
    "call-id",
    "model-group",
    "key-spend",
    "key-max-budget",
  ]) {
    expect(headers?.get(`x-litellm-${name}`)).toBeTruthy();
  }
});

test("the client's error of a provider names LiteLLM's class, the deployment and the attempts", async () => {
  const client = await clientWith();
  const prompt = '[mock]{"status":400,"error":"bad input"}';
  const { message, headers } = await errorOf(client, "mock", prompt);
  expect(message).toContain("litellm.BadRequestError: ");
  expect(headers?.get("x-litellm-model-id")).toBeTruthy();
  expect(headers?.get("x-litellm-attempted-retries")).toBe("0");
});

test.each([
  [{ models: ["openai/*"] }, "mock", "key not allowed to access model"],
  [{ models: ["open-models"] }, "mock", "key not allowed to access model"],
])("%j does not call %s", async (fields, model, says) => {
  const error = await errorOf(await clientWith(fields), model);
  expect(error.status).toBe(403);
  expect(error.message).toContain(says);
});

test.each([{ models: ["openai/*"] }, { models: ["open-models"] }, {}])(
  "%j calls a model of the wildcard with and without the provider's name",
  async (fields) => {
    const client = await clientWith(fields);
    for (const model of ["openai/gpt-4", "gpt-4"]) {
      const answer = await client.chat.completions.create(hello(model));
      expect(answer.choices[0]?.message.content).toBeTruthy();
    }
  },
);

test("the client lists a key's own names and the models of a wildcard", async () => {
  const client = await clientWith({ aliases: { mine: "mock" } });
  const ids = (await client.models.list()).data.map(({ id }) => id);
  expect(ids).toEqual(expect.arrayContaining(["mine", "mock", "openai/gpt-4"]));
});

test("one chat with two models gets two answers", async () => {
  const client = await clientWith();
  const answers = (await client.chat.completions.create(
    hello("mock, gpt-4"),
  )) as unknown as readonly OpenAI.ChatCompletion[];
  expect(answers.map(({ object }) => object)).toEqual([
    "chat.completion",
    "chat.completion",
  ]);
});

test("a key of x-litellm-api-key is used, whatever the client's own key is", async () => {
  const { gateway } = testbed;
  const client = new OpenAI({
    apiKey: "key-of-a-provider",
    baseURL: `${gateway.url}/v1`,
    defaultHeaders: { "x-litellm-api-key": await gateway.createKey() },
  });
  const answer = await client.chat.completions.create(hello("mock"));
  expect(answer.object).toBe("chat.completion");
});

test("a customer of a tier is found with the tier's limits", async () => {
  const { gateway } = testbed;
  const budget_id = "tier";
  await gateway.request("POST", "/budget/new", { budget_id, max_budget: 3 });
  const user_id = "customer";
  await gateway.request("POST", "/customer/new", { user_id, budget_id });
  const { json } = await gateway.request(
    "GET",
    `/customer/info?end_user_id=${user_id}`,
  );
  expect(json).toMatchObject({
    user_id,
    litellm_budget_table: { budget_id, max_budget: 3 },
  });
});
