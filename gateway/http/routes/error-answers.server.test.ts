import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  MASTER_KEY,
  modelYaml,
  startTestbed,
  type Testbed,
  type TestAnswer,
  type TestGateway,
} from "../../../test/servers/gateway.ts";

let testbed: Testbed;
let gateway: TestGateway;

const FAILING = `
  - model_name: cloud
    provider_params: { model: openai/gpt-4o, api_key: os.environ/HEARTH_TEST_UNSET_KEY }
  - model_name: gone
    provider_params: { model: openai/gone, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 0 }
`;

beforeAll(async () => {
  testbed = await startTestbed((url) => modelYaml(url, FAILING));
  ({ gateway } = testbed);
});

afterAll(() => testbed?.stop());

test("an upstream failure keeps its status and message, without the provider's key", async () => {
  const key = await gateway.createKey({});
  const failed = await gateway.chat(
    key,
    '[mock]{"status":400,"error":{"message":"bad key provider-secret-key for model"}}',
  );
  expect(failed.status).toBe(400);
  expect(failed.json["error"]).toMatchObject({
    type: "upstream_error",
    message: "mock: bad key [secret] for model",
  });
  const gone = await gateway.chat(key, "x", { model: "gone" });
  expect(gone.status).toBe(502);
  expect(gone.json["error"]?.["message"]).toContain("cannot be reached");
});

test("OpenAI's client does not repeat a call of a pending model", async () => {
  let calls = 0;
  const client = new OpenAI({
    apiKey: MASTER_KEY,
    baseURL: `${gateway.url}/v1`,
    fetch: (...request) => {
      calls += 1;
      return fetch(...request);
    },
  });
  const messages = [{ role: "user" as const, content: "x" }];
  await expect(
    client.chat.completions.create({ model: "cloud", messages }),
  ).rejects.toThrow("pending");
  expect(calls).toBe(1);
});

test("errors show internal addresses to operators only", async () => {
  const key = await gateway.createKey({ user_id: "curious" });
  const ADDRESS = /127\.0\.0\.1|10\.0\.0\.5/;
  const error = { message: "dial 10.0.0.5:8000: see https://example.com/help" };
  const rejected = `[mock]${JSON.stringify({ status: 400, error })}`;
  const broken = '[mock]{"chunks":3,"cutAfter":1}';
  const gone = (who: string) => gateway.chat(who, "x", { model: "gone" });
  for (const call of [
    gone(key),
    gateway.chat(key, rejected),
    gateway.chat(key, broken, { stream: true }),
  ]) {
    const { text } = await call;
    expect(text).toContain("the provider");
    expect(text).not.toMatch(ADDRESS);
  }
  expect((await gone(MASTER_KEY)).text).toMatch(ADDRESS);
  const logs = async (who: string) =>
    (
      await gateway.request(
        "GET",
        "/spend/logs?user_id=curious",
        undefined,
        who,
      )
    ).text;
  await expect.poll(() => logs(MASTER_KEY)).toMatch(/10\.0\.0\.5/);
  expect(await logs(MASTER_KEY)).toMatch(/"api_base":"http:\/\/127/);
  const own = (await logs(key)).replaceAll(
    /"requester_ip_address":"[^"]*"/g,
    "",
  );
  expect(own).toContain("https://example.com/help");
  expect(own).not.toMatch(ADDRESS);
});

