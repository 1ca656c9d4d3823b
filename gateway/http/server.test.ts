import { once } from "node:events";
import { connect, type AddressInfo, type Socket } from "node:net";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { watchConnections } from "../../core/client-connections.ts";
import { Bodies } from "./bodies.ts";
import { createServer } from "./server.ts";
import { routeUpgrades } from "./upgrade.ts";

const LIMIT = 1_000;
const bodies = new Bodies({ bodiesLimitBytes: LIMIT, workers: 1 });
const server = createServer({
  bodyLimitBytes: LIMIT,
  bodies,
  trustedProxies: [],
  corsOrigins: [],
  log: pino({ level: "silent" }),
  version: "1.0.0",
  arrivalMs: 200,
});

let counted = 0;

beforeAll(async () => {
  const clients = watchConnections(server.server, { error: () => undefined });
  routeUpgrades(server, clients);
  server.get("/counted", () => ({ count: (counted += 1) }));
  server.post("/", () => ({ ok: true }));
  server.get("/long", () => "x".repeat(32 * 1024 * 1024));
  await server.listen({ host: "127.0.0.1", port: 0 });
});
afterAll(() => server.close());

test("a byte order mark before a body is not part of it", async () => {
  const { statusCode } = await server.inject({
    method: "POST",
    url: "/",
    payload: "\uFEFF{}",
  });
  expect(statusCode).toBe(200);
});

test("a body that stays incomplete is rejected, and its memory released", async () => {
  const { port } = server.server.address() as AddressInfo;
  const stalled = connect(port, "127.0.0.1");
  stalled.write(
    `POST / HTTP/1.1\r\nhost: gateway\r\ncontent-length: ${LIMIT}\r\n\r\n${"x".repeat(LIMIT / 2)}`,
  );
  const [answer] = (await once(stalled, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1.1 408 /);
  const next = Buffer.alloc(LIMIT / 2);
  await vi.waitFor(() => bodies.reserveChunk("", next, next));
});

test("a client that reads nothing of its answer is disconnected", async () => {
  const { port } = server.server.address() as AddressInfo;
  const connected = once(server.server, "connection");
  const client = connect(port, "127.0.0.1").pause();
  client.write("GET /long HTTP/1.1\r\nhost: gateway\r\n\r\n");
  const [connection] = (await connected) as [Socket];
  await once(connection, "close");
  client.destroy();
});

test.each([
  ["/v1/files", { error: { type: "not_found" } }],
  ["/v1/messages/batches", { type: "error", error: {} }],
  ["/v1beta/files", { error: { status: "NOT_FOUND" } }],
  ["/upload/v1beta/files", { error: { status: "NOT_FOUND" } }],
  ["/api/tags", { error: expect.any(String) as string }],
  ["/v2/chat", { message: expect.any(String) as string }],
  ["/v2/other", { error: { type: "not_found" } }],
])("%s is unknown in the words of its API", async (url, body) => {
  const answer = await server.inject({ url });
  expect(answer.statusCode).toBe(404);
  expect(answer.json()).toMatchObject(body);
});

test("of requests that arrive at once on one connection, only the first are handled", async () => {
  const { port } = server.server.address() as AddressInfo;
  const connected = once(server.server, "connection");
  const client = connect(port, "127.0.0.1").resume();
  client.on("error", () => undefined);
  client.write("GET /counted HTTP/1.1\r\nhost: gateway\r\n\r\n".repeat(1_000));
  const [connection] = (await connected) as [Socket];
  await once(connection, "close");
  expect(counted).toBe(33);
});

test("a client whose request for a WebSocket is rejected does not keep its connection open", async () => {
  const { port } = server.server.address() as AddressInfo;
  const connected = once(server.server, "connection");
  const client = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  client
    .resume()
    .write(
      "GET /none HTTP/1.1\r\nhost: gateway\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    );
  const [connection] = (await connected) as [Socket];
  await once(connection, "close");
  client.destroy();
});
