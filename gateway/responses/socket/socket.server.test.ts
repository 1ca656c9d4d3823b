import { once } from "node:events";
import { request as httpRequest } from "node:http";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { WebSocket, type ClientOptions } from "ws";
import type { TestGateway } from "../../../test/servers/gateway.ts";
import { query } from "../../database/pool.ts";
import type { TalkingProvider } from "../provider-fixture.ts";
import {
  PRICE,
  startResponsesTestbed,
  text,
  type ResponsesTestbed,
} from "../testbed-fixture.ts";
import { SocketClient } from "./client-fixture.ts";

let testbed: ResponsesTestbed;
let provider: TalkingProvider;
let gateway: TestGateway;

beforeAll(async () => {
  testbed = await startResponsesTestbed(
    null,
    "general_settings: { max_websockets_per_key: 3, max_request_size_mb: 1 }\n",
  );
  ({ provider, gateway } = testbed);
});

afterAll(() => testbed?.stop());

const connect = async (fields: Readonly<Record<string, unknown>> = {}) =>
  SocketClient.connect(gateway.url, await gateway.createKey(fields));

/** The status with which a handshake is rejected, and the message of its error. */
async function rejection(
  path: string,
  options: ClientOptions,
): Promise<{ readonly status: number; readonly message: string }> {
  const socket = new WebSocket(
    gateway.url.replace("http", "ws") + path,
    options,
  );
  socket.on("error", () => undefined);
  const [, answer] = (await once(socket, "unexpected-response")) as [
    unknown,
    import("node:http").IncomingMessage,
  ];
  const body = Buffer.concat(await answer.toArray()).toString("utf8");
  const { error } = JSON.parse(body) as { error: { message: string } };
  return { status: answer.statusCode ?? 0, message: error.message };
}

describe.each(["chat", "native"])("%s", (model) => {
  test("turns continue each other without being stored, and each is billed once", async () => {
    const user = `turns-${model}`;
    const client = await connect({ user_id: user });
    const first = await client.create({ model, input: "One.", store: false });
    expect(first.at(0)?.["type"]).toBe("response.created");
    const { response } = first.at(-1) as { response: { id: string } };
    expect(response).toMatchObject({
      id: expect.stringMatching(/^resp_[0-9a-f]{32}$/) as unknown,
      status: "completed",
      store: false,
    });
    const second = await client.create({
      model,
      input: [text("user", "Two.")],
      store: false,
      previous_response_id: response.id,
    });
    const last = second.at(-1) as { response: Record<string, unknown> };
    expect(last.response).toMatchObject({
      status: "completed",
      previous_response_id: response.id,
    });
    const sent = model === "chat" ? provider.chats : provider.responses;
    const field = model === "chat" ? "messages" : "input";
    const asked = sent.at(-1)?.[field] as readonly { role?: string }[];
    expect(asked.flatMap(({ role }) => role ?? [])).toEqual([
      "user",
      "assistant",
      "user",
    ]);
    for (const unknown of ["stream_id", "generate", "type"]) {
      expect(sent.at(-1)).not.toHaveProperty(unknown);
    }
    const rows = await testbed.rowsOf(user, 2);
    expect(rows).toHaveLength(2);
    for (const row of rows) {
      expect(row.status).toBe("success");
      expect(row.spend).toBeCloseTo(PRICE, 12);
    }
    const stored = await query(
      testbed.pool,
      "SELECT 1 FROM responses WHERE response_id = $1",
      [response.id],
    );
    expect(stored).toEqual([]);
    client.close();
  });

  test("a warm-up is continued, costs nothing and calls no provider", async () => {
    const user = `warm-${model}`;
    const client = await connect({ user_id: user });
    const before = provider.chats.length + provider.responses.length;
    const warm = await client.create({
      model,
      input: [text("user", "I am Anna.")],
      generate: false,
    });
    expect(warm.map(({ type }) => type)).toEqual([
      "response.created",
      "response.completed",
    ]);
    expect(provider.chats.length + provider.responses.length).toBe(before);
    // No guardrail has seen it.
    expect(warm.at(-1)).toMatchObject({ response: { store: false } });
    const { id } = (warm.at(-1) as { response: { id: string } }).response;
    await client.create({
      model,
      input: "Who am I?",
      previous_response_id: id,
    });
    const sent = model === "chat" ? provider.chats : provider.responses;
    expect(sent.at(-1)?.[model === "chat" ? "messages" : "input"]).toHaveLength(
      2,
    );
    expect(await testbed.rowsOf(user, 1)).toHaveLength(1);
    client.close();
  });

  test("a client that leaves stops the provider, and pays for what was generated", async () => {
    const user = `leaver-${model}`;
    const client = await connect({ user_id: user });
    client.send({ model, input: "wait for ever" });
    await client.until("response.output_text.delta");
    await vi.waitUntil(() => provider.waiting() > 0, 60_000);
    client.close();
    await vi.waitUntil(() => provider.waiting() === 0, 60_000);
    const [row, ...others] = await testbed.rowsOf(user, 1);
    expect(others).toEqual([]);
    expect(row?.spend).toBeGreaterThan(0);
    expect(gateway.running.gateway.activeCalls.count()).toBe(0);
  });
});

