import { once } from "node:events";
import { createConnection, type Socket } from "node:net";
import { createServer, type ServerResponse } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  modelYaml,
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { listen, portOf } from "../../test/servers/ports.ts";

/** Calls that wait for their answer. */
const waiting: ServerResponse[] = [];
const provider = createServer((question, response) => {
  question.resume();
  waiting.push(response);
});
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;

beforeAll(async () => {
  database = await throwAwayDatabase();
  await listen(provider);
});

afterAll(async () => {
  provider.closeAllConnections();
  provider.close();
  await database?.drop();
});

function startGateway(drainTimeout: string): Promise<TestGateway> {
  const port = portOf(provider);
  const url = `http://127.0.0.1:${port}/v1`;
  return startTestGateway({
    databaseUrl: database.url,
    providerUrl: url,
    yaml: `${modelYaml(url)}
general_settings: { drain_timeout: ${drainTimeout} }
`,
  });
}

/** A connection that has sent this part of a request. */
async function connect({ url }: TestGateway, text: string): Promise<Socket> {
  const socket = createConnection(Number(new URL(url).port), "127.0.0.1");
  socket.on("error", () => undefined).resume();
  await once(socket, "connect");
  if (text !== "") {
    socket.write(text);
  }
  return socket;
}

const HEAD = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n";

test("connections without a call do not delay the shutdown: silent ones, idle ones, unfinished requests", async () => {
  const gateway = await startGateway("10m");
  const sockets = [
    await connect(gateway, ""),
    await connect(gateway, HEAD),
    await connect(
      gateway,
      "GET /health/liveliness HTTP/1.1\r\nhost: x\r\n\r\n",
    ),
  ];
  await once(sockets[2] as Socket, "data");
  await gateway.stop();
  for (const socket of sockets) {
    socket.destroy();
  }
});

test("a call in progress is answered before the gateway stops, then its connection is closed", async () => {
  const gateway = await startGateway("10m");
  const key = await gateway.createKey({});
  const body = JSON.stringify({
    model: "mock",
    messages: [{ role: "user", content: "hello" }],
  });
  const socket = await connect(
    gateway,
    `${HEAD}authorization: Bearer ${key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  let text = "";
  socket.on("data", (part) => (text += String(part)));
  const closed = once(socket, "close");
  await expect.poll(() => waiting.length).toBe(1);
  const stopped = gateway.stop();
  waiting.pop()?.end(
    JSON.stringify({
      id: "c",
      choices: [{ index: 0, message: { role: "assistant", content: "hi" } }],
    }),
  );
  await Promise.all([stopped, closed]);
  expect(text).toContain('"content":"hi"');
});

test("a stalled upload and a call without an answer are ended after the drain timeout", async () => {
  const gateway = await startGateway("500ms");
  const key = await gateway.createKey({});
  const upload = await connect(
    gateway,
    `${HEAD}authorization: Bearer ${key}\r\ncontent-length: 1000\r\n\r\n{`,
  );
  const call = gateway.chat(key, "hello").catch(() => null);
  await expect.poll(() => waiting.length).toBe(1);
  await gateway.stop();
  expect((await call)?.status).toBe(503);
  upload.destroy();
  waiting.pop()?.destroy();
});
