import { parseRecord, textOf, type JsonRecord } from "../../core/json.ts";
import type { StreamPiece } from "../providers/wire.ts";

/** The longest time between an event and its row. */
const WRITE_AFTER_MS = 100;
/** Of JSON. Later events are left out: the last one has the whole answer. */
const MAX_BYTES = 8 * 1024 * 1024;

/** The events of a response in background, numbered, for clients that follow it. Its last event is the response itself as it ended. */
export class RecordedEvents {
  /** Writes events, the last of which has this number. */
  readonly #write: (
    lastNumber: number,
    events: readonly JsonRecord[],
  ) => Promise<unknown>;
  #next: number;
  #bytes = 0;
  #unwritten: JsonRecord[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<unknown> = Promise.resolve();

  /** `next`: the number of the first event that it records. */
  constructor(
    next: number,
    write: (
      lastNumber: number,
      events: readonly JsonRecord[],
    ) => Promise<unknown>,
  ) {
    this.#next = next;
    this.#write = write;
  }

  record({ event: name, data }: StreamPiece): void {
    this.#bytes += data.length;
    if (this.#bytes > MAX_BYTES) {
      return;
    }
    const event = parseRecord(data);
    const type = name ?? textOf(event?.["type"]);
    if (event === null || LEFT_OUT.has(type)) {
      return;
    }
    this.#unwritten.push({ ...event, sequence_number: this.#next++ });
    this.#timer ??= setTimeout(() => {
      // What cannot be written now is written with what follows.
      this.written().catch(() => undefined);
    }, WRITE_AFTER_MS);
  }

  /** Resolves when all recorded events are written. Throws `DatabaseUnavailable`. */
  async written(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const writing = this.#writing
      .catch(() => undefined)
      .then(() => this.#writeAll());
    this.#writing = writing;
    await writing;
  }

  async #writeAll(): Promise<void> {
    const events = this.#unwritten;
    if (events.length === 0) {
      return;
    }
    const lastNumber = this.#next - 1;
    this.#unwritten = [];
    try {
      await this.#write(lastNumber, events);
    } catch (error) {
      this.#unwritten = [...events, ...this.#unwritten];
      throw error;
    }
  }
}

/** Written when the response is queued, or read from the response as it ended. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "response.created",
  "response.completed",
  "response.incomplete",
  "response.failed",
  "error",
]);
