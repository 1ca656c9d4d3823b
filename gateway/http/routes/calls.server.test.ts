import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import {
  INPUT_PRICE,
  modelYaml,
  OUTPUT_PRICE,
  startTestbed,
  type Testbed,
  type TestGateway,
} from "../../../test/servers/gateway.ts";
import type { MockProvider } from "../../../test/servers/provider.ts";
import { query } from "../../database/pool.ts";

let testbed: Testbed;
let gateway: TestGateway;
let provider: MockProvider;

const PENDING = `
  - model_name: cloud
    provider_params: { model: openai/gpt-4o, api_key: os.environ/HEARTH_TEST_UNSET_KEY }
  - model_name: gone
    provider_params: { model: openai/gone, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 0 }
`;

beforeAll(async () => {
  testbed = await startTestbed(
    (url) => `${modelYaml(url, PENDING)}proxy_settings: { cache: true }\n`,
  );
  ({ gateway, provider } = testbed);
});

afterAll(() => testbed?.stop());

const ONE_CALL = 10 * INPUT_PRICE + 4 * OUTPUT_PRICE;

function client(apiKey: string): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
}

async function ledgerRow(
  callId: string | null,
): Promise<Record<string, unknown>> {
  await gateway.running.gateway.ledger.flush();
  const [row] = await query<Record<string, unknown>>(
    gateway.running.gateway.pool,
    "SELECT * FROM spend_log WHERE request_id = $1",
    [callId],
  );
  return row ?? {};
}

test("a chat call is answered, priced and recorded, and its spend shown", async () => {
  const key = await gateway.createKey({ user_id: "alice", models: ["mock"] });
  const answer = await gateway.chat(key, "hello");
  expect(answer.status).toBe(200);
  expect(answer.json["choices"]?.[0]?.["message"]?.["content"]).toBe(
    "four words in here",
  );
  expect(Number(answer.headers.get("x-hearth-cost"))).toBeCloseTo(ONE_CALL, 12);
  expect(answer.headers.get("x-hearth-cache")).toBe("miss");
  const row = await ledgerRow(answer.headers.get("x-hearth-call-id"));
  expect(row).toMatchObject({
    status: "success",
    user_id: "alice",
    model_group: "mock",
    model: "mock-model",
    prompt_tokens: 10,
    completion_tokens: 4,
    response_id: "chatcmpl-mock",
  });
  const info = await gateway.request("GET", "/user/info?user_id=alice");
  expect(info.json["user_info"]?.["spend"]).toBeCloseTo(ONE_CALL, 12);
  expect(info.json["keys"]?.[0]?.["spend"]).toBeCloseTo(ONE_CALL, 12);
});

test("the provider sees its own key, our call id, and none of our fields", async () => {
  const key = await gateway.createKey({ user_id: "bob" });
  const answer = await gateway.chat(key, "fields", {
    tags: ["x"],
    metadata: { tags: ["y"], purpose: "kept" },
    store: true,
    cache: { "no-store": true },
    timeout: 3,
    top_p: 0.5,
  });
  const seen = provider.requests.find(
    ({ id }) => id === answer.headers.get("x-hearth-call-id"),
  );
  expect(seen?.headers.authorization).toBe("Bearer provider-secret-key");
  expect(seen?.body).toEqual({
    model: "mock-model",
    messages: [{ role: "user", content: "fields" }],
    metadata: { purpose: "kept" },
    store: true,
    top_p: 0.5,
  });
});

test("headers show the call and the time spent in the gateway", async () => {
  const key = await gateway.createKey({ max_budget: 2, models: ["mock"] });
  const answer = await gateway.chat(key, '[mock]{"delayMs":80}');
  const number = (name: string) => Number(answer.headers.get(name));
  expect(number("x-hearth-duration-ms")).toBeGreaterThanOrEqual(75);
  expect(
    number("x-hearth-duration-ms") - number("x-hearth-overhead-ms"),
  ).toBeGreaterThanOrEqual(75);
  expect(answer.headers.get("x-litellm-call-id")).toBeNull();
  const names = [...answer.headers.keys()].filter((name) =>
    name.startsWith("x-hearth-"),
  );
  expect(names.sort()).toEqual(
    [
      "call-id",
      "model-id",
      "model-group",
      "provider",
      "cost",
      "cache",
      "cache-key",
      "attempted-retries",
      "attempted-fallbacks",
      "duration-ms",
      "overhead-ms",
    ]
      .map((name) => `x-hearth-${name}`)
      .sort(),
  );
});

