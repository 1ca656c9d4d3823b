import { createServer, type Server, type ServerResponse } from "node:http";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import {
  INPUT_PRICE,
  modelYaml,
  OUTPUT_PRICE,
  startTestbed,
  type Testbed,
} from "../../../test/servers/gateway.ts";
import { query } from "../../database/pool.ts";
import { listen } from "../../../test/servers/ports.ts";

let testbed: Testbed;
let racers: Racers;

/** A provider whose `/slow` never answers, and whose `/fast` answers once that has received a whole call. */
interface Racers {
  readonly url: string;
  /** The connection of a slow call was closed by the gateway. */
  cancelled: number;
  /** `/slow` ends each connection: a health check need not wait for its time limit. */
  isOver: boolean;
  close(): Promise<void>;
}

async function startRacers(): Promise<Racers> {
  const waiting: ServerResponse[] = [];
  const slow = Promise.withResolvers<void>();
  const answer = {
    id: "chatcmpl-fast",
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: "first" } }],
    usage: { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 },
  };
  const server: Server = createServer((request, response) => {
    request.resume().once("end", () => {
      if (request.url?.startsWith("/slow") === true) {
        if (racers.isOver) {
          response.destroy();
          return;
        }
        waiting.push(response.once("close", () => racers.cancelled++));
        slow.resolve();
        return;
      }
      void slow.promise.then(() => {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify(answer));
      });
    });
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    cancelled: 0,
    isOver: false,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}

beforeAll(async () => {
  racers = await startRacers();
  testbed = await startTestbed(
    (url) =>
      `${modelYaml(
        url,
        `
  - model_name: other
    provider_params: { model: openai/other, api_base: ${url}, api_key: x }
  - model_name: slow
    provider_params: { model: openai/slow, api_base: "${racers.url}/slow", api_key: x, input_cost_per_token: 0.001 }
  - model_name: fast
    provider_params: { model: openai/fast, api_base: "${racers.url}/fast", api_key: x, input_cost_per_token: 0.0001 }
  - model_name: one, two
    provider_params: { model: openai/pair, api_base: ${url}, api_key: x }
`,
      )}proxy_settings: { litellm_headers: true, num_retries: 0 }\n`,
  );
});

afterAll(async () => {
  await testbed?.stop();
  await racers?.close();
});

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
  [{ model: "mock,other", stream: true, fastest_response: true }, "stream"],
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

/** Rows of a model's calls, oldest first. */
function rowsOf(model: string) {
  return query<Record<string, unknown>>(
    testbed.gateway.running.gateway.pool,
    "SELECT request_id, status, spend, metadata FROM spend_log WHERE model_group = $1 ORDER BY started_at",
    [model],
  );
}

test("the fastest of several models answers; the other is cancelled and billed for what it received", async () => {
  const { gateway } = testbed;
  const key = await gateway.createKey({ max_budget: 1 });
  const answer = await gateway.chat(key, "hello", {
    model: "slow,fast",
    fastest_response: true,
  });
  expect(answer.status).toBe(200);
  expect(answer.json).toMatchObject({
    object: "chat.completion",
    choices: [{ message: { content: "first" } }],
  });
  await vi.waitFor(async () => {
    await gateway.running.gateway.ledger.flush();
    expect(await rowsOf("slow")).toHaveLength(1);
    expect(racers.cancelled).toBe(1);
  });
  const [winner] = await rowsOf("fast");
  expect(winner).toMatchObject({ status: "success" });
  expect(answer.headers.get("x-hearth-call-id")).toBe(winner?.["request_id"]);
  expect(answer.headers.get("x-litellm-model-group")).toBe("fast");
  const [cancelled] = await rowsOf("slow");
  expect(cancelled).toMatchObject({
    status: "failure",
    metadata: { error_information: { error_code: "499" } },
  });
  // Its provider had the whole prompt, and may charge for it.
  expect(cancelled?.["spend"]).toBeGreaterThan(0);
  const spent = Number(winner?.["spend"]) + Number(cancelled?.["spend"]);
  const { json } = await gateway.request("GET", "/key/info", undefined, key);
  expect(json["info"]?.["spend"]).toBeCloseTo(spent, 9);
  racers.isOver = true;
  const health = await gateway.request("GET", "/health?model=slow");
  expect(health.text).toContain('"recent_failures":0');
});

test("a model that fails does not win, and the first error is the answer if all fail", async () => {
  const { gateway } = testbed;
  const key = await gateway.createKey({ models: ["mock"] });
  const won = await gateway.chat(key, "hello", {
    model: "other,mock",
    fastest_response: true,
  });
  expect(won.status).toBe(200);
  expect(won.json).toMatchObject({ object: "chat.completion" });
  const lost = await gateway.chat(key, "hello", {
    model: "other,none",
    fastest_response: true,
  });
  expect(lost.status).toBe(403);
  expect(lost.json["error"]).toMatchObject({
    type: "key_model_access_denied",
  });
});

test("a caller cannot name a race", async () => {
  const { gateway } = testbed;
  const key = await gateway.createKey();
  const body = { model: "mock", messages: [{ role: "user", content: "hi" }] };
  const headers = { "x-hearth-race": "any" };
  const path = "/v1/chat/completions";
  const answer = await gateway.request("POST", path, body, key, headers);
  expect(answer.status).toBe(200);
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
