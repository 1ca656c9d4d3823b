import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { WebSocketServer } from "ws";
import { Bodies } from "../../http/bodies.ts";
import { SocketClient } from "./client-fixture.ts";
import { SocketMemory } from "./memory.ts";
import { ResponseSocket, type CarryOut } from "./response-socket.ts";

const LIMIT = 100_000;
const MEGABYTE = 1024 * 1024;
const ARRIVAL_MS = 60_000;

let server: WebSocketServer;
let url: string;
/** How the turns of the next connection are answered. */
let carryOut: CarryOut;
let idleMs = 0;
/** Of the newest connection. */
let served: ResponseSocket;
const bodies = new Bodies({ bodiesLimitBytes: LIMIT, workers: 1 });

beforeAll(async () => {
  server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  server.on("connection", (socket, { socket: connection }) => {
    const log = pino({ level: "silent" });
    const ports = {
      key: "",
      bodies,
      arrivalMs: ARRIVAL_MS,
      log,
      idleMs: () => idleMs,
    };
    const memory = new SocketMemory(LIMIT).connection();
    served = new ResponseSocket(socket, connection, ports, memory, carryOut);
  });
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server?.close();
});

/** Everything that was counted is released. */
function expectNothingReserved(): void {
  const holder = {};
  const all = Buffer.alloc(LIMIT - 1_000);
  expect(() => bodies.reserveChunk("", holder, all)).not.toThrow();
  bodies.release(holder);
}

const answering =
  (body: Readable): CarryOut =>
  () =>
    Promise.resolve({ statusCode: 200, headers: {}, stream: () => body });

test("a message for which there is no memory is rejected before it is whole", async () => {
  carryOut = answering(Readable.from([]));
  const client = await SocketClient.connect(url, "sk-x");
  client.sendText("x".repeat(2 * LIMIT));
  expect(await client.until("error")).toMatchObject({
    status: 503,
    error: { type: "overloaded" },
  });
  expect(await client.closed).toBe(1013);
  await vi.waitUntil(() => server.clients.size === 0, 60_000);
  expectNothingReserved();
});

test("a message is counted only until it is whole", async () => {
  carryOut = answering(Readable.from([]));
  const client = await SocketClient.connect(url, "sk-x");
  const input = "x".repeat(LIMIT / 3);
  await client.create({ model: "m", input });
  await vi.waitFor(expectNothingReserved);
  client.close();
  await client.closed;
});

test("pings are not counted, and leave the parts of a message counted", async () => {
  carryOut = answering(Readable.from([]));
  const client = await SocketClient.connect(url, "sk-x");
  for (let sent = 0; sent < LIMIT; sent += 100) {
    await client.ping("x".repeat(100));
  }
  expectNothingReserved();
  client.sendPart("x".repeat(LIMIT / 2));
  await client.ping("x");
  expect(expectNothingReserved).toThrow();
  client.close();
  await client.closed;
  await vi.waitFor(expectNothingReserved);
});

test("a message that stays unfinished is closed with its connection", async () => {
  carryOut = answering(Readable.from([]));
  const client = await SocketClient.connect(url, "sk-x");
  const probeLater = () => served.probe(Date.now() + ARRIVAL_MS, Infinity);
  await client.ping("x");
  await client.create({ model: "m", input: "whole" });
  probeLater();
  client.sendPart("x".repeat(LIMIT / 2));
  await client.ping("x");
  served.probe(Date.now(), Infinity);
  expect(client.isOpen).toBe(true);
  probeLater();
  expect(await client.closed).toBe(1008);
  await vi.waitFor(expectNothingReserved);
});

test("an answer that ends early is an error of its turn", async () => {
  carryOut = answering(
    Readable.from([
      Buffer.from(
        'event: response.created\ndata: {"type":"response.created"}\n\n',
      ),
    ]),
  );
  const client = await SocketClient.connect(url, "sk-x");
  const events = await client.create({ model: "m", stream_id: "a" });
  expect(events.map(({ type }) => type)).toEqual(["response.created", "error"]);
  expect(events.at(-1)).toMatchObject({ status: 502, stream_id: "a" });
  client.close();
});

test("a client that reads nothing lets its answer wait, and is disconnected after a while", async () => {
  idleMs = 500;
  let sent = 0;
  const delta = JSON.stringify({ type: "d", delta: "x".repeat(MEGABYTE) });
  const body = new Readable({
    read() {
      sent += delta.length;
      this.push(sent > 500 * MEGABYTE ? null : `event: d\ndata: ${delta}\n\n`);
    },
  });
  carryOut = answering(body);
  const client = await SocketClient.connect(url, "sk-x");
  client.pauseReading();
  client.send({ model: "m" });
  await vi.waitUntil(() => server.clients.size === 0, {
    timeout: 60_000,
    interval: 20,
  });
  expect(sent).toBeLessThan(100 * MEGABYTE);
  client.close();
  idleMs = 0;
  expectNothingReserved();
});
