import type { EventEmitter } from "node:events";
import type { Readable } from "node:stream";
import { errorInEvent, type AnsweredError } from "./answered-error.ts";
import { isRecord, parseRecord, recordsOf, textOf } from "./json.ts";
import { SseParser, type SseEvent } from "../../core/sse.ts";

/** The client that waits for a stream. */
export type StreamClient = EventEmitter & { readonly destroyed: boolean };

export interface StreamStart {
  /** The whole stream, from its first byte. */
  readonly chunks: AsyncIterable<Buffer>;
  /** The stream starts with an error instead of an answer. */
  readonly error: AnsweredError | null;
}

type Read = Promise<IteratorResult<Buffer, undefined>>;

/**
 * Waits for the first event of a stream, or until the client has left: an error before any answer can still be retried.
 * Throws what the stream throws.
 */
export async function startOfStream(
  body: Readable,
  client: StreamClient | null,
): Promise<StreamStart> {
  const rest = body[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  const left = Promise.withResolvers<null>();
  const onClose = () => left.resolve(null);
  if (client?.destroyed === true) {
    onClose();
  }
  client?.once("close", onClose);
  const parser = new SseParser();
  const read: Read[] = [];
  const chunks = { [Symbol.asyncIterator]: () => readAgain(read, rest) };
  try {
    for (;;) {
      const next = rest.next();
      // If the client leaves first, the next reader of the stream sees an error.
      next.catch(() => undefined);
      read.push(next);
      const piece = await Promise.race([next, left.promise]);
      if (piece === null) {
        return { chunks, error: null };
      }
      const events = piece.done ? parser.end() : parser.push(piece.value);
      if (events.length > 0 || piece.done) {
        return { chunks, error: errorBeforeAnswer(events) };
      }
    }
  } finally {
    client?.off("close", onClose);
  }
}

/** Yields what was already read, then the rest. */
function readAgain(
  read: Read[],
  rest: AsyncIterator<Buffer, undefined>,
): AsyncIterator<Buffer, undefined> {
  return {
    next: () => read.shift() ?? rest.next(),
    return: async () => {
      await rest.return?.();
      return { done: true, value: undefined };
    },
  };
}

function errorBeforeAnswer(events: readonly SseEvent[]): AnsweredError | null {
  for (const { data } of events) {
    const error = errorInEvent(data);
    if (error !== null || !isOpening(data)) {
      return error;
    }
  }
  return null;
}

const OPENINGS = [
  "ping",
  "message_start",
  "response.created",
  "response.queued",
  "response.in_progress",
];

/** An event that opens a stream and contains nothing of the answer. */
function isOpening(data: string): boolean {
  const event = parseRecord(data);
  if (event === null) {
    return false;
  }
  const choices = recordsOf(event["choices"]);
  if (choices.length === 0) {
    return OPENINGS.includes(textOf(event["type"]));
  }
  return choices.every(({ delta }) => {
    const { role: _, ...produced } = isRecord(delta) ? delta : {};
    return Object.values(produced).every(
      (value) => value == null || value === "",
    );
  });
}
