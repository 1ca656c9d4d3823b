import { CallError } from "../../http/errors.ts";
import type { Turn } from "./turn.ts";

/** As OpenAI permits: calls in progress, and names, of one connection. */
export const MAX_IN_PROGRESS = 16;
export const MAX_STREAMS = 32;
/** Messages of one connection that wait for their turn. */
const MAX_WAITING = 64;

/** A message that waits for its turn. */
export interface Waiting {
  readonly text: Buffer;
  readonly isWarmUp: boolean;
}

/** The calls of one `stream_id`, one after the other. */
export interface SocketStream {
  readonly id: string | null;
  readonly waiting: Waiting[];
  /** null: none is in progress. */
  turn: Turn | null;
}

/** The streams of one connection, whose calls run side by side. */
export class SocketStreams {
  readonly #streams = new Map<string | null, SocketStream>();

  /** Lets a message wait for its turn. Throws 429 if there are too many streams or messages. */
  add(id: string | null, message: Waiting): void {
    const all = [...this.#streams.values()];
    const known = this.#streams.get(id);
    const named = all.filter((stream) => stream.id !== null);
    if (known === undefined && id !== null && named.length >= MAX_STREAMS) {
      throw new CallError(
        "rate_limit_exceeded",
        `A WebSocket has at most ${MAX_STREAMS} streams: use one of its \`stream_id\`s again, or open another WebSocket.`,
        { param: "stream_id" },
      );
    }
    const waiting = all.reduce((sum, stream) => sum + stream.waiting.length, 0);
    if (waiting >= MAX_WAITING) {
      throw new CallError(
        "rate_limit_exceeded",
        `${MAX_WAITING} calls of this WebSocket wait for their turn: wait for an answer before the next one.`,
      );
    }
    const stream = known ?? { id, waiting: [], turn: null };
    stream.waiting.push(message);
    this.#streams.set(id, stream);
  }

  /** The next stream whose turn it is, with its message; null: all wait. */
  next(): { readonly stream: SocketStream; readonly message: Waiting } | null {
    if (this.inProgress.length >= MAX_IN_PROGRESS) {
      return null;
    }
    for (const stream of this.#streams.values()) {
      const message = stream.turn === null ? stream.waiting.shift() : undefined;
      if (message !== undefined) {
        return { stream, message };
      }
    }
    return null;
  }

  get inProgress(): readonly Turn[] {
    return [...this.#streams.values()].flatMap(({ turn }) => turn ?? []);
  }

  /** Drops the messages that wait, and returns them. */
  dropWaiting(): readonly Waiting[] {
    return [...this.#streams.values()].flatMap(({ waiting }) =>
      waiting.splice(0),
    );
  }
}