test("OpenAI's own client and Node's WebSocket work unchanged", async () => {
  const apiKey = await gateway.createKey({});
  const client = new OpenAI({ apiKey, baseURL: `${gateway.url}/v1` });
  const socket = new ResponsesWS(client);
  const types: string[] = [];
  socket.send({ type: "response.create", model: "chat", input: "Hello" });
  for await (const event of socket.stream()) {
    if (event.type === "message") {
      types.push(event.message.type);
      if (event.message.type === "response.completed") {
        socket.close();
      }
    }
  }
  expect(types).toContain("response.output_text.delta");

  const own = new globalThis.WebSocket(
    `${gateway.url.replace("http", "ws")}/v1/responses`,
    { headers: { authorization: `Bearer ${apiKey}` } },
  );
  await once(own, "open");
  own.send('{"type":"response.create","model":"chat","input":"Hello"}');
  const [message] = (await once(own, "message")) as [{ data: string }];
  expect(message.data).toContain('"response.created"');
  own.close();
});

test("stored responses are continued over a WebSocket and over HTTP", async () => {
  const key = await gateway.createKey({ user_id: "both-ways" });
  const client = await SocketClient.connect(gateway.url, key);
  const over = await client.create({ model: "chat", input: "One." });
  const { id } = (over.at(-1) as { response: { id: string } }).response;
  const http = await gateway.request(
    "POST",
    "/v1/responses",
    { model: "native", input: "Two.", previous_response_id: id },
    key,
  );
  expect(http.status).toBe(200);
  const third = await client.create({
    model: "chat",
    input: "Three.",
    previous_response_id: String(http.json["id"]),
  });
  expect(third.at(-1)?.["type"]).toBe("response.completed");
  expect(provider.chats.at(-1)?.["messages"]).toHaveLength(5);
  // What continues an unstored response is stored with it.
  const unstored = await client.create({
    model: "chat",
    input: "Four.",
    store: false,
  });
  const stored = await client.create({
    model: "chat",
    input: "Five.",
    previous_response_id: (unstored.at(-1) as { response: { id: string } })
      .response.id,
  });
  client.close();
  const next = await gateway.request(
    "POST",
    "/v1/responses",
    {
      model: "chat",
      input: "Six.",
      previous_response_id: (stored.at(-1) as { response: { id: string } })
        .response.id,
    },
    key,
  );
  expect(next.status).toBe(200);
  expect(provider.chats.at(-1)?.["messages"]).toHaveLength(5);
});

