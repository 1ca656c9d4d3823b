import { createServer, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  modelYaml,
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { listen } from "../../test/servers/ports.ts";
import { query } from "../database/pool.ts";

/** Calls that wait for the provider's answer, in order of arrival. */
const waiting: ServerResponse[] = [];
const provider = createServer((question, response) => {
  question.resume();
  waiting.push(response);
});
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let gateway: TestGateway;
let key: string;

beforeAll(async () => {
  database = await throwAwayDatabase();
  const port = await listen(provider);
  const url = `http://127.0.0.1:${port}/v1`;
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: url,
    yaml: `${modelYaml(url)}
proxy_settings: { cache: true }
router_settings: { num_retries: 0 }
`,
  });
  key = await gateway.createKey({});
});

afterAll(async () => {
  provider.closeAllConnections();
  await gateway?.stop();
  provider.close();
  await database?.drop();
});

const ANSWER = JSON.stringify({
  id: "c",
  choices: [{ index: 0, message: { role: "assistant", content: "shared" } }],
  usage: { prompt_tokens: 1, completion_tokens: 1 },
});

/** The next call at the provider, after all others have joined its flight or wait for it. */
async function next(): Promise<ServerResponse> {
  await expect
    .poll(() => waiting.length, { timeout: 10_000 })
    .toBeGreaterThan(0);
  return waiting.shift() as ServerResponse;
}

test("followers of a failed call are sent to the provider one by one, until one is answered", async () => {
  const calls = Array.from({ length: 8 }, () => gateway.chat(key, "the same"));
  const { activeCalls } = gateway.running.gateway;
  await expect.poll(() => activeCalls.count()).toBe(8);
  for (let failed = 0; failed < 2; failed++) {
    const leader = await next();
    // A second one would come meanwhile.
    await sleep(200);
    expect(waiting).toHaveLength(0);
    leader.writeHead(500).end("{}");
  }
  (await next()).end(ANSWER);
  const answers = await Promise.all(calls);
  const statuses = answers.map(({ status }) => status).sort();
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 500, 500]);
  expect(waiting).toHaveLength(0);
});

test("a follower whose client left is not sent to the provider", async () => {
  const leader = gateway.chat(key, "left alone");
  const first = await next();
  const leaving = new AbortController();
  const follower = fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: "mock",
      messages: [{ role: "user", content: "left alone" }],
    }),
    signal: leaving.signal,
  }).catch(() => null);
  const { activeCalls } = gateway.running.gateway;
  await expect.poll(() => activeCalls.count()).toBe(2);
  leaving.abort();
  await follower;
  // Its limits are released at once.
  await expect.poll(() => activeCalls.count()).toBe(1);
  first.writeHead(500).end("{}");
  expect((await leader).status).toBe(500);
  await expect.poll(() => activeCalls.count()).toBe(0);
  expect(waiting).toHaveLength(0);
});

test("a follower waits no longer than its own time limit", async () => {
  const leader = gateway.chat(key, "in time");
  const first = await next();
  const follower = await gateway.chat(key, "in time", { timeout: 0.3 });
  expect(follower.status).toBe(408);
  expect(follower.json["error"]?.["message"]).toContain("identical call");
  first.end(ANSWER);
  expect((await leader).status).toBe(200);
  expect(waiting).toHaveLength(0);
});

const START = `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content: "word" } }] })}\n\n`;

function startStream(prompt: string, options: RequestInit = {}) {
  return fetch(`${gateway.url}/v1/chat/completions`, {
    ...options,
    method: "POST",
    headers: { authorization: `Bearer ${key}`, ...options.headers },
    body: JSON.stringify({
      model: "mock",
      stream: true,
      messages: [{ role: "user", content: prompt }],
    }),
  });
}

