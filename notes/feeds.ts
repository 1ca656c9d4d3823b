import type { Database } from "./database.ts";
import {
  openWait,
  readKind,
  readPatience,
  type FeedKind,
  type Patience,
  type Wait,
} from "./feed-wait.ts";
import {
  pipeChunks,
  sendAnswer,
  type DatabaseExchange,
} from "./http/exchange.ts";
import type { Body, ChangesEnd } from "./store/protocol.ts";

interface Feed {
  readonly exchange: DatabaseExchange;
  readonly body: Body | undefined;
  readonly kind: FeedKind;
  readonly patience: Patience;
  /** Aborted when the client disconnects or the server stops. */
  readonly stop: AbortSignal;
  readonly maxDocumentSize: number;
}

/** Answers `_changes` once, or for as long as the client listens. */
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
  // Invalid parameters are rejected before the response starts.
  const first = await pass(feed, query.since, undefined);
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
  if (kind === "continuous") {
    await runContinuous(feed, first.chunks);
  } else {
    await runOnce(feed, first.chunks);
  }
}

type Chunks = AsyncGenerator<Uint8Array, ChangesEnd | undefined>;

async function runOnce(feed: Feed, first: Chunks): Promise<void> {
  const { response, database } = feed.exchange;
  response.write('{"results":[\n');
  let end = ended(await pipeChunks(response, first));
  if (feed.kind === "longpoll" && end.rows === 0 && !limitIsZero(feed)) {
    response.write("\n");
    const wait = waitFor(feed);
    try {
      while (end.rows === 0 && (await wait.forChangeAfter(end.seen))) {
        end = await nextPass(feed, wait, end, undefined);
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
    // Flushes the headers when there were no rows.
    if (end.rows === 0) {
      response.write("\n");
    }
    const wait = waitFor(feed);
    try {
      while (left > 0 && (await wait.forChangeAfter(end.seen))) {
        end = await nextPass(feed, wait, end, left);
        if (end.rows > 0) {
          wait.restart();
        }
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

/** Sends the changes since the last pass. A deleted database has none. */
async function nextPass(
  feed: Feed,
  wait: Wait,
  end: ChangesEnd,
  limit: number | undefined,
): Promise<ChangesEnd> {
  const { chunks } = await pass(feed, end.token, limit);
  if (chunks === undefined) {
    return end;
  }
  // In a long poll, line feeds are white space of its JSON text wherever a chunk ends.
  const sent = feed.kind === "continuous" ? rowByRow(chunks, wait) : chunks;
  return ended(await pipeChunks(feed.exchange.response, sent));
}

const LINE_FEED = 0x0a;

/** Pauses the wait's line feeds within a row, which may be sent in several chunks: clients read a continuous feed line by line. */
async function* rowByRow(chunks: Chunks, wait: Wait): Chunks {
  for (;;) {
    const next = await chunks.next();
    if (next.done === true) {
      return next.value;
    }
    // Only a row's last byte is a line feed: a chunk ends after a row or between two tokens of its JSON.
    wait.pauseLineFeeds(next.value.at(-1) !== LINE_FEED);
    yield next.value;
  }
}

async function pass(
  feed: Feed,
  since: string | undefined,
  limit: number | undefined,
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
      feed: { lines: feed.kind === "continuous" },
      maxDocumentSize: feed.maxDocumentSize,
    },
    gone,
  );
}

function ended(end: ChangesEnd | undefined): ChangesEnd {
  if (end === undefined) {
    throw new Error("a changes answer ended early");
  }
  return end;
}

/** Waits for changes; a deleted database ends the wait. */
const waitFor = ({ exchange, patience, stop }: Feed): Wait =>
  openWait(
    {
      seq: () => exchange.database.state().updateSeq,
      isClosed: () => exchange.database.isClosed(),
      onChange: (listener) => exchange.database.onState(listener),
    },
    patience,
    exchange,
    stop,
  );

function limitOf(limit: string | undefined): number {
  const value = Number(limit ?? Infinity);
  return value < 0 ? Infinity : value;
}

function limitIsZero(feed: Feed): boolean {
  return limitOf(feed.exchange.target.query.limit) === 0;
}
