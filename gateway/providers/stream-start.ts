import type { EventEmitter } from "node:events";
import type { Readable } from "node:stream";
import type { Usage } from "../tokens/reported-usage.ts";
import type { SseEvent, SseParser } from "../../core/sse.ts";
import { errorInEvent, type AnsweredError } from "./answered-error.ts";
import { parseJson } from "../../core/json.ts";
import { isContent, openingUsage } from "./stream-content.ts";
import { createStreamParser } from "./stream-errors.ts";

/** The client that waits for a stream. */
export type StreamClient = EventEmitter & { readonly destroyed: boolean };

export type StreamStart =
  /** The whole stream, from its first byte. */
  | { readonly kind: "started"; readonly chunks: AsyncIterable<Buffer> }
  /** An error takes the place of the answer. `usage`: what the stream has reported, or null. */
  | { readonly kind: "error"; readonly error: AnsweredError }
  | {
      readonly kind: "broken";
      readonly cause: unknown;
      readonly usage: Usage | null;
    }
  /** It ended in order, without an answer. */
  | { readonly kind: "empty"; readonly usage: Usage | null };

/**
 * After this time without content the events are passed on as they come: the provider's pings keep the client's connection
 * alive.
 */
const MAX_HELD_MS = 30_000;
const MAX_HELD_BYTES = 1024 * 1024;

type Read = Promise<IteratorResult<Buffer, undefined>>;

/**
 * Waits for the first content of a stream, or until the client has left: what fails before can still be answered by another
 * attempt.
 */
export async function startOfStream(
  body: Readable,
  client: StreamClient | null,
): Promise<StreamStart> {
  const rest = body.iterator({ destroyOnReturn: false }) as AsyncIterator<
    Buffer,
    undefined
  >;
  const left = Promise.withResolvers<null>();
  const onClose = () => left.resolve(null);
  if (client?.destroyed === true) {
    onClose();
  }
  client?.once("close", onClose);
  const parser = createStreamParser();
  const opening = new Opening();
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
        return { kind: "started", chunks };
      }
      const found = opening.take(
        piece.done ? lastEvents(parser) : parser.push(piece.value),
      );
      if (found !== null && found !== "content") {
        return { kind: "error", error: found };
      }
      if (found === "content" || opening.isTooLong(piece.value)) {
        return { kind: "started", chunks };
      }
      if (piece.done) {
        return { kind: "empty", usage: opening.usage() };
      }
    }
  } catch (cause) {
    return { kind: "broken", cause, usage: opening.usage() };
  } finally {
    client?.off("close", onClose);
  }
}

/** What the end of a stream completes: an event that lacks only its blank line, not one that broke off in the middle. */
export function lastEvents(parser: SseParser): readonly SseEvent[] {
  return parser
    .end()
    .filter(({ data }) => data === "[DONE]" || parseJson(data) !== undefined);
}

/** What of a stream comes before its first content. */
class Opening {
  readonly #events: string[] = [];
  #since: number | null = null;
  #bytes = 0;

  /** The first content or error among events; null: there is neither. */
  take(events: readonly SseEvent[]): "content" | AnsweredError | null {
    for (const { data } of events) {
      const error = errorInEvent(data);
      if (error !== null) {
        return { ...error, usage: error.usage ?? this.usage() };
      }
      if (isContent(data)) {
        return "content";
      }
      this.#events.push(data);
    }
    return null;
  }

  /** Asked after each piece. */
  isTooLong(piece: Buffer | undefined): boolean {
    this.#since ??= performance.now();
    this.#bytes += piece?.length ?? 0;
    return (
      this.#bytes > MAX_HELD_BYTES ||
      (piece !== undefined && performance.now() - this.#since > MAX_HELD_MS)
    );
  }

  usage(): Usage | null {
    return openingUsage(this.#events);
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
