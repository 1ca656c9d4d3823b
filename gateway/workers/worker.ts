import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Gateway } from "../gateway.ts";
import { startGateway, type StartOptions } from "../start.ts";
import { answerHere } from "./answers.ts";
import type { Question, WorkerGroup } from "./group.ts";
import { configOf, resultOf } from "./journals.ts";
import type { ToPrimary, ToWorker } from "./messages.ts";

const READY_POLL_MS = 20;
/** Signals of a terminal reach the whole process group; the primary process decides. */
const IGNORED = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Serves connections that the primary process accepts, until that ends. Throws {@link StartError}. */
export async function runWorker(
  number: number,
  options: StartOptions,
): Promise<void> {
  for (const signal of IGNORED) {
    process.on(signal, () => undefined);
  }
  const primary = new PrimaryLink();
  await primary.started;
  const running = await startGateway({
    ...options,
    config: configOf(options.config, number),
    readConfig: () => resultOf(options.readConfig(), number),
    log: options.log.child({ worker: number }),
    group: primary,
    worker: number,
  });
  primary.serve(running.listener, running.gateway, {
    notice: () => running.beginStopping(),
    stop: () => {
      running.stop().then(
        () => process.exit(0),
        (error: unknown) => {
          options.log.error({ error, worker: number }, "stopping failed");
          process.exit(1);
        },
      );
    },
  });
}

interface Ends {
  readonly notice: () => void;
  readonly stop: () => void;
}

/** A worker's side of the channel to the primary process. */
class PrimaryLink implements WorkerGroup {
  /** Of messages that arrive while the gateway starts. */
  readonly #early: (readonly [ToWorker, Socket | undefined])[] = [];
  readonly #started = Promise.withResolvers<void>();
  readonly #asked = new Map<number, (answers: readonly unknown[]) => void>();
  #take = (message: ToWorker, socket?: Socket): void => {
    if (message.kind === "start") {
      this.#started.resolve();
    } else {
      this.#early.push([message, socket]);
    }
  };
  #lastId = 0;

  constructor() {
    process.on("message", (message: ToWorker, socket: Socket | undefined) => {
      if ("kind" in message) {
        this.#take(message, socket);
      }
    });
    // Keeps the process alive while nothing else does; a preloaded module may have given this up.
    process.channel?.ref();
    send({ kind: "loaded" });
  }

  /** Resolves when no other process has the journal of this worker. */
  get started(): Promise<void> {
    return this.#started.promise;
  }

  ask(question: Question): Promise<readonly unknown[]> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      this.#asked.set(id, resolve);
      send({ kind: "ask", id, question });
    });
  }

  serve(listener: Server, gateway: Gateway, ends: Ends): void {
    this.#take = (message, socket) => {
      switch (message.kind) {
        case "connection":
          send({ kind: "taken", id: message.id });
          take(listener, socket);
          break;
        case "question":
          void answer(gateway, message.id, message.question);
          break;
        case "answers":
          this.#asked.get(message.id)?.(message.answers);
          this.#asked.delete(message.id);
          break;
        case "ping":
          send({ kind: "alive" });
          break;
        case "notice":
          ends.notice();
          break;
        case "stop":
          ends.stop();
          break;
        case "start":
      }
    };
    send({ kind: "listening" });
    const poll = setInterval(() => {
      if (gateway.database.ready()) {
        clearInterval(poll);
        send({ kind: "ready" });
      }
    }, READY_POLL_MS);
    for (const [message, socket] of this.#early.splice(0)) {
      this.#take(message, socket);
    }
  }
}

/** Undefined: the client has closed the connection on the way here. */
function take(listener: Server, socket: Socket | undefined): void {
  if (socket !== undefined) {
    // As of connections that a server accepts itself.
    socket.allowHalfOpen = true;
    listener.emit("connection", socket);
  }
}

async function answer(
  gateway: Gateway,
  id: number,
  question: Question,
): Promise<void> {
  try {
    send({ kind: "answer", id, answer: await answerHere(gateway, question) });
  } catch (error) {
    gateway.log.error({ error, question }, "the other workers got no answer");
    send({ kind: "answer", id, answer: null });
  }
}

function send(message: ToPrimary): void {
  process.send?.(message);
}