test("streams run side by side, each in its order; one forks what another answered", async () => {
  const client = await connect();
  const root = await client.create({
    model: "chat",
    input: "Root.",
    store: false,
    stream_id: "main",
  });
  expect(root.every(({ stream_id }) => stream_id === "main")).toBe(true);
  const { id } = (root.at(-1) as { response: { id: string } }).response;
  const from = provider.chats.length;
  client.send({ model: "chat", input: "wait a while", stream_id: "slow" });
  client.send({ model: "chat", input: "after it", stream_id: "slow" });
  await vi.waitUntil(() => provider.waiting() > 0, 60_000);
  const fork = await client.create({
    model: "chat",
    input: "Fork.",
    store: false,
    stream_id: "fork",
    previous_response_id: id,
  });
  expect(fork.at(-1)?.["type"]).toBe("response.completed");
  expect(provider.chats.at(-1)?.["messages"]).toHaveLength(3);
  expect(provider.chats).toHaveLength(from + 2);
  provider.release();
  for (const words of ["wait a while", "after it"]) {
    const whole = await client.until("response.completed", "slow");
    expect(JSON.stringify(whole)).toContain(`You said: ${words}`);
  }
  client.send({ model: "chat", input: "x", stream_id: "two words" });
  expect((await client.until("error"))["error"]).toMatchObject({
    param: "stream_id",
  });
  client.close();
});

test("a key that is exhausted, limited or blocked meanwhile gets the error of HTTP for its next turn", async () => {
  const call = { model: "chat", input: "Hello" };
  const poor = await connect({ max_budget: PRICE * 1.5 });
  await poor.create(call);
  await poor.create(call);
  const denied = (await poor.create(call)).at(-1);
  expect(denied).toMatchObject({
    type: "error",
    status: 400,
    error: { type: "budget_exceeded" },
    headers: { "x-should-retry": "false" },
  });
  poor.close();

  const limited = await connect({ rpm_limit: 1 });
  await limited.create(call);
  const late = (await limited.create(call)).at(-1);
  expect(late).toMatchObject({
    status: 429,
    error: { type: "rate_limit_exceeded" },
    headers: { "retry-after": expect.any(String) as unknown },
  });
  limited.close();

  const key = await gateway.createKey({});
  const blocked = await SocketClient.connect(gateway.url, key);
  await blocked.create(call);
  await gateway.request("POST", "/key/block", { key });
  expect((await blocked.create(call)).at(-1)).toMatchObject({
    status: 401,
    error: { message: expect.stringContaining("Key is blocked") as unknown },
  });
  await gateway.request("POST", "/key/unblock", { key });
  await gateway.request("POST", "/key/regenerate", { key });
  expect((await blocked.create(call)).at(-1)).toMatchObject({ status: 401 });
  blocked.close();
});

test("what is wrong with a message is answered, and the next one is served", async () => {
  const client = await connect({ models: ["chat"] });
  const wrong: readonly (readonly [string, object])[] = [
    ["{", { status: 400 }],
    [
      "[]",
      { status: 400, error: { message: "A message must be a JSON object." } },
    ],
    ['{"type":"response.cancel"}', { error: { param: "type" } }],
    ['{"type":"response.create"}', { error: { param: "model" } }],
    [
      '{"type":"response.create","model":"chat","input":[]}',
      { status: 400, error: { param: "input" } },
    ],
    [
      '{"type":"response.create","model":"native","input":"x"}',
      { status: 403, error: { type: "key_model_access_denied" } },
    ],
    [
      '{"type":"response.create","model":"chat","input":"x","background":true}',
      { status: 400, error: { param: "background" } },
    ],
    [
      `{"type":"response.create","model":"chat","input":"x","previous_response_id":"resp_${"0".repeat(32)}"}`,
      { status: 400, error: { code: "previous_response_not_found" } },
    ],
    [
      '{"type":"response.create","model":"chat","input":"fail"}',
      { status: 400, error: { type: "upstream_error" } },
    ],
  ];
  for (const [message, expected] of wrong) {
    client.sendText(message);
    expect(await client.until("error"), message).toMatchObject(expected);
  }
  client.sendText(
    '{"type":"response.steer","previous_response_id":"resp_1","input":"Stop"}',
  );
  expect(await client.until("response.steer.failed")).toMatchObject({
    error: { code: "steering_not_supported" },
    steer: { previous_response_id: "resp_1", input: "Stop" },
  });
  client.sendText('{"type":"response.processed","response_id":"resp_1"}');
  const answered = await client.create({ model: "chat", input: "Hello" });
  expect(answered.at(-1)?.["type"]).toBe("response.completed");
  client.close();
});

