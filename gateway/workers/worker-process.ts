import cluster, { type Worker } from "node:cluster";
import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Logger } from "pino";
import { MINUTE_MS } from "../../core/duration.ts";
import type { Question } from "./group.ts";
import { WORKER_VARIABLE, type ToPrimary, type ToWorker } from "./messages.ts";

const ANSWER_WITHIN_MS = 2_000;
/** Reads the configuration and the models of the database. */
const RELOADED_WITHIN_MS = 30_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 30_000;
/** One that leaves this many pings in a row unanswered hangs: no part of a gateway takes so long. */
const PING_EVERY_MS = 3_000;
const MAX_UNANSWERED = 5;
/** One that ran for this long has no problem with its start. */
const RAN_WELL_MS = MINUTE_MS;

interface WorkerEvents {
  readonly log: Logger;
  /** Asks all workers. */
  readonly ask: (question: Question) => Promise<readonly unknown[]>;
  readonly listening: () => void;
  readonly ready: () => void;
  /** `untaken`: connections that it was sent, but did not get. */
  readonly ended: (
    code: number | null,
    signal: NodeJS.Signals | null,
    untaken: readonly Socket[],
  ) => "restart" | "leave";
  /** A line of its standard error. */
  readonly print: (line: string) => void;
}

type State = "starting" | "listening" | "ready" | "gone";

/** One worker of a gateway: its process, which is replaced by another one when it ends. */
export class WorkerProcess {
  readonly #number: number;
  readonly #events: WorkerEvents;
  readonly #asked = new Map<number, (answer: unknown) => void>();
  /** Connections on their way to it: a process that ends has not read all that it was sent. */
  readonly #passed = new Map<number, Socket>();
  #worker: Worker | null = null;
  #state: State = "gone";
  #startedAt = 0;
  #waitMs = FIRST_WAIT_MS;
  #timer: NodeJS.Timeout | undefined;
  #pings: NodeJS.Timeout | undefined;
  #unanswered = 0;
  #lastId = 0;
  #whenLoaded: (() => void) | null = null;
  #whenListening: (() => void) | null = null;
  /** A process that replaces another starts at once. */
  #mayStart = false;
  #whenStopped: ((code: number | null) => void) | null = null;

  constructor(number: number, events: WorkerEvents) {
    this.#number = number;
    this.#events = events;
  }

  isListening(): boolean {
    return this.#state === "listening" || this.#state === "ready";
  }

  isReady(): boolean {
    return this.#state === "ready";
  }

  /** Resolves when its program is loaded. */
  load(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenLoaded = resolve;
      this.#launch();
    });
  }

  /** Resolves when it takes connections. */
  start(): Promise<void> {
    this.#mayStart = true;
    return new Promise((resolve) => {
      this.#whenListening = resolve;
      this.send({ kind: "start" });
    });
  }

  send(message: ToWorker): void {
    // Fails when the process has ended; then its end follows.
    this.#worker?.send(message, undefined, () => undefined);
  }

  /** Passes a connection on; see {@link WorkerEvents.ended}. */
  pass(socket: Socket): void {
    const id = ++this.#lastId;
    this.#passed.set(id, socket);
    this.#worker?.send(
      { kind: "connection", id } satisfies ToWorker,
      socket,
      { keepOpen: true },
      () => undefined,
    );
  }

  /** null: it takes no connections now, or did not answer in time. */
  ask(question: Question): Promise<unknown> {
    if (!this.isListening()) {
      return Promise.resolve(null);
    }
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      const late = setTimeout(
        () => this.#answered(id, null),
        question === "reload" ? RELOADED_WITHIN_MS : ANSWER_WITHIN_MS,
      );
      this.#asked.set(id, (answer) => {
        clearTimeout(late);
        resolve(answer);
      });
      this.send({ kind: "question", id, question });
    });
  }

  /** No connection may be sent afterwards. Resolves with the exit code when it has ended; 0 if it was not running. */
  stop(): Promise<number | null> {
    clearTimeout(this.#timer);
    return new Promise((resolve) => {
      if (this.#worker === null) {
        resolve(0);
        return;
      }
      this.#whenStopped = resolve;
      this.send({ kind: "stop" });
    });
  }

  kill(): void {
    clearTimeout(this.#timer);
    this.#worker?.process.kill("SIGKILL");
  }

  #launch(): void {
    const worker = cluster.fork({ [WORKER_VARIABLE]: String(this.#number) });
    this.#worker = worker;
    this.#state = "starting";
    this.#startedAt = performance.now();
    worker.on("message", (message: ToPrimary) => this.#take(message));
    // Such as a message to a process that has just ended.
    worker.on("error", () => undefined);
    const { stderr } = worker.process;
    if (stderr !== null) {
      createInterface({ input: stderr }).on("line", this.#events.print);
    }
    // Unlike `exit`, after its last line of standard error.
    worker.process.once("close", (code, signal) => {
      const end = () => this.#ended(code, signal);
      // And after its last message.
      if (worker.process.connected) {
        worker.process.once("disconnect", end);
      } else {
        end();
      }
    });
  }

  #take(message: ToPrimary): void {
    switch (message.kind) {
      case "loaded":
        this.#whenLoaded?.();
        if (this.#mayStart) {
          this.send({ kind: "start" });
        }
        break;
      case "listening":
        this.#state = "listening";
        this.#killWhenItHangs();
        this.#whenListening?.();
        this.#events.listening();
        break;
      case "taken":
        // The process has a copy of its own.
        this.#passed.get(message.id)?.destroy();
        this.#passed.delete(message.id);
        break;
      case "ready":
        this.#state = "ready";
        this.#events.ready();
        break;
      case "alive":
        this.#unanswered = 0;
        break;
      case "answer":
        this.#answered(message.id, message.answer);
        break;
      case "ask":
        void this.#events
          .ask(message.question)
          .then((answers) =>
            this.send({ kind: "answers", id: message.id, answers }),
          );
    }
  }

  /** Pings are counted, not seconds: those in which the whole machine was suspended do not matter. */
  #killWhenItHangs(): void {
    this.#unanswered = 0;
    this.#pings = setInterval(() => {
      if (this.#unanswered < MAX_UNANSWERED) {
        this.#unanswered++;
        this.send({ kind: "ping" });
        return;
      }
      this.#events.log.error(
        { worker: this.#number },
        "a worker hangs and is killed",
      );
      this.kill();
    }, PING_EVERY_MS);
  }

  #answered(id: number, answer: unknown): void {
    this.#asked.get(id)?.(answer);
    this.#asked.delete(id);
  }

  #ended(code: number | null, signal: NodeJS.Signals | null): void {
    this.#worker = null;
    this.#state = "gone";
    clearInterval(this.#pings);
    for (const id of this.#asked.keys()) {
      this.#answered(id, null);
    }
    this.#whenStopped?.(code);
    const untaken = [...this.#passed.values()];
    this.#passed.clear();
    if (this.#events.ended(code, signal, untaken) === "restart") {
      this.#restartLater();
    }
  }

  #restartLater(): void {
    if (performance.now() - this.#startedAt > RAN_WELL_MS) {
      this.#waitMs = FIRST_WAIT_MS;
    }
    this.#timer = setTimeout(() => this.#launch(), this.#waitMs);
    this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_WAIT_MS);
  }
}
