import type { ServerResponse } from "node:http";
import type { Database } from "./database.ts";
import {
  pipeChunks,
  sendAnswer,
  type DatabaseExchange,
} from "./http/exchange.ts";
import { Refusal } from "./refusal.ts";
import type { Body, ChangesEnd } from "./store/protocol.ts";

/** CouchDB's default, and the longest a client may ask for. */
const MAX_WAIT_MS = 60_000;

type FeedKind = "normal" | "longpoll" | "continuous";

/** How a feed behaves while nothing happens: line feeds at an interval, or an end after a while. */
interface Patience {
  readonly heartbeat: number | undefined;
  readonly timeout: number;
}

interface Feed {
  readonly exchange: DatabaseExchange;
  readonly body: Body | undefined;
  readonly kind: FeedKind;
  readonly patience: Patience;
  /** Aborted when the client goes away or the server stops. */
  readonly stop: AbortSignal;
  readonly maxDocumentSize: number;
}

/** Answers `_changes`: once, or as long as the client listens. */
export async function answerChanges(
  exchange: DatabaseExchange,
  body: Body | undefined,
  stopping: AbortSignal,
  maxDocumentSize: number,
): Promise<void> {
  const { query } = exchange.target;
  const kind = readKind(query.feed);
  const patience = readPatience(query);
  const feed: Feed = {
    exchange,
    body,
    kind,
    patience,
    stop: AbortSignal.any([exchange.gone, stopping]),
    maxDocumentSize,
  };
  // Bad parameters are refused before the answer begins.
  const first = await pass(feed, query.since, undefined, true);
  const { response } = exchange;
  if (first.chunks === undefined) {
    await sendAnswer(exchange, first);
    return;
  }
  response.writeHead(200, { "content-type": "application/json" });
  if (exchange.request.method === "HEAD") {
    first.discard();
    response.end();
    return;
  }
  if (kind === "continuous") await runContinuous(feed, first.chunks);
  else await runOnce(feed, first.chunks);
}

type Chunks = AsyncGenerator<Uint8Array, ChangesEnd | undefined>;

async function runOnce(feed: Feed, first: Chunks): Promise<void> {
  const { response, database } = feed.exchange;
  response.write('{"results":[\n');
  let end = ended(await pipeChunks(response, first));
  if (feed.kind === "longpoll" && end.rows === 0 && !limitIsZero(feed)) {
    response.write("\n");
    const wait = openWait(feed);
    try {
      while (end.rows === 0 && (await wait.forChangeAfter(end.seen))) {
        end = await nextPass(feed, end, undefined, true);
      }
    } finally {
      wait.close();
    }
  }
  if (!response.destroyed) {
    response.end(
      `\n],\n"last_seq":"${end.token}","pending":${database.isClosed() ? 0 : end.pending}}\n\n`,
    );
  }
}

async function runContinuous(feed: Feed, first: Chunks): Promise<void> {
  const { response, target } = feed.exchange;
  let left = limitOf(target.query.limit);
  const oneWay = target.query.descending === "true";
  let end = ended(await pipeChunks(response, first));
  left -= end.rows;
  if (left > 0 && !oneWay) {
    // Sends the headers when there were no rows to send them with.
    if (end.rows === 0) response.write("\n");
    const wait = openWait(feed);
    try {
      while (left > 0 && (await wait.forChangeAfter(end.seen))) {
        end = await nextPass(feed, end, left, true);
        if (end.rows > 0) wait.restart();
        left -= end.rows;
      }
    } finally {
      wait.close();
    }
  }
  if (!response.destroyed) {
    response.end(`{"last_seq":"${end.token}","pending":${end.pending}}\n\n`);
  }
}

/** One more look at what came since. A database that has been deleted has nothing more. */
async function nextPass(
  feed: Feed,
  end: ChangesEnd,
  limit: number | undefined,
  first: boolean,
): Promise<ChangesEnd> {
  const answer = await pass(feed, end.token, limit, first);
  if (answer.chunks === undefined) return end;
  return ended(await pipeChunks(feed.exchange.response, answer.chunks));
}

