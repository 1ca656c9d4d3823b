import cluster from "node:cluster";
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { GatewayConfig } from "../config/types.ts";
import type { Reloaded } from "../gateway.ts";
import { listenPlain } from "../listen.ts";
import type { CollectedMetric } from "../metrics/exposition.ts";
import { reloadedOf } from "./reloaded.ts";
import { LostCounts } from "./lost-counts.ts";
import type { Question } from "./group.ts";
import { WorkerProcess } from "./worker-process.ts";

/** How long calls that wait on a socket taken over may wait for the databases of the workers. */
const READY_WITHIN_MS = 30_000;
const POLL_MS = 10;
/** Connections that may wait while every worker is being restarted. */
const MAX_WAITING = 1_000;

export interface PrimaryOptions {
  readonly config: GatewayConfig;
  readonly log: Logger;
  /** A listening socket that was handed over. */
  readonly listenFd: number | undefined;
  /** Lines that were printed already: workers read the same configuration. */
  readonly printed: readonly string[];
}

/** A worker ended before the gateway was ready; it has printed why. */
export class WorkerFailed extends Error {
  readonly exitCode: number;
  constructor(exitCode: number) {
    super("a worker could not start");
    this.exitCode = exitCode;
  }
}

/**
 * Listens on the port for several workers, each a gateway of its own with its own journal, and passes each connection to the
 * next of them: they share it equally, on every system, and a connection survives the restart of the others. It keeps the
 * socket itself, so that none is refused while workers restart, and hands it over to a successor as a single gateway does.
 * (`node:cluster` alone closes the socket with the last worker and does not give it away; with SO_REUSEPORT a worker that
 * ends takes the connections with it that wait for it.)
 */
export class Primary {
  readonly listener: Server;
  readonly #options: PrimaryOptions;
  readonly #workers: readonly WorkerProcess[];
  readonly #printed: Set<string>;
  readonly #lost = new LostCounts();
  readonly #failed = Promise.withResolvers<never>();
  #waiting: Socket[] = [];
  #next = 0;
  #wasReady = false;
  #stopping = false;

  constructor(options: PrimaryOptions) {
    const { config, log } = options;
    this.#options = options;
    this.#printed = new Set(options.printed);
    cluster.setupPrimary({
      exec: process.argv[1] ?? "",
      args: process.argv.slice(2),
      serialization: "advanced",
      stdio: ["ignore", "inherit", "pipe", "ipc"],
    });
    this.#workers = Array.from(
      { length: config.server.workers },
      (_, at) =>
        new WorkerProcess(at + 1, {
          log,
          ask: (question) => this.#ask(question),
          listening: () => this.#distributeWaiting(),
          ready: () => this.#noteReady(),
          ended: (code, signal, untaken) => {
            const next = this.#ended(at + 1, code, signal);
            untaken.forEach((socket) => this.#assign(socket));
            return next;
          },
          print: (line) => this.#print(line),
        }),
    );
    // HTTP servers set the same on connections that they accept themselves.
    this.listener = createServer(
      { pauseOnConnect: true, noDelay: true, allowHalfOpen: true },
      (socket) => {
        // Its client may be gone before a worker has it.
        socket.on("error", () => undefined);
        this.#assign(socket);
      },
    );
    // Handled where it is awaited.
    this.#failed.promise.catch(() => undefined);
  }

