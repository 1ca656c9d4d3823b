import { randomBytes } from "node:crypto";
import type { FeedSource } from "./feed-wait.ts";
import { Listeners } from "./listeners.ts";

/** Feeds report writes to a database at most this often: a device writes several times a second while its user types. */
const UPDATE_DELAY_MS = 1000;
/** Bounds the memory for names of deleted databases. */
const MAX_ROWS = 10_000;

type UpdateType = "created" | "updated" | "deleted";

export interface DatabaseUpdate {
  readonly db_name: string;
  readonly type: UpdateType;
  readonly seq: string;
}

/** Events of the databases since this process started: the last one of each type per database, as in CouchDB's `_db_updates`. */
export class DatabaseUpdates implements FeedSource {
  /** Distinguishes tokens of this process from those of a previous one. */
  readonly #process = randomBytes(8).toString("hex");
  /** By type and name; the latest event is the last. */
  readonly #rows = new Map<
    string,
    { name: string; type: UpdateType; at: number }
  >();
  readonly #listeners = new Listeners();
  /** Databases written since the last event. */
  readonly #written = new Set<string>();
  #seq = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** `names` are the existing databases; their earlier events are unknown. */
  constructor(names: readonly string[]) {
    for (const name of names) {
      this.#record(name, "updated");
    }
  }

  seq(): number {
    return this.#seq;
  }

  isClosed(): boolean {
    return this.#isClosed;
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  add(name: string, type: UpdateType): void {
    if (type === "updated") {
      this.#written.add(name);
      this.#timer ??= setTimeout(
        () => this.#recordWritten(),
        UPDATE_DELAY_MS,
      ).unref();
      return;
    }
    if (type === "deleted") {
      this.#written.delete(name);
      this.#rows.delete(`created:${name}`);
      this.#rows.delete(`updated:${name}`);
    }
    this.#record(name, type);
    this.#listeners.notify();
  }

  /** Events after a sequence number. */
  after(since: number): readonly DatabaseUpdate[] {
    return [...this.#rows.values()]
      .filter(({ at }) => at > since)
      .map(({ name, type, at }) => ({
        db_name: name,
        type,
        seq: this.token(at),
      }));
  }

  token(at: number): string {
    return `${at}-${this.#process}`;
  }

  seqOf(text: string | undefined): number {
    if (text === "now") {
      return this.#seq;
    }
    const [at, of] = (text ?? "").split("-");
    return of === this.#process ? Number(at) || 0 : 0;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#listeners.notify();
  }

  #record(name: string, type: UpdateType): void {
    const key = `${type}:${name}`;
    this.#seq += 1;
    this.#rows.delete(key);
    this.#rows.set(key, { name, type, at: this.#seq });
    if (this.#rows.size > MAX_ROWS) {
      this.#rows.delete(this.#rows.keys().next().value!);
    }
  }

  #recordWritten(): void {
    this.#timer = undefined;
    for (const name of this.#written) {
      this.#record(name, "updated");
    }
    this.#written.clear();
    this.#listeners.notify();
  }
}
