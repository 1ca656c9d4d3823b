import OpenAI, { APIError } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { modelYaml, type TestGateway } from "../../servers/gateway.ts";
import { hasRedisServer } from "../../servers/redis.ts";
import { caught } from "../testbed.ts";
import { startTwoInstances, type TwoInstances } from "./two-instances.ts";

// Errors, lists and shapes as LiteLLM's clients read them: https://docs.litellm.ai/docs/proxy/response_headers,
// https://docs.litellm.ai/docs/proxy/user_keys, https://docs.litellm.ai/docs/proxy/customers
describe.runIf(hasRedisServer())("shapes of LiteLLM's dialect", () => {
  let both: TwoInstances;

  beforeAll(async () => {
    both = await startTwoInstances(
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

  afterAll(() => both?.stop());

  function clientOf(apiKey: string, { url }: TestGateway = both.other): OpenAI {
    return new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });
  }

  /** A client of the other instance, with a key that the first one created. */
  async function clientWith(fields: object = {}): Promise<OpenAI> {
    return clientOf(await both.one.createKey({ ...fields }));
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
    const key = await both.one.createKey({ max_budget: 5e-10 });
    const client = clientOf(key);
    await clientOf(key, both.one).chat.completions.create(hello("mock"));
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
    expect(ids).toEqual(
      expect.arrayContaining(["mine", "mock", "openai/gpt-4"]),
    );
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
    const client = new OpenAI({
      apiKey: "key-of-a-provider",
      baseURL: `${both.other.url}/v1`,
      defaultHeaders: { "x-litellm-api-key": await both.one.createKey() },
    });
    const answer = await client.chat.completions.create(hello("mock"));
    expect(answer.object).toBe("chat.completion");
  });

  test("a customer of a tier is found with the tier's limits", async () => {
    const budget_id = "tier";
    await both.one.request("POST", "/budget/new", { budget_id, max_budget: 3 });
    const user_id = "customer";
    await both.one.request("POST", "/customer/new", { user_id, budget_id });
    const { json } = await both.other.request(
      "GET",
      `/customer/info?end_user_id=${user_id}`,
    );
    expect(json).toMatchObject({
      user_id,
      litellm_budget_table: { budget_id, max_budget: 3 },
    });
  });
});