test("a stream of the openai client is billed by usage it did not request", async () => {
  const key = await gateway.createKey({ user_id: "carol" });
  const { data: stream, response } = await client(key)
    .chat.completions.create({
      model: "mock",
      stream: true,
      messages: [{ role: "user", content: "stream" }],
    })
    .withResponse();
  let text = "";
  for await (const chunk of stream) {
    expect(chunk.choices.length).toBe(1);
    text += chunk.choices[0]?.delta.content ?? "";
  }
  expect(text).toBe("word0 word1 word2 word3 ");
  expect(
    await ledgerRow(response.headers.get("x-hearth-call-id")),
  ).toMatchObject({ completion_tokens: 4, status: "success" });
  const usage = await client(key).chat.completions.create({
    model: "mock",
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: "user", content: "stream" }],
  });
  const usages = [];
  for await (const chunk of usage) {
    if (chunk.usage) {
      usages.push(chunk.usage.completion_tokens);
    }
  }
  expect(usages).toEqual([4]);
});

test("a stream without usage is counted, not free", async () => {
  const key = await gateway.createKey({ user_id: "dora" });
  const answer = await gateway.chat(key, '[mock]{"usage":null,"chunks":6}', {
    stream: true,
  });
  expect(answer.text.trimEnd().endsWith("data: [DONE]")).toBe(true);
  const row = await ledgerRow(answer.headers.get("x-hearth-call-id"));
  expect(row["completion_tokens"]).toBeGreaterThanOrEqual(6);
  expect(row["spend"]).toBeGreaterThan(0);
});

test("a client that leaves mid-stream pays for what was produced, and the provider is stopped", async () => {
  const key = await gateway.createKey({ user_id: "erik" });
  const aborter = new AbortController();
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    signal: aborter.signal,
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({
      model: "mock",
      stream: true,
      messages: [
        { role: "user", content: '[mock]{"chunks":200,"chunkDelayMs":20}' },
      ],
    }),
  });
  const id = answer.headers.get("x-hearth-call-id");
  await answer.body?.getReader().read();
  aborter.abort();
  await expect
    .poll(() => provider.requests.find((seen) => seen.id === id)?.aborted)
    .toBe(true);
  await expect
    .poll(async () => (await ledgerRow(id))["status"])
    .toBe("success");
  const row = await ledgerRow(id);
  expect(row["spend"]).toBeGreaterThan(0);
  expect(row["metadata"]).toMatchObject({ client_disconnected: true });
});

test("a stream cut by the provider ends with an error event and is billed", async () => {
  const key = await gateway.createKey({ user_id: "fred" });
  const answer = await gateway.chat(
    key,
    '[mock]{"chunks":8,"cutAfter":3,"chunkDelayMs":5}',
    { stream: true },
  );
  expect(answer.text).toContain('"type":"upstream_error"');
  const row = await ledgerRow(answer.headers.get("x-hearth-call-id"));
  expect(row).toMatchObject({ status: "failure" });
  expect(row["spend"]).toBeGreaterThan(0);
});

