import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  modelYaml,
  startTestbed,
  type Testbed,
} from "../../test/servers/gateway.ts";
import { ruleOf } from "../access/policy.ts";
import { ROUTES } from "./route-table.ts";

/** Of one request, and of all together. */
const ONE_MB = 1;
const ALL_MB = 2;
const MB = 1024 * 1024;

let testbed: Testbed;
let key: string;

beforeAll(async () => {
  testbed = await startTestbed((url) =>
    modelYaml(
      url,
      `general_settings: { max_request_size_mb: ${ONE_MB}, max_request_bodies_mb: ${ALL_MB} }`,
    ),
  );
  key = await testbed.gateway.createKey();
});
afterAll(() => testbed?.stop());

/** A request with headers for a body that never arrives. */
async function askWithoutBody(
  route: string,
  headers: readonly string[],
): Promise<string> {
  const socket = open(route, ["content-length: 500000", ...headers]);
  const [head] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  return head.toString();
}

function open(route: string, headers: readonly string[]): Socket {
  const socket = connect(
    Number(new URL(testbed.gateway.url).port),
    "127.0.0.1",
  );
  socket.write(
    [`${route} HTTP/1.1`, "host: gateway", ...headers, "", ""].join("\r\n"),
  );
  return socket;
}

const withBody = ROUTES.filter(({ method }) => method !== "GET").flatMap(
  ({ method, paths }) => paths.map((path) => `${method} ${path}`),
);

test.each(withBody)("%s answers 401 before its body arrives", async (route) => {
  const path = route.replaceAll(/:\w+/g, "x");
  expect(await askWithoutBody(path, [])).toMatch(/^HTTP\/1.1 401 /);
  expect(
    await askWithoutBody(path, ["authorization: Bearer sk-unknown"]),
  ).toMatch(/^HTTP\/1.1 401 /);
});

test("a key without requests left gets 429 before a large body arrives, but still counts tokens", async () => {
  const limited = await testbed.gateway.createKey({ rpm_limit: 1 });
  const headers = [`authorization: Bearer ${limited}`];
  const counting = ROUTES.filter(({ countsRequests }) => countsRequests);
  expect((await testbed.gateway.chat(limited, "a")).status).toBe(200);
  const { json } = await testbed.gateway.chat(limited, "b");
  expect(json["error"]?.["message"]).toMatch(/key: 1 request per minute/);
  for (const { method, paths } of counting) {
    const early = await askWithoutBody(`${method} ${paths[0]}`, headers);
    expect([paths[0], early]).toEqual([
      paths[0],
      expect.stringMatching(
        /^HTTP\/1.1 429 .*x-ratelimit-remaining-requests: 0/s,
      ),
    ]);
  }
  const counted = await testbed.gateway.request(
    "POST",
    "/v1/messages/count_tokens",
    {
      model: "mock",
      messages: [{ role: "user", content: "a ".repeat(20_000) }],
    },
    limited,
  );
  expect(counted.status).toBe(200);
});

const preflighted = ROUTES.filter(({ name }) =>
  ["llm_api", "any"].includes(ruleOf(name).kind),
).flatMap(({ paths }) => paths.map((path) => `OPTIONS ${path}`));

test.each(preflighted)("%s answers before a body arrives", async (route) => {
  const headers = ["content-type: application/json"];
  const path = route.replaceAll(/:\w+/g, "x");
  expect(await askWithoutBody(path, headers)).toMatch(/^HTTP\/1.1 204 /);
});

test("an unknown route answers 404 before its body arrives", async () => {
  expect(await askWithoutBody("POST /no/such/route", [])).toMatch(
    /^HTTP\/1.1 404 /,
  );
});

test("a connection that is still sending a large body is closed, others are kept", async () => {
  const path = "POST /v1/chat/completions";
  const small = await askWithoutBody(path, []);
  expect(small).toMatch(/connection: keep-alive/i);
  const socket = open(path, ["transfer-encoding: chunked"]);
  const [head] = (await once(socket, "data")) as [Buffer];
  expect(head.toString()).toMatch(/connection: close/i);
  await once(socket, "close");
});

