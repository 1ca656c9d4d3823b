import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";
import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { startEcho } from "./server.ts";

let place: ReturnType<typeof temporaryHome>;
let echo: Awaited<ReturnType<typeof startEcho>>;
let client: OpenAI;

beforeEach(async () => {
  place = temporaryHome();
  echo = await startEcho({ port: 0, record: join(place.directory, "calls") });
  client = new OpenAI({
    apiKey: "any",
    baseURL: `${echo.address}/v1`,
    maxRetries: 0,
  });
});
afterEach(async () => {
  await echo.close();
  place.remove();
});

function calls(): readonly Record<string, unknown>[] {
  return readFileSync(join(place.directory, "calls"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const hello = {
  model: "hearth-echo",
  messages: [{ role: "user" as const, content: "Hello, Hearth" }],
};

test("the model list identifies the echo", async () => {
  const [model] = (await client.models.list()).data;
  expect(model).toMatchObject({
    id: "hearth-echo",
    owned_by: "hearth (an echo, not a model)",
  });
});

test("the user's last message is repeated, tokens are counted, and the call is recorded under the caller's id", async () => {
  const answer = await client.chat.completions.create(hello, {
    headers: { "x-request-id": "call-1" },
  });
  expect(answer.choices[0]).toMatchObject({
    message: { role: "assistant", content: "Echo: Hello, Hearth" },
    finish_reason: "stop",
  });
  expect(answer.usage).toEqual({
    prompt_tokens: 7,
    completion_tokens: 6,
    total_tokens: 13,
  });
  expect(calls()).toEqual([
    {
      id: "call-1",
      started_at: expect.any(String),
      finished_at: expect.any(String),
      path: "/v1/chat/completions",
      usage: answer.usage,
      stream: false,
    },
  ]);
});

test("a stream has several chunks and usage on request, and is recorded before it ends", async () => {
  const stream = await client.chat.completions.create({
    ...hello,
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = [];
  for await (const chunk of stream) {
    chunks.push(chunk);
  }
  expect(calls()).toHaveLength(1);
  expect(chunks.length).toBeGreaterThan(4);
  expect(
    chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""),
  ).toBe("Echo: Hello, Hearth");
  expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("stop");
  expect(chunks.at(-1)).toMatchObject({
    choices: [],
    usage: { total_tokens: 13 },
  });
  expect(calls()[0]).toMatchObject({
    stream: true,
    usage: { total_tokens: 13 },
  });
});

test("the answer ends at max_tokens", async () => {
  const answer = await client.chat.completions.create({
    ...hello,
    max_tokens: 4,
  });
  expect(answer.choices[0]).toMatchObject({
    message: { content: "Echo: Hello, " },
    finish_reason: "length",
  });
  expect(answer.usage?.completion_tokens).toBe(4);
});

test("embeddings are unit vectors that depend only on the text", async () => {
  const { data, usage } = await client.embeddings.create({
    model: "hearth-echo",
    input: ["one", "one", "two"],
  });
  const [one, again, two] = data.map(({ embedding }) => embedding);
  expect(one).toHaveLength(64);
  expect(Math.hypot(...(one ?? []))).toBeCloseTo(1, 5);
  expect(again).toEqual(one);
  expect(two).not.toEqual(one);
  expect(usage).toEqual({ prompt_tokens: 3, total_tokens: 3 });
});

test("a message can set a delay", async () => {
  const startedAt = performance.now();
  await client.chat.completions.create({
    model: "hearth-echo",
    messages: [{ role: "user", content: "slowly [delay 150ms]" }],
  });
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(149);
});

test("a call disconnected during a stream is not recorded as finished", async () => {
  const abort = new AbortController();
  const stream = await client.chat.completions.create(
    {
      model: "hearth-echo",
      messages: [
        { role: "user", content: `[delay 400ms] ${"word ".repeat(20)}` },
      ],
      stream: true,
    },
    { signal: abort.signal },
  );
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta.content !== "") {
      break;
    }
  }
  abort.abort();
  await sleep(600);
  expect(() => calls()).toThrow("ENOENT");
});

test("an invalid body is rejected with the name of the field", async () => {
  const answer = await fetch(`${echo.address}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"messages": "hello"}',
  });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({
    error: {
      message: expect.stringMatching(/^messages: /),
      type: "invalid_request_error",
    },
  });
});
