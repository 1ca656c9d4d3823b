import type { ServerResponse } from "node:http";
import { MINUTE_MS } from "../core/duration.ts";
import { Refusal } from "./refusal.ts";

/** CouchDB's default, and the maximum that a client may request. */
const MAX_WAIT_MS = MINUTE_MS;

export type FeedKind = "normal" | "longpoll" | "continuous";

/** How a feed behaves without changes: line feeds at an interval, or an end after a timeout. */
export interface Patience {
  readonly heartbeat: number | undefined;
  readonly timeout: number;
}

/** The source of a feed's changes. */
export interface FeedSource {
  readonly seq: () => number;
  readonly isClosed: () => boolean;
  /** Calls `listener` after every change, and when the source closes. Returns a function that stops this. */
  readonly onChange: (listener: () => void) => () => void;
}

/** Who a feed is sent to. */
interface FeedClient {
  readonly response: ServerResponse;
  readonly login: { readonly isCurrent: () => Promise<boolean> };
}

export interface Wait {
  /** Resolves with true when there may be changes after `seq`, with false when the feed must end. */
  readonly forChangeAfter: (seq: number) => Promise<boolean>;
  /** Restarts the timeout. */
  readonly restart: () => void;
  /** Pauses the line feeds, or continues them. */
  readonly pauseLineFeeds: (pause: boolean) => void;
  readonly close: () => void;
}

/** Opens a wait on a source; `stop` is aborted when the client disconnects, the server stops or the login ends. */
export function openWait(
  source: FeedSource,
  { heartbeat, timeout }: Patience,
  { response, login }: FeedClient,
  stop: AbortSignal,
): Wait {
  let expired = false;
  let paused = false;
  let wake = (): void => undefined;
  const beat =
    heartbeat === undefined
      ? undefined
      : setInterval(() => {
          if (!paused) {
            sendLineFeed(response);
          }
        }, heartbeat);
  // With a heartbeat the timeout is ignored.
  const end =
    heartbeat !== undefined
      ? undefined
      : setTimeout(() => {
          expired = true;
          wake();
        }, timeout);
  const stopListening = source.onChange(() => wake());
  const onStop = (): void => wake();
  stop.addEventListener("abort", onStop, { once: true });
  return {
    forChangeAfter: async (seq) => {
      for (;;) {
        if (stop.aborted || source.isClosed()) {
          return false;
        }
        if (source.seq() > seq) {
          // The change may be later than the end of the login.
          return (await login.isCurrent()) && !stop.aborted;
        }
        if (expired) {
          return false;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    restart: () => {
      expired = false;
      end?.refresh();
    },
    pauseLineFeeds: (pause) => {
      paused = pause;
    },
    close: () => {
      clearInterval(beat);
      clearTimeout(end);
      stopListening();
      stop.removeEventListener("abort", onStop);
    },
  };
}

function sendLineFeed(response: ServerResponse): void {
  // Line feeds must not accumulate for a client that does not read.
  if (response.writableLength === 0) {
    response.write("\n");
  }
}

export function readKind(feed: string | undefined): FeedKind {
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
        "The eventsource feed is not supported; use feed=longpoll or feed=continuous.",
      );
    default:
      throw new Refusal(
        "bad_request",
        "Supported `feed` types: normal, continuous, live, longpoll, eventsource",
      );
  }
}

export function readPatience(
  query: Readonly<Record<string, string>>,
): Patience {
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
  if (text === undefined || text === "false") {
    return undefined;
  }
  if (text === "true") {
    return MAX_WAIT_MS;
  }
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