test("a repeated call is a hit without cost, for the same tenant only", async () => {
  const [one, other] = await Promise.all([
    gateway.createKey({ user_id: "gina" }),
    gateway.createKey({ user_id: "hugo" }),
  ]);
  const first = await gateway.chat(one, "cache me");
  const again = await gateway.chat(one, "cache me");
  const strange = await gateway.chat(other, "cache me");
  expect(
    [first, again, strange].map((answer) =>
      answer.headers.get("x-hearth-cache"),
    ),
  ).toEqual(["miss", "hit", "miss"]);
  expect(again.json).toEqual(first.json);
  expect(again.headers.get("x-hearth-cost")).toBe("0");
  const row = await ledgerRow(again.headers.get("x-hearth-call-id"));
  expect(row).toMatchObject({ cache_hit: true, spend: 0 });
  expect(row["saved"]).toBeCloseTo(ONE_CALL, 12);
  const ping = await gateway.request("GET", "/cache/ping");
  expect(ping.json).toMatchObject({
    status: "healthy",
    ping_response: true,
    set_cache_response: "success",
  });
  const fresh = await gateway.request(
    "POST",
    "/v1/chat/completions",
    { model: "mock", messages: [{ role: "user", content: "cache me" }] },
    one,
    { "cache-control": "no-cache" },
  );
  expect(fresh.headers.get("x-hearth-cache")).toBe("miss");
});

test("streams are replayed from the cache as streams", async () => {
  const key = await gateway.createKey({ user_id: "ines" });
  const first = await gateway.chat(key, "stream me", { stream: true });
  const again = await gateway.chat(key, "stream me", { stream: true });
  expect(again.headers.get("x-hearth-cache")).toBe("hit");
  expect(again.headers.get("content-type")).toBe(
    first.headers.get("content-type"),
  );
  expect(again.text).toBe(first.text);
});

test("concurrent identical calls are sent once; the others are hits without cost", async () => {
  const key = await gateway.createKey({ user_id: "lena" });
  const before = provider.requests.length;
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      gateway.chat(key, '[mock]{"delayMs":300}'),
    ),
  );
  expect(provider.requests.length - before).toBe(1);
  const caches = answers.map((answer) => answer.headers.get("x-hearth-cache"));
  expect(caches.toSorted()).toEqual(
    ["miss", ...Array(19).fill("hit")].toSorted(),
  );
  const streams = await Promise.all(
    Array.from({ length: 5 }, () =>
      gateway.chat(key, '[mock]{"chunkDelayMs":50}', { stream: true }),
    ),
  );
  expect(new Set(streams.map((answer) => answer.text)).size).toBe(1);
  expect(provider.requests.length - before).toBe(2);
});

test("a failure is not shared: each of the other calls is sent", async () => {
  const key = await gateway.createKey({ user_id: "mona" });
  const answers = await Promise.all(
    Array.from({ length: 3 }, () =>
      gateway.chat(key, '[mock]{"delayMs":100,"status":400}'),
    ),
  );
  expect(answers.map((answer) => answer.status)).toEqual([400, 400, 400]);
});

test("the call continues for the others when the first client leaves", async () => {
  const key = await gateway.createKey({ user_id: "nina" });
  const prompt = '[mock]{"chunks":10,"chunkDelayMs":60}';
  const aborter = new AbortController();
  const first = fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    signal: aborter.signal,
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: "mock",
      stream: true,
      messages: [{ role: "user", content: prompt }],
    }),
  });
  const firstResponse = await first;
  const second = gateway.chat(key, prompt, { stream: true });
  await sleep(150);
  await firstResponse.body?.cancel();
  aborter.abort();
  const answer = await second;
  expect(answer.headers.get("x-hearth-cache")).toBe("hit");
  expect(answer.text).toContain("word9");
});

test("embeddings are answered, priced and cached", async () => {
  const key = await gateway.createKey({ user_id: "jana" });
  const made = await client(key).embeddings.create({
    model: "mock",
    input: ["one", "two"],
    encoding_format: "float",
  });
  expect(made.data.map((item) => item.embedding.length)).toEqual([3, 3]);
  const again = await client(key)
    .embeddings.create({
      model: "mock",
      input: ["one", "two"],
      encoding_format: "float",
    })
    .withResponse();
  expect(again.response.headers.get("x-hearth-cache")).toBe("hit");
});

