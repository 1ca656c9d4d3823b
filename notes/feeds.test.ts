import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { DatabaseAnswer } from "./database-calls.ts";
import { answerChanges } from "./feeds.ts";
import type { DatabaseExchange } from "./http/exchange.ts";
import type { ChangesEnd, PublicState } from "./store/protocol.ts";

const HEARTBEAT_MS = 1000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
});

afterEach(() => {
  vi.useRealTimers();
});

type Chunks = NonNullable<DatabaseAnswer["chunks"]>;

/** Sends a feed without changes, then one change in these chunks; returns what was written, with a heartbeat after each chunk. */
async function writtenBy(
  feed: "longpoll" | "continuous",
  chunks: readonly string[],
): Promise<string> {
  let written = "";
  const stop = new AbortController();
  const response = {
    destroyed: false,
    writableLength: 0,
    writeHead: () => undefined,
    write: (bytes: string | Uint8Array) => {
      written += Buffer.from(bytes as Uint8Array).toString();
      return true;
    },
    end: () => undefined,
  } as unknown as ServerResponse;
  let updateSeq = 0;
  const passes = [
    (async function* (): Chunks {
      return endAt(0);
    })(),
    (async function* (): Chunks {
      for (const chunk of chunks) {
        yield Buffer.from(chunk);
        // The chunk was written, and the next one is not there yet.
        vi.advanceTimersByTime(HEARTBEAT_MS);
      }
      stop.abort();
      return endAt(1);
    })(),
  ];
  const database = {
    isClosed: () => false,
    state: () => ({ updateSeq }) as PublicState,
    onState: (listener: () => void) => {
      vi.advanceTimersByTime(HEARTBEAT_MS);
      updateSeq = 1;
      listener();
      return () => undefined;
    },
    call: () => ({ status: 200, headers: {}, chunks: passes.shift() }),
  };
  await answerChanges(
    {
      request: { method: "GET" },
      response,
      target: { query: { feed, heartbeat: String(HEARTBEAT_MS) } },
      login: { isCurrent: () => Promise.resolve(true) },
      gone: stop.signal,
      database,
    } as unknown as DatabaseExchange,
    undefined,
    new AbortController().signal,
    1_000_000,
  );
  return written;
}

const endAt = (seq: number): ChangesEnd => ({
  token: String(seq),
  seen: seq,
  rows: seq,
  pending: 0,
});

const HEAD = '{"seq":"1","id":"a","changes":[],"doc":{"_id":"a",';
const BODY = '"data":"x"';

test("a continuous feed sends heartbeats between its rows, none within a row", async () => {
  const row = `${HEAD}${BODY}}}\n`;
  expect(await writtenBy("continuous", [HEAD, BODY, "}}\n", row])).toBe(
    `\n\n${row}\n${row}\n`,
  );
});

test("a long poll also sends heartbeats within a row, where they are white space", async () => {
  expect(await writtenBy("longpoll", [HEAD, BODY, "}}"])).toBe(
    `{"results":[\n\n\n${HEAD}\n${BODY}\n}}\n`,
  );
});