/** Starts to read a stream with these headers, which the returned function ends. */
async function listenTo(
  prompt: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<() => void> {
  const leaving = new AbortController();
  const answer = await startStream(prompt, { headers, signal: leaving.signal });
  expect(answer.status).toBe(200);
  return () => leaving.abort();
}

/** The provider's side of a stream that has begun. */
async function begun(): Promise<ServerResponse> {
  const response = await next();
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(START);
  return response;
}

/** A stream that its client gives up before it is answered; returns how. */
function ask(prompt: string): () => void {
  const leaving = new AbortController();
  startStream(prompt, { signal: leaving.signal }).catch(() => undefined);
  return () => leaving.abort();
}

test("the client of a stream that shares a silent call's answer receives comments until it arrives", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const ticks = setInterval(() => void vi.advanceTimersByTime(5_000), 50);
  try {
    // Each has its headers with its first comment.
    const answers = await Promise.all([
      startStream("silent"),
      startStream("silent"),
    ]);
    expect(waiting).toHaveLength(1);
    const leader = await begun();
    leader.end("data: [DONE]\n\n");
    for (const answer of answers) {
      const text = await answer.text();
      expect(text).toMatch(/^: waiting for mock\n\n/);
      expect(text).toContain('"word"');
      expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    }
  } finally {
    clearInterval(ticks);
    vi.useRealTimers();
  }
});

test("a stream that has not been answered is stopped when its client and its followers have left, and its input is billed", async () => {
  const { activeCalls, ledger, pool } = gateway.running.gateway;
  const leave = ask("given up");
  const unanswered = await next();
  const leaveToo = ask("given up");
  await expect.poll(() => activeCalls.count()).toBe(2);
  leave();
  await sleep(50);
  expect(unanswered.destroyed).toBe(false);
  leaveToo();
  await expect.poll(() => unanswered.destroyed).toBe(true);
  await expect.poll(() => activeCalls.count()).toBe(0);
  expect(waiting).toHaveLength(0);
  await ledger.flush();
  const rows = await query<Record<string, unknown>>(
    pool,
    "SELECT status, spend > 0 AS billed, metadata #>> '{attempts,0,error}' AS error FROM spend_log ORDER BY started_at DESC LIMIT 1",
  );
  expect(rows).toEqual([
    {
      status: "failure",
      billed: true,
      error: "cancelled: the client has left",
    },
  ]);
});

test("a stream that does not read the cache has no followers: without its client it is stopped", async () => {
  const [, shared] = await Promise.all([listenTo("shared"), begun()]);
  const follower = gateway.chat(key, "shared", { stream: true });
  const { activeCalls } = gateway.running.gateway;
  await expect.poll(() => activeCalls.count()).toBe(2);
  const [leave, own] = await Promise.all([
    listenTo("shared", { "cache-control": "no-cache" }),
    begun(),
  ]);
  leave();
  await expect.poll(() => own.destroyed).toBe(true);
  expect(shared.destroyed).toBe(false);
  shared.end("data: [DONE]\n\n");
  expect((await follower).status).toBe(200);
});

test("a stream whose client left is stopped when its answer gets too long to share", async () => {
  const [leave, leader] = await Promise.all([listenTo("too long"), begun()]);
  const follower = gateway.chat(key, "too long", { stream: true });
  const { activeCalls } = gateway.running.gateway;
  await expect.poll(() => activeCalls.count()).toBe(2);
  leave();
  const long = `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content: "word ".repeat(1_000_000) } }] })}\n\n`;
  leader.write(long);
  const second = await begun();
  await expect.poll(() => leader.destroyed).toBe(true);
  second.end("data: [DONE]\n\n");
  expect((await follower).status).toBe(200);
});

test("followers of an answer that is too long to share are sent to the provider together", async () => {
  const calls = Array.from({ length: 3 }, () =>
    gateway.chat(key, "at length", { stream: true }),
  );
  const { activeCalls } = gateway.running.gateway;
  await expect.poll(() => activeCalls.count()).toBe(3);
  const text = "word ".repeat(1_000_000);
  const event = `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content: text } }], usage: { prompt_tokens: 1, completion_tokens: 1 } })}\n\n`;
  const leader = await next();
  leader.writeHead(200, { "content-type": "text/event-stream" }).write(event);
  // The leader's own stream is not over yet.
  const followers = [await next(), await next()];
  for (const response of followers) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(event);
  }
  for (const response of [leader, ...followers]) {
    response.end("data: [DONE]\n\n");
  }
  for (const answer of await Promise.all(calls)) {
    expect(answer.text.endsWith("data: [DONE]\n\n")).toBe(true);
  }
}, 30_000);
