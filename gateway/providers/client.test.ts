import { createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listen } from "../../test/servers/ports.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { createProviderClient, type ProviderClient } from "./client.ts";
import type { ProviderCall } from "./provider-call.ts";
import type { StreamedAnswer } from "./streamed-answer.ts";

/** Accepts connections and never answers, not even to TLS. */
let server: Server;
let connections: Socket[];
let apiBase: string;

beforeEach(async () => {
  connections = [];
  server = createServer((socket) => {
    socket.on("error", () => undefined);
    connections.push(socket);
  });
  apiBase = `https://127.0.0.1:${await listen(server)}/v1`;
});
afterEach(() => {
  for (const socket of connections) {
    socket.destroy();
  }
  server.close();
});

function clientOf(connectMs: number, maxAnswerBytes?: number): ProviderClient {
  const minute = 60_000;
  return createProviderClient(
    { connectMs, firstByteMs: minute, idleMs: minute, requestMs: null },
    maxAnswerBytes,
  );
}

function callTo(signal: AbortSignal): ProviderCall {
  const deployment = {
    apiBase,
    provider: "openai",
    model: "m",
    info: {},
    headers: {},
    timeoutMs: null,
    streamTimeoutMs: null,
    idleTimeoutMs: null,
  } as unknown as PricedDeployment;
  return {
    deployment,
    path: "/chat/completions",
    callId: "call",
    headers: {},
    body: "{}",
    error: (_status, text) => text,
    signal,
    firstByteMs: null,
  };
}

const KINDS = ["ask", "stream", "bytes"] as const;

function send(
  client: ProviderClient,
  kind: (typeof KINDS)[number],
  signal: AbortSignal,
): Promise<unknown> {
  const call = callTo(signal);
  return kind === "stream" ? client.stream(call, null) : client[kind](call);
}

test.each(KINDS)(
  "a key that cannot be sent is named as the cause, not the address: %s",
  async (kind) => {
    const call = {
      ...callTo(new AbortController().signal),
      headers: { authorization: "Bearer sk-…" },
    };
    const client = clientOf(300);
    await expect(
      kind === "stream" ? client.stream(call, null) : client[kind](call),
    ).rejects.toMatchObject({
      status: 502,
      message: expect.stringContaining("its API key or one of"),
    });
    await client.close();
  },
);

test.each(KINDS)(
  "calls to a provider that does not finish its handshakes do not wait for each other: %s",
  async (kind) => {
    const client = clientOf(300);
    const calls = Array.from({ length: 5 }, () =>
      send(client, kind, new AbortController().signal),
    );
    const settled = Promise.allSettled(calls);
    await expect(Promise.race(calls)).rejects.toThrow();
    expect(connections.length).toBe(5);
    expect((await settled).map(({ status }) => status)).toEqual(
      calls.map(() => "rejected"),
    );
    await client.close();
  },
);

test.each(KINDS)(
  "a call that is ended while it waits for its connection fails at once, and is not charged: %s",
  async (kind) => {
    const client = clientOf(600_000);
    const aborter = new AbortController();
    const call = send(client, kind, aborter.signal);
    const failed = expect(call).rejects.toMatchObject({ mayBeCharged: false });
    await expect.poll(() => connections.length).toBe(1);
    aborter.abort();
    await failed;
    const before = new AbortController();
    before.abort();
    await expect(send(client, kind, before.signal)).rejects.toMatchObject({
      mayBeCharged: false,
    });
  },
);

test("an answer without an end fails at its maximum length, as one that may be charged", async () => {
  apiBase = apiBase.replace("https:", "http:");
  server.on("connection", (socket) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{");
    const more = () => {
      let isReady = true;
      while (isReady && socket.writable) {
        isReady = socket.write(" ".repeat(1_000));
      }
    };
    socket.on("drain", more);
    more();
  });
  const client = clientOf(1_000, 1_000_000);
  await expect(
    send(client, "ask", new AbortController().signal),
  ).rejects.toMatchObject({
    status: 502,
    message: `${apiBase} sent an answer that is too long: check that this is the address of its API`,
    mayBeCharged: true,
  });
});

const ANSWER = JSON.stringify({ id: "c", choices: [{ index: 0 }], usage: {} });

/** The connection is closed in order after it. */
function answerWith(
  body: string,
  kind: (typeof KINDS)[number] = "ask",
  type: string | null = "application/json",
): Promise<unknown> {
  apiBase = apiBase.replace("https:", "http:");
  const header = type === null ? "" : `content-type: ${type}\r\n`;
  server.on("connection", (socket) =>
    socket.end(`HTTP/1.1 200 OK\r\n${header}connection: close\r\n\r\n${body}`),
  );
  return send(clientOf(1_000), kind, new AbortController().signal);
}

test.each([
  ["in a name", 12],
  ["in a list", 26],
  ["before the last bracket", ANSWER.lastIndexOf("{")],
])(
  "an answer whose JSON has no end has broken off: %s",
  async (_at, length) => {
    await expect(answerWith(ANSWER.slice(0, length))).rejects.toMatchObject({
      status: 502,
      message: `${apiBase} broke off its answer (incomplete JSON): try again, and if that repeats, see its log or that of a proxy before it`,
      mayBeCharged: true,
    });
  },
);

test("white space around the JSON of an answer is passed on", async () => {
  const body = `\r\n${ANSWER}\n`;
  await expect(answerWith(body)).resolves.toMatchObject({
    body: Buffer.from(body),
  });
});

const TEXT = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n';

test.each([
  "Text/Event-Stream; charset=utf-8",
  "text/plain; charset=utf-8",
  "application/octet-stream",
  null,
])("a stream may come as %s", async (type) => {
  const { chunks } = (await answerWith(TEXT, "stream", type)) as StreamedAnswer;
  let text = "";
  for await (const chunk of chunks) {
    text += chunk.toString();
  }
  expect(text).toBe(TEXT);
});

test.each([
  ["application/json", "omit `stream`"],
  ["text/html", "omit `stream`"],
  [null, "ended its stream without an answer"],
])("what is no stream fails as %s", async (type, message) => {
  await expect(answerWith(ANSWER, "stream", type)).rejects.toMatchObject({
    status: 502,
    message: expect.stringContaining(message),
  });
});
