import { Worker } from "node:worker_threads";
import { DatabaseCalls, type DatabaseAnswer } from "./database-calls.ts";
import { Listeners } from "./listeners.ts";
import {
  Refusal,
  storageFailureOf,
  type RefusalCode,
  type StorageFailure,
} from "./refusal.ts";
import type {
  FromWorker,
  PublicState,
  StoreRequest,
  ToWorker,
  WorkerData,
} from "./store/protocol.ts";
import { openWatchdog, type Watchdog } from "./thread-watchdog.ts";

/** An open database: a handle on its worker thread. */
export interface Database {
  readonly name: string;
  readonly state: () => PublicState;
  readonly call: (
    request: StoreRequest,
    signal: AbortSignal,
  ) => Promise<DatabaseAnswer>;
  /** Calls `listener` after every change of the state, and when the database closes. Returns a function that stops this. */
  readonly onState: (listener: () => void) => () => void;
  readonly isClosed: () => boolean;
  /** Whether the thread does not answer. */
  readonly isHung: () => boolean;
  /** No request, feed or compaction is running. Callers use a database they opened before any timer can fire. */
  readonly isIdle: () => boolean;
  /** Resolves when the thread has ended and the file is free. */
  readonly exited: Promise<void>;
  readonly close: () => Promise<void>;
}

/** Events that a database reports. */
export interface DatabaseEvents {
  /** The database was opened read-only because the disk is full. */
  readonly readOnly: (name: string) => void;
  readonly compacted: (
    name: string,
    before: number,
    after: number,
    milliseconds: number,
  ) => void;
  /** Documents (local ones included) or settings were written. */
  readonly changed: (name: string) => void;
  readonly failed: (
    name: string,
    detail: string,
    storageFailure: StorageFailure | undefined,
  ) => void;
  /** The thread did not answer for this long and was terminated. */
  readonly hung: (name: string, milliseconds: number) => void;
}

/** Maximum time without an answer while requests wait for the thread. */
const WATCHDOG_MS = 30_000;

const closedRefusal = (): Refusal =>
  new Refusal("not_found", "Database does not exist.");

/** Opens a database file in its own thread. Rejects with an error of one sentence when the file cannot be used. */
export async function openDatabase(
  data: WorkerData,
  events: DatabaseEvents,
  watchdogMs = WATCHDOG_MS,
): Promise<Database> {
  const thread = new DatabaseThread(data, events, watchdogMs);
  await thread.ready;
  return thread;
}

class DatabaseThread implements Database {
  readonly name: string;
  readonly exited: Promise<void>;
  /** Rejects when the file cannot be opened. */
  readonly ready: Promise<void>;
  readonly #file: string;
  readonly #events: DatabaseEvents;
  readonly #worker: Worker;
  readonly #watchdog: Watchdog;
  readonly #calls = new DatabaseCalls((message) => this.#send(message));
  readonly #listeners = new Listeners();
  readonly #opening = Promise.withResolvers<void>();
  #state!: PublicState;
  #closed: Error | undefined;
  #closing = false;

  constructor(data: WorkerData, events: DatabaseEvents, watchdogMs: number) {
    this.name = data.name;
    this.#file = data.file;
    this.#events = events;
    this.ready = this.#opening.promise;
    this.#worker = new Worker(new URL("./store/worker.ts", import.meta.url), {
      workerData: data,
      name: `notes ${data.name}`,
      // Bodies are outside the heap; a small young generation limits garbage.
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    });
    this.exited = new Promise((resolve) => {
      this.#worker.once("exit", () => resolve());
    });
    this.#watchdog = openWatchdog({
      deadlineMs: watchdogMs,
      isBusy: () => this.#calls.size > 0 || this.#closing,
      ping: () => this.#send({ kind: "ping" }),
      expired: () => this.#terminate(watchdogMs),
    });
    this.#worker.on("message", (message: FromWorker) => this.#on(message));
    this.#worker.on("error", (failure: Error) => this.#fail(failure));
    this.#worker.on("exit", () => this.#shut(closedRefusal()));
  }

  state(): PublicState {
    return this.#state;
  }

  isClosed(): boolean {
    return this.#closed !== undefined;
  }

  isHung(): boolean {
    return this.#watchdog.isHung();
  }

  isIdle(): boolean {
    return (
      this.#calls.size === 0 &&
      this.#listeners.size === 0 &&
      !this.#state.compacting
    );
  }

  onState(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  async call(
    request: StoreRequest,
    signal: AbortSignal,
  ): Promise<DatabaseAnswer> {
    if (this.#closed !== undefined) {
      throw this.#closed;
    }
    this.#watchdog.start();
    return await this.#calls.start(request, signal);
  }

  async close(): Promise<void> {
    if (this.#closed !== undefined) {
      return;
    }
    this.#closing = true;
    this.#watchdog.start();
    await new Promise<void>((resolve) => {
      this.#listeners.add(() => {
        if (this.#closed !== undefined) {
          resolve();
        }
      });
      this.#send({ kind: "close" });
    });
  }

  #send(message: ToWorker): void {
    if (this.#closed === undefined) {
      this.#worker.postMessage(message);
    }
  }

  #on(message: FromWorker): void {
    switch (message.kind) {
      case "ready":
        this.#state = message.state;
        if (message.readOnly) {
          this.#events.readOnly(this.name);
        }
        this.#opening.resolve();
        break;
      case "unusable":
        this.#opening.reject(this.#whyUnusable(message));
        void this.#worker.terminate();
        break;
      case "pong":
        this.#watchdog.answered();
        break;
      case "state":
        this.#state = message.state;
        this.#events.changed(this.name);
        this.#listeners.notify();
        break;
      case "compacted": {
        const { before, after, milliseconds } = message;
        this.#events.compacted(this.name, before, after, milliseconds);
        break;
      }
      case "closed":
        this.#shut(closedRefusal());
        break;
      default:
        if (message.kind === "refused" && message.detail !== undefined) {
          const { detail, storageFailure } = message;
          this.#events.failed(this.name, detail, storageFailure);
        }
        this.#calls.receive(message);
    }
  }

  #whyUnusable({
    code,
    reason,
    detail,
    storageFailure,
  }: Extract<FromWorker, { readonly kind: "unusable" }>): Error {
    if (code !== "insufficient_storage") {
      this.#events.failed(
        this.name,
        `database ${this.name} (${this.#file}) cannot be opened: ${detail}`,
        storageFailure,
      );
    }
    return new Refusal(code as RefusalCode, reason);
  }

  #terminate(watchdogMs: number): void {
    this.#events.hung(this.name, watchdogMs);
    this.#shut(
      new Refusal(
        "service_unavailable",
        `This database did not respond for ${watchdogMs / 1000} s and is being reopened. Try again in a few seconds.`,
        { "retry-after": "5" },
      ),
    );
    void this.#worker.terminate();
  }

  #fail(failure: Error): void {
    const detail = failure.stack ?? String(failure);
    this.#events.failed(this.name, detail, storageFailureOf(failure));
    this.#shut(
      new Refusal(
        "internal_error",
        "The notes store failed on this database; see its log.",
      ),
    );
    this.#opening.reject(failure);
  }

  #shut(failure: Error): void {
    if (this.#closed !== undefined) {
      return;
    }
    this.#closed = failure;
    this.#watchdog.stop();
    this.#calls.fail(failure);
    this.#listeners.notify();
  }
}
