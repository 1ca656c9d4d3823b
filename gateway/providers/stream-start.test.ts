import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { afterEach, expect, test, vi } from "vitest";
import { startOfStream, type StreamStart } from "./stream-start.ts";

const PING = 'event: ping\ndata: {"type":"ping"}\n\n';
const TEXT = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n';

afterEach(() => {
  vi.useRealTimers();
});

async function textOf(start: StreamStart): Promise<string> {
  if (start.kind !== "started") {
    throw new Error(`the stream is ${start.kind}`);
  }
  let text = "";
  for await (const chunk of start.chunks) {
    text += chunk.toString();
  }
  return text;
}

test("a stream starts with its first content, and is then whole from its first byte", async () => {
  const body = new PassThrough();
  const starting = startOfStream(body, null);
  body.write(`: comment\n\n${PING}`);
  body.write(TEXT);
  const start = await starting;
  body.end(TEXT);
  expect(await textOf(start)).toBe(`: comment\n\n${PING}${TEXT}${TEXT}`);
});

test("content in the same piece as a later error is not lost", async () => {
  const body = new PassThrough();
  const text = `${TEXT}data: {"error":{"message":"broken"}}\n\n`;
  body.end(text);
  expect(await textOf(await startOfStream(body, null))).toBe(text);
});

test("an empty stream and one that only ends are told from a broken one", async () => {
  const empty = new PassThrough();
  empty.end(`${PING}data: [DONE]\n\n`);
  expect(await startOfStream(empty, null)).toMatchObject({ kind: "empty" });
  const broken = new PassThrough();
  const starting = startOfStream(broken, null);
  broken.write(PING);
  const cause = new Error("reset");
  broken.destroy(cause);
  expect(await starting).toMatchObject({ kind: "broken", cause });
});

test("a client that leaves ends the wait", async () => {
  const client = Object.assign(new EventEmitter(), { destroyed: false });
  const body = new PassThrough();
  const starting = startOfStream(body, client);
  client.emit("close");
  expect(await starting).toMatchObject({ kind: "started" });
  expect(client.listenerCount("close")).toBe(0);
});

test("pings are passed on after half a minute without content", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const body = new PassThrough();
  const starting = startOfStream(body, null);
  body.write(PING);
  await new Promise((resolve) => setImmediate(resolve));
  vi.advanceTimersByTime(31_000);
  body.write(PING);
  const start = await starting;
  body.end();
  expect(await textOf(start)).toBe(PING + PING);
});

test("what is held before the first content is bounded", async () => {
  const body = new PassThrough();
  const comments = `${": nothing\n".repeat(200_000)}\n`;
  body.end(comments);
  expect(await textOf(await startOfStream(body, null))).toBe(comments);
});