test("a used-up budget denies the next, different call", async () => {
  const key = await gateway.createKey({ user_id: "karl", max_budget: 0.00001 });
  const first = await gateway.chat(key, "first");
  expect(first.status).toBe(200);
  const second = await gateway.chat(key, "second, different");
  expect(second.status).toBe(400);
  expect(second.headers.get("x-should-retry")).toBe("false");
  expect(second.json["error"]).toEqual({
    message:
      "Budget has been exceeded! Current cost: 0.000018, Max budget: 0.00001",
    type: "budget_exceeded",
    param: null,
    code: "400",
  });
  expect(
    (await gateway.request("GET", "/v1/models", undefined, key)).status,
  ).toBe(200);
});

test("a budget of 0 denies the first call", async () => {
  const key = await gateway.createKey({ max_budget: 0 });
  expect((await gateway.chat(key, "any")).json["error"]?.["type"]).toBe(
    "budget_exceeded",
  );
});

test("models are listed by what the key may use, pending ones as such", async () => {
  const all = await gateway.request("GET", "/v1/models");
  expect(all.json["data"]).toMatchObject([
    { id: "cloud", status: "pending" },
    { id: "gone", status: "ready" },
    { id: "mock", status: "ready" },
  ]);
  const ready = await gateway.request("GET", "/v1/models?ready=true");
  expect(ready.json["data"]).toMatchObject([{ id: "gone" }, { id: "mock" }]);
  expect((await gateway.request("GET", "/v1/models?ready=maybe")).status).toBe(
    400,
  );
  const key = await gateway.createKey({ models: ["mock"] });
  const own = await gateway.request("GET", "/v1/models", undefined, key);
  expect(own.json["data"]).toMatchObject([{ id: "mock" }]);
});

test("health lists healthy, unhealthy and pending deployments, without secrets", async () => {
  const health = await gateway.request("GET", "/health");
  expect(health.json).toMatchObject({
    healthy_endpoints: [{ model_name: "mock" }],
    unhealthy_endpoints: [{ model_name: "gone" }],
    pending_endpoints: [
      { model_name: "cloud", waits_for: "HEARTH_TEST_UNSET_KEY" },
    ],
    healthy_count: 1,
    unhealthy_count: 1,
  });
  expect(health.text).not.toContain("provider-secret-key");
  const requestsBefore = provider.requests.length;
  const deep = await gateway.request("GET", "/health?model=mock&deep=true");
  expect(deep.json["healthy_count"]).toBe(1);
  const { model_id: id } = deep.json["healthy_endpoints"]?.["0"] ?? {};
  const one = await gateway.request("GET", `/health?model_id=${String(id)}`);
  expect(one.json).toMatchObject({
    healthy_endpoints: [{ model_name: "mock", model_id: id }],
    healthy_count: 1,
    unhealthy_count: 0,
  });
  const none = await gateway.request("GET", "/health?model_id=none");
  expect(none.status).toBe(404);
  const unknown = await gateway.request("GET", "/health?model=mokc");
  expect([unknown.status, unknown.json["error"]]).toMatchObject([
    400,
    {
      message: expect.stringMatching(/^Invalid model name .* model=mokc\./),
      param: "model",
    },
  ]);
  expect(provider.requests.length).toBe(requestsBefore + 1);
  await gateway.running.gateway.ledger.flush();
  expect(
    await query(
      gateway.running.gateway.pool,
      "SELECT user_id, status FROM spend_log WHERE call_type = 'health_check'",
    ),
  ).toEqual([{ user_id: "default_user_id", status: "success" }]);
});

test("liveliness and readiness need no key", async () => {
  expect(
    (await gateway.request("GET", "/health/liveliness", undefined, "")).text,
  ).toBe(`"I'm alive!"`);
  const ready = await gateway.request(
    "GET",
    "/health/readiness",
    undefined,
    "",
  );
  expect(ready.json).toMatchObject({
    status: "connected",
    db: "connected",
    cache: "memory",
  });
});