test("a body above its limit is rejected, with and without content-length", async () => {
  const long = JSON.stringify({ model: "mock", text: "x".repeat(ONE_MB * MB) });
  const { status, json } = await testbed.gateway.request(
    "POST",
    "/v1/chat/completions",
    long,
    key,
  );
  expect(status).toBe(413);
  expect(json["error"]?.["message"]).toMatch(
    /larger than this gateway accepts/,
  );
  const socket = open("POST /v1/chat/completions", [
    `authorization: Bearer ${key}`,
    "transfer-encoding: chunked",
  ]);
  const piece = "x".repeat(200_000);
  for (let sent = 0; sent < 8; sent++) {
    socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`);
  }
  const [head] = (await once(socket, "data")) as [Buffer];
  expect(head.toString()).toMatch(/^HTTP\/1.1 413 /);
  socket.destroy();
});

/** Sends a body but for its last byte. */
function sendMost(ofKey: string, bytes: number): Socket {
  const socket = open("POST /v1/chat/completions", [
    `authorization: Bearer ${ofKey}`,
    `content-length: ${bytes}`,
  ]);
  socket.write("x".repeat(bytes - 1));
  return socket;
}

const longCall = JSON.stringify({ model: "mock", text: "x".repeat(500_000) });

function askLong(withKey: string) {
  return testbed.gateway.request(
    "POST",
    "/v1/chat/completions",
    longCall,
    withKey,
  );
}

test("bodies of all requests share a limit: 503 above it, released when they end", async () => {
  const keys = await Promise.all(
    Array.from({ length: ALL_MB }, () => testbed.gateway.createKey()),
  );
  const waiting = keys.map((each) => sendMost(each, 800_000));
  await expect.poll(async () => (await askLong(key)).status).toBe(503);
  const { json, headers } = await askLong(key);
  expect(json["error"]).toMatchObject({
    type: "overloaded",
    message: expect.stringContaining("all current requests") as unknown,
  });
  expect(headers.get("retry-after")).toBe("1");
  // A small call still fits.
  expect((await testbed.gateway.chat(key, "small")).status).toBe(200);
  for (const socket of waiting) {
    socket.destroy();
  }
  await expect.poll(async () => (await askLong(key)).status).toBe(400);
});

test("one key cannot occupy all memory of bodies", async () => {
  const greedy = await testbed.gateway.createKey();
  const waiting = Array.from({ length: 4 }, () => sendMost(greedy, 450_000));
  await expect.poll(async () => (await askLong(greedy)).status).toBe(503);
  const { json } = await askLong(greedy);
  expect(json["error"]?.["message"]).toContain("this key's current requests");
  for (let call = 0; call < 4; call++) {
    expect((await testbed.gateway.chat(key, "x".repeat(250_000))).status).toBe(
      200,
    );
  }
  for (const socket of waiting) {
    socket.destroy();
  }
  await expect.poll(async () => (await askLong(greedy)).status).toBe(400);
});

test("a body that arrives byte by byte counts with the buffers of its bytes", async () => {
  const socket = open("POST /v1/chat/completions", [
    `authorization: Bearer ${key}`,
    "transfer-encoding: chunked",
  ]);
  socket.write("1\r\nx\r\n".repeat(50_000));
  const [head] = (await once(socket, "data")) as [Buffer];
  expect(head.toString()).toMatch(/^HTTP\/1.1 503 /);
  socket.destroy();
});

test("the memory of bodies is released after every call", async () => {
  for (let call = 0; call < 20; call++) {
    const { status } = await testbed.gateway.chat(key, "x".repeat(500_000), {
      stream: call % 2 === 0,
    });
    expect(status).toBe(200);
  }
});

const nested = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;

test.each(withBody)("%s rejects 50,000 nested objects", async (route) => {
  const [method = "", path = ""] = route.replaceAll(/:\w+/g, "x").split(" ");
  for (const body of [nested, `{"metadata":${nested}}`]) {
    const { status, text } = await testbed.gateway.request(method, path, body);
    expect(status).toBe(400);
    expect(text).toContain("nested deeper than 200");
  }
});
