import { afterAll, beforeAll, expect, test } from "vitest";
import {
  INPUT_PRICE,
  modelYaml,
  OUTPUT_PRICE,
  startTestbed,
  type Testbed,
} from "../../../test/servers/gateway.ts";
import { query } from "../../database/pool.ts";

let testbed: Testbed;

beforeAll(async () => {
  testbed = await startTestbed(
    (url) =>
      `${modelYaml(
        url,
        `
  - model_name: other
    provider_params: { model: openai/other, api_base: ${url}, api_key: x }
  - model_name: one, two
    provider_params: { model: openai/pair, api_base: ${url}, api_key: x }
`,
      )}proxy_settings: { litellm_headers: true, num_retries: 0 }\n`,
  );
});

afterAll(() => testbed?.stop());

const ONE_CALL = 10 * INPUT_PRICE + 4 * OUTPUT_PRICE;

test("several models answer a list, each as a call of its own", async () => {
  const { gateway, provider } = testbed;
  const key = await gateway.createKey({ max_budget: 1, rpm_limit: 2 });
  const before = provider.requests.length;
  const answer = await gateway.chat(key, "hello", { model: "mock, other" });
  expect(answer.status).toBe(200);
  expect(answer.json).toMatchObject([
    { object: "chat.completion", choices: [{ message: {} }] },
    { object: "chat.completion", choices: [{ message: {} }] },
  ]);
  const asked = provider.requests.slice(before);
  expect(asked.map(({ body }) => body["model"]).sort()).toEqual([
    "mock-model",
    "other",
  ]);
  const ids = answer.headers.get("x-hearth-call-id")?.split(", ") ?? [];
  expect(ids.toSorted()).toEqual(asked.map(({ id }) => id).sort());
  expect(answer.headers.get("x-litellm-call-id")?.split(", ")).toEqual(ids);
  expect(Number(answer.headers.get("x-hearth-cost"))).toBeCloseTo(ONE_CALL, 9);
  await gateway.running.gateway.ledger.flush();
  const rows = await query<{ model_group: string }>(
    gateway.running.gateway.pool,
    "SELECT model_group FROM spend_log WHERE request_id = ANY($1) ORDER BY 1",
    [ids],
  );
  expect(rows).toEqual([{ model_group: "mock" }, { model_group: "other" }]);
  // Both requests of the minute are used.
  const third = await gateway.chat(key, "third", { model: "mock,other" });
  expect(third.status).toBe(429);
  expect(Number(third.headers.get("retry-after"))).toBeGreaterThan(0);
});

test("an error takes the place of the answer of its model, and is the answer if all fail", async () => {
  const { gateway } = testbed;
  const key = await gateway.createKey({ models: ["mock"] });
  const mixed = await gateway.chat(key, "hello", { model: "other,mock" });
  expect(mixed.status).toBe(200);
  expect(mixed.json).toMatchObject([
    { error: { type: "key_model_access_denied", code: "403" } },
    { object: "chat.completion" },
  ]);
  const failed = await gateway.chat(key, "hello", { model: "other,none" });
  expect(failed.status).toBe(403);
  expect(failed.json["error"]).toMatchObject({
    type: "key_model_access_denied",
  });
});

test.each([
  [{ model: "mock,other", stream: true }, "stream"],
  [{ model: "mock,other", fastest_response: true }, "fastest_response"],
  [{ model: "mock," }, "model"],
  [{ model: Array(11).fill("mock").join() }, "model"],
])("%j is rejected and names %s", async (fields, param) => {
  const { gateway, provider } = testbed;
  const key = await gateway.createKey();
  const before = provider.requests.length;
  const rejected = await gateway.chat(key, "hello", fields);
  expect(rejected.status).toBe(400);
  expect(rejected.json["error"]).toMatchObject({ param });
  expect(provider.requests.length).toBe(before);
});

test("an alias with a comma in its name is one model", async () => {
  const { gateway } = testbed;
  const key = await gateway.createKey();
  const { json } = await gateway.chat(key, "hello", { model: "one, two" });
  expect(json).toMatchObject({ object: "chat.completion" });
});

test("a large prompt that is rejected for each model is answered", async () => {
  const { gateway } = testbed;
  const key = await gateway.createKey({ models: ["none"] });
  const prompt = "long ".repeat(500_000);
  const rejected = await gateway.chat(key, prompt, { model: "mock,other" });
  expect(rejected.status).toBe(403);
  const { status } = await gateway.chat(key, "hello", { model: "mock" });
  expect(status).toBe(403);
});