  /** Rejects with {@link WorkerFailed} when the gateway cannot start; after `start`, until it was ready once. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  /** Loads the program of the workers; throws {@link WorkerFailed}. */
  async load(): Promise<void> {
    await Promise.race([
      Promise.all(this.#workers.map((worker) => worker.load())),
      this.failed,
    ]);
  }

  /** Starts the loaded workers, then listens. Throws {@link StartError} or {@link WorkerFailed}. */
  async start(): Promise<void> {
    const { config, listenFd, log } = this.#options;
    const { host, port } = config.server;
    await Promise.race([
      Promise.all(this.#workers.map((worker) => worker.start())),
      this.failed,
    ]);
    if (listenFd !== undefined) {
      await Promise.race([this.#untilReady(), this.failed]);
    }
    await listenPlain(this.listener, { host, port }, listenFd);
    this.listener.on("error", (error) =>
      log.error({ error }, "a connection could not be accepted"),
    );
    log.info({ host, port, workers: this.#workers.length }, "listening");
  }

  async reload(): Promise<Reloaded> {
    const answers = (await this.#ask("reload")) as readonly (Reloaded | null)[];
    return reloadedOf(answers.filter((answer) => answer !== null));
  }

  /** As {@link RunningGateway.stop}, of all workers; throws if one did not stop in order. */
  async stop(noticeMs = 0): Promise<void> {
    const { config, log } = this.#options;
    this.#stopping = true;
    log.info({ workers: this.#workers.length }, "stopping");
    for (const worker of this.#workers) {
      worker.send({ kind: "notice" });
    }
    await sleep(Math.max(config.server.drainNoticeMs, noticeMs));
    this.listener.close();
    this.#waiting.forEach((socket) => socket.destroy());
    const codes = await Promise.all(
      this.#workers.map((worker) => worker.stop()),
    );
    const failed = codes.filter((code) => code !== 0).length;
    if (failed > 0) {
      throw new Error(`${failed} of ${codes.length} workers did not stop`);
    }
    log.info("stopped");
  }

  /** Ends the workers at once. */
  kill(): void {
    this.#stopping = true;
    for (const worker of this.#workers) {
      worker.kill();
    }
  }

  #assign(socket: Socket): void {
    // None follows the stop of the workers.
    if (this.#stopping && !this.listener.listening) {
      socket.destroy();
      return;
    }
    for (let tries = 0; tries < this.#workers.length; tries++) {
      const worker = this.#workers[this.#next];
      this.#next = (this.#next + 1) % this.#workers.length;
      if (worker?.isListening() === true) {
        worker.pass(socket);
        return;
      }
    }
    if (this.#waiting.length >= MAX_WAITING) {
      this.#waiting.shift()?.destroy();
    }
    this.#waiting.push(socket);
  }

  #distributeWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    waiting.forEach((socket) => this.#assign(socket));
  }

  async #ask(question: Question): Promise<readonly unknown[]> {
    if (question === "metrics") {
      return this.#askForMetrics();
    }
    return Promise.all(this.#workers.map((worker) => worker.ask(question)));
  }

  async #askForMetrics(): Promise<readonly unknown[]> {
    await Promise.all(
      this.#workers.map(async (worker, at) => {
        const answer = await worker.ask("metrics");
        if (answer !== null) {
          this.#lost.answered(at, answer as readonly CollectedMetric[]);
        }
      }),
    );
    return this.#lost.complete(this.#workers.length);
  }

  #noteReady(): void {
    this.#wasReady ||= this.#workers.every((worker) => worker.isReady());
  }

  async #untilReady(): Promise<void> {
    const deadline = performance.now() + READY_WITHIN_MS;
    while (!this.#wasReady && performance.now() < deadline) {
      await sleep(POLL_MS);
    }
  }

  /** A worker that ended is started again, unless the gateway cannot start at all. */
  #ended(
    number: number,
    code: number | null,
    signal: NodeJS.Signals | null,
  ): "restart" | "leave" {
    if (this.#stopping) {
      return "leave";
    }
    this.#lost.ended(number - 1);
    if (!this.#wasReady && signal === null) {
      this.#failed.reject(new WorkerFailed(code === 0 ? 1 : (code ?? 1)));
      return "leave";
    }
    this.#options.log.error(
      { worker: number, code, signal },
      "a worker ended and is restarted; its journal keeps its calls",
    );
    return "restart";
  }

  /** Workers find the same mistakes: each line is printed once. */
  #print(line: string): void {
    if (line.startsWith("hearth: ")) {
      if (this.#printed.has(line)) {
        return;
      }
      this.#printed.add(line);
    }
    process.stderr.write(`${line}\n`);
  }
}