test("a message that is too long or binary closes its WebSocket", async () => {
  const long = await connect();
  long.sendText("x".repeat(1024 * 1024 + 1));
  expect(await long.closed).toBe(1009);
  const binary = await connect();
  binary.sendText(Buffer.from("{}"));
  expect(await binary.closed).toBe(1003);
});

test("handshakes are rejected as calls are: by key, route and site", async () => {
  const key = await gateway.createKey({});
  const bearer = (one: string) => ({ authorization: `Bearer ${one}` });
  expect(await rejection("/v1/responses", {})).toMatchObject({ status: 401 });
  expect(await rejection(`/v1/responses?key=${key}`, {})).toMatchObject({
    status: 401,
  });
  const managing = await gateway.createKey({ key_type: "management" });
  expect(
    await rejection("/v1/responses", { headers: bearer(managing) }),
  ).toMatchObject({ status: 403 });
  const embeds = await gateway.createKey({
    allowed_routes: ["/v1/embeddings"],
  });
  expect(
    await rejection("/responses", { headers: bearer(embeds) }),
  ).toMatchObject({ status: 403 });
  expect(
    await rejection("/v1/responses", {
      headers: bearer(key),
      origin: "https://example.org",
    }),
  ).toEqual({
    status: 403,
    message: expect.stringContaining("Pages of other sites") as unknown,
  });
  expect(
    await rejection("/v1/nothing", { headers: bearer(key) }),
  ).toMatchObject({ status: 404 });
  const own = await SocketClient.connect(gateway.url, key, {
    origin: gateway.url,
  });
  own.close();
  const plain = await gateway.request("GET", "/v1/responses", undefined, key);
  expect(plain.status).toBe(426);
  expect(plain.headers.get("upgrade")).toBe("websocket");
});

test("a key has a bounded number of WebSockets", async () => {
  const key = await gateway.createKey({});
  const open = await Promise.all(
    [1, 2, 3].map(() => SocketClient.connect(gateway.url, key)),
  );
  const headers = { authorization: `Bearer ${key}` };
  expect(await rejection("/v1/responses", { headers })).toEqual({
    status: 429,
    message: expect.stringContaining("3 WebSockets open") as unknown,
  });
  open[0]?.close();
  await vi.waitUntil(
    () => gateway.running.gateway.sockets.count() === 2,
    60_000,
  );
  (await SocketClient.connect(gateway.url, key)).close();
  open.forEach((one) => one.close());
});

test("an idle WebSocket is closed, and one with a call in progress stays", async () => {
  const { sockets } = gateway.running.gateway;
  const idle = await connect();
  const busy = await connect();
  busy.send({ model: "chat", input: "wait for it" });
  await vi.waitUntil(() => provider.waiting() > 0, 60_000);
  sockets.probe(Date.now() + 31 * 60_000);
  expect(await idle.closed).toBe(1000);
  provider.release();
  expect(JSON.stringify(await busy.until("response.completed"))).toContain(
    "You said: wait for it",
  );
  busy.close();
});

test("a request that asks for another protocol is answered as usual", async () => {
  const body = JSON.stringify({
    model: "chat",
    messages: [text("user", "Hello")],
  });
  const request = httpRequest(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${await gateway.createKey({})}`,
      connection: "Upgrade, HTTP2-Settings",
      upgrade: "h2c",
      "http2-settings": "AAMAAABkAAQAAP__",
      "content-length": body.length,
    },
  });
  request.end(body);
  const [answer] = (await once(request, "response")) as [
    import("node:http").IncomingMessage,
  ];
  expect(answer.statusCode).toBe(200);
  answer.resume();
});