async function pass(
  feed: Feed,
  since: string | undefined,
  limit: number | undefined,
  first: boolean,
): ReturnType<Database["call"]> {
  const { database, target, gone } = feed.exchange;
  return await database.call(
    {
      operation: "changes",
      query: {
        ...target.query,
        ...(since === undefined ? {} : { since }),
        ...(limit === undefined || limit === Infinity
          ? {}
          : { limit: String(limit) }),
      },
      ...(feed.body === undefined ? {} : { body: feed.body }),
      feed: { lines: feed.kind === "continuous", first },
      maxDocumentSize: feed.maxDocumentSize,
    },
    gone,
  );
}

function ended(end: ChangesEnd | undefined): ChangesEnd {
  if (end === undefined) throw new Error("a changes answer was cut short");
  return end;
}

interface Wait {
  /** True when there may be changes after `seq`; false when the feed is to end. */
  readonly forChangeAfter: (seq: number) => Promise<boolean>;
  /** Starts the timeout anew. */
  readonly restart: () => void;
  readonly close: () => void;
}

function openWait(feed: Feed): Wait {
  const { response, database } = feed.exchange;
  const { heartbeat, timeout } = feed.patience;
  let expired = false;
  let wake = (): void => undefined;
  const beat =
    heartbeat === undefined
      ? undefined
      : setInterval(() => sendLineFeed(response), heartbeat);
  // With a heartbeat the timeout is ignored.
  const end =
    heartbeat !== undefined
      ? undefined
      : setTimeout(() => {
          expired = true;
          wake();
        }, timeout);
  const stopListening = database.onState(() => wake());
  const onStop = (): void => wake();
  feed.stop.addEventListener("abort", onStop, { once: true });
  return {
    forChangeAfter: async (seq) => {
      for (;;) {
        if (feed.stop.aborted || database.isClosed()) return false;
        if (database.state().updateSeq > seq) return true;
        if (expired) return false;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    restart: () => {
      expired = false;
      end?.refresh();
    },
    close: () => {
      clearInterval(beat);
      clearTimeout(end);
      stopListening();
      feed.stop.removeEventListener("abort", onStop);
    },
  };
}

function sendLineFeed(response: ServerResponse): void {
  // A client that reads nothing gets no pile of line feeds.
  if (response.writableLength === 0) response.write("\n");
}

function readKind(feed: string | undefined): FeedKind {
  switch (feed) {
    case undefined:
    case "normal":
      return "normal";
    case "longpoll":
      return "longpoll";
    case "continuous":
    case "live":
      return "continuous";
    case "eventsource":
      throw new Refusal(
        "not_implemented",
        "This notes store has no event source feed; use feed=longpoll or feed=continuous.",
      );
    default:
      throw new Refusal(
        "bad_request",
        "Supported `feed` types: normal, continuous, live, longpoll, eventsource",
      );
  }
}

function readPatience(query: Readonly<Record<string, string>>): Patience {
  const { heartbeat, timeout } = query;
  if (timeout !== undefined && !/^\d{1,15}$/.test(timeout)) {
    throw new Refusal(
      "bad_request",
      "The timeout value should be a number of milliseconds.",
    );
  }
  return {
    heartbeat: readHeartbeat(heartbeat),
    timeout: Math.min(MAX_WAIT_MS, Number(timeout ?? MAX_WAIT_MS)),
  };
}

function readHeartbeat(text: string | undefined): number | undefined {
  if (text === undefined || text === "false") return undefined;
  if (text === "true") return MAX_WAIT_MS;
  if (!/^-?\d{1,15}$/.test(text)) {
    throw new Refusal(
      "bad_request",
      "Invalid heartbeat value. Expecting a positive integer value (in milliseconds).",
    );
  }
  if (Number(text) <= 0) {
    throw new Refusal(
      "bad_request",
      "The heartbeat value should be a positive integer (in milliseconds).",
    );
  }
  return Math.min(MAX_WAIT_MS, Number(text));
}

function limitOf(limit: string | undefined): number {
  const value = Number(limit ?? Infinity);
  return value < 0 ? Infinity : value;
}

function limitIsZero(feed: Feed): boolean {
  return limitOf(feed.exchange.target.query.limit) === 0;
}
