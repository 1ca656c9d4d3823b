import { LRUCache } from "lru-cache";
import { parseRecord, recordsOf, textOf } from "../../../core/json.ts";
import type { ConnectionMemory, History } from "../response-context.ts";
import { MAX_BYTES } from "../limits.ts";
import { sessionIn } from "../stored-response.ts";

/**
 * The responses that connections remember, as text: the last one of each stream. All together occupy at most `maxBytes`; those
 * that were not used for longest are forgotten first, and their clients send their conversations again.
 */
export class SocketMemory {
  readonly #histories: LRUCache<string, Buffer>;

  constructor(maxBytes: number) {
    const maxSize = Math.max(1, Math.floor(maxBytes));
    this.#histories = new LRUCache({
      maxSize,
      maxEntrySize: Math.min(maxSize, MAX_BYTES),
      sizeCalculation: ({ length }) => Math.max(1, length),
    });
  }

  /** Of one connection. */
  connection(): RememberedStreams {
    return new RememberedStreams(this.#histories);
  }

  get bytes(): number {
    return this.#histories.calculatedSize;
  }
}

export class RememberedStreams {
  readonly #histories: LRUCache<string, Buffer>;
  /** The id of the last response, by stream. */
  readonly #last = new Map<string | null, string>();

  constructor(histories: LRUCache<string, Buffer>) {
    this.#histories = histories;
  }

  /** What one stream remembers; it can continue the responses of the others too. */
  ofStream(streamId: string | null): ConnectionMemory {
    return {
      find: (id) => this.#find(id),
      remember: (id, history) => {
        this.#forget(streamId);
        this.#last.set(streamId, id);
        this.#histories.set(id, Buffer.from(JSON.stringify(history)));
      },
    };
  }

  clear(): void {
    for (const streamId of this.#last.keys()) {
      this.#forget(streamId);
    }
  }

  #find(id: string): History | null {
    const isOwn = [...this.#last.values()].includes(id);
    const json = isOwn ? this.#histories.get(id) : undefined;
    const history = json && parseRecord(json.toString("utf8"));
    return history
      ? {
          items: recordsOf(history["items"]),
          rootId: textOf(history["rootId"]),
          session: sessionIn(history["session"]),
        }
      : null;
  }

  #forget(streamId: string | null): void {
    this.#histories.delete(this.#last.get(streamId) ?? "");
    this.#last.delete(streamId);
  }
}