const ERRORS: readonly (readonly [
  string,
  () => Promise<TestAnswer>,
  number,
  object,
])[] = [
  [
    "no key",
    () => gateway.request("GET", "/v1/models", undefined, ""),
    401,
    { type: "auth_error" },
  ],
  [
    "a malformed key",
    () => gateway.request("GET", "/v1/models", undefined, "abc"),
    401,
    { type: "auth_error" },
  ],
  [
    "an unknown key",
    () =>
      gateway.request(
        "GET",
        "/v1/models",
        undefined,
        "sk-1234567890123456789abcd",
      ),
    401,
    {
      type: "token_not_found_in_db",
      message: expect.stringMatching(/ending in abcd /),
    },
  ],
  [
    "bad JSON",
    () => gateway.request("POST", "/v1/chat/completions", "{nonsense"),
    400,
    {
      type: "invalid_request_error",
      message: expect.stringMatching(/^The body is not valid JSON/),
    },
  ],
  [
    "a compressed body",
    () =>
      gateway.request("POST", "/v1/chat/completions", {}, undefined, {
        "content-encoding": "gzip",
      }),
    400,
    {
      type: "invalid_request_error",
      message: expect.stringMatching(/^Compressed bodies are not supported/),
    },
  ],
  [
    "no model",
    () => gateway.request("POST", "/v1/chat/completions", {}),
    400,
    { param: "model" },
  ],
  [
    "an unknown alias",
    () => gateway.chat(MASTER_KEY, "x", { model: "no-such-model" }),
    400,
    {
      message: expect.stringMatching(
        /^Invalid model name passed in model=no-such-model. Call `\/v1\/models`/,
      ),
    },
  ],
  [
    "a misspelt alias",
    () => gateway.chat(MASTER_KEY, "x", { model: "mokc" }),
    400,
    {
      message:
        "Invalid model name passed in model=mokc. Did you mean mock? Call `/v1/models` to see the models that this key may use.",
    },
  ],
  [
    "an empty list",
    () => gateway.chat(MASTER_KEY, "x", { messages: [] }),
    400,
    { message: "`messages` must have at least 1 item." },
  ],
  [
    "a number below its limit",
    () => gateway.chat(MASTER_KEY, "x", { max_tokens: -5 }),
    400,
    { message: "`max_tokens` must be at least 1." },
  ],
  [
    "wrong types",
    () => gateway.chat(MASTER_KEY, "x", { messages: "text" }),
    400,
    { type: "invalid_request_error", param: "messages" },
  ],
  [
    "a wrong type deep inside",
    () => gateway.chat(MASTER_KEY, "x", { messages: [{ role: 3 }] }),
    400,
    { param: "messages[0].role" },
  ],
  [
    "a pending alias",
    () => gateway.chat(MASTER_KEY, "x", { model: "cloud" }),
    503,
    { type: "model_pending" },
  ],
  [
    "an unknown route",
    () => gateway.request("GET", "/nope"),
    404,
    { type: "not_found" },
  ],
  [
    "an API that does not exist here",
    () => gateway.request("POST", "/v1/files", {}),
    404,
    {
      type: "not_found",
      message:
        "Files are not supported: send their content in the message that refers to them.",
    },
  ],
  [
    "an address of a route for a client that adds it",
    () => gateway.request("POST", "/v1/chat/completions/chat/completions", {}),
    404,
    {
      message:
        "Route POST /v1/chat/completions/chat/completions not found. The client adds /chat/completions itself: remove it from the address that the client is given.",
    },
  ],
  [
    "an existing user",
    async () => {
      const create = () =>
        gateway.request("POST", "/user/new", { user_id: "twice" });
      await create();
      return create();
    },
    409,
    { message: "This user already exists. Update it instead." },
  ],
  [
    "a rate above all numbers",
    () => gateway.request("POST", "/key/generate", { rpm_limit: 1e20 }),
    400,
    { message: "`rpm_limit` must be at most 9,007,199,254,740,991." },
  ],
  [
    "a negative budget",
    () => gateway.request("POST", "/key/generate", { max_budget: -1 }),
    400,
    { param: "max_budget" },
  ],
  [
    "a malformed duration",
    () => gateway.request("POST", "/key/generate", { duration: "soon" }),
    400,
    { param: "duration" },
  ],
  [
    "an unknown user",
    () => gateway.request("GET", "/user/info?user_id=nobody"),
    404,
    { param: "user_id" },
  ],
];

test.each(ERRORS)("%s is explained", async (_, ask, status, error) => {
  const answer = await ask();
  expect(answer.status).toBe(status);
  expect(answer.json["error"]).toMatchObject({
    ...error,
    code: String(status),
  });
});