test.each([
  "/",
  "/health/liveliness",
  "/health/readiness",
  "/docs",
  "/openapi.json",
])("monitors may ask for the headers of %s only", async (path) => {
  const answer = await gateway.request("HEAD", path, undefined, "");
  expect([answer.status, answer.text]).toEqual([200, ""]);
});

test("a client may ask for the headers of the list of models only, with its key", async () => {
  const answer = await gateway.request("HEAD", "/v1/models");
  expect([answer.status, answer.text]).toEqual([200, ""]);
  const denied = await gateway.request("HEAD", "/v1/models", undefined, "");
  expect(denied.status).toBe(401);
});

test("readiness names a full journal as the reason for its 503", async () => {
  const { journal } = gateway.running.gateway;
  vi.spyOn(journal, "state").mockReturnValue({
    ...journal.state(),
    full: true,
  });
  const { status, json } = await gateway.request("GET", "/health/readiness");
  vi.restoreAllMocks();
  expect({ status, json }).toMatchObject({
    status: 503,
    json: { status: "journal_full", db: "connected" },
  });
});

test("a virtual key cannot create keys", async () => {
  const key = await gateway.createKey({});
  const refused = await gateway.request("POST", "/key/generate", {}, key);
  expect(refused.status).toBe(403);
  expect(refused.json["error"]).toMatchObject({ type: "permission_denied" });
});

test("key type, allowed routes and role decide what a key may call", async () => {
  const management = await gateway.createKey({ key_type: "management" });
  const refused = await gateway.chat(management, "x");
  expect(refused.status).toBe(403);
  expect(refused.json["error"]?.["message"]).toContain("key_type");
  const embedder = await gateway.createKey({ allowed_routes: ["/embeddings"] });
  expect((await gateway.chat(embedder, "x")).status).toBe(403);
  expect(
    (
      await gateway.request(
        "POST",
        "/v1/embeddings",
        { model: "mock", input: "x" },
        embedder,
      )
    ).status,
  ).toBe(200);
  await gateway.request("POST", "/user/new", {
    user_id: "viewer",
    user_role: "internal_user_viewer",
    auto_create_key: false,
  });
  const viewer = await gateway.createKey({ user_id: "viewer" });
  expect((await gateway.chat(viewer, "x")).status).toBe(403);
  expect(
    (await gateway.request("GET", "/v1/models", undefined, viewer)).status,
  ).toBe(200);
});

test("Azure-style paths name the alias, errors of Messages have Anthropic's shape", async () => {
  const key = await gateway.createKey({});
  const azure = await gateway.request(
    "POST",
    "/openai/deployments/mock/chat/completions?api-version=2024-10-21",
    { messages: [{ role: "user", content: "x" }] },
    "",
    { "api-key": key },
  );
  expect(azure.status).toBe(200);
  const answer = await gateway.request(
    "POST",
    "/v1/messages",
    {
      model: "mock",
      max_tokens: 9,
      messages: [{ role: "user", content: "x" }],
    },
    "",
    { "x-api-key": key },
  );
  expect(answer.json).toMatchObject({
    type: "message",
    content: [{ type: "text", text: "four words in here" }],
  });
  const wrong = await gateway.request(
    "POST",
    "/v1/messages",
    { model: "mock" },
    key,
  );
  expect(wrong.json).toMatchObject({
    type: "error",
    error: { type: "invalid_request_error" },
  });
});

test("a duplicate alias is rejected and nothing is created", async () => {
  await gateway.createKey({ key_alias: "twice" });
  const again = await gateway.request("POST", "/key/generate", {
    key_alias: "twice",
    user_id: "never-made",
  });
  expect(again.status).toBe(400);
  expect(again.json["error"]).toMatchObject({ param: "key_alias" });
  expect(
    (await gateway.request("GET", "/user/info?user_id=never-made")).status,
  ).toBe(404);
});

test("all sums agree at the end", async () => {
  await gateway.running.gateway.ledger.flush();
  expect(
    await query(gateway.running.gateway.pool, "SELECT * FROM spend_check"),
  ).toEqual([]);
});
