import type { Socket } from "node:net";
import type { Logger } from "pino";
import type { WebSocket } from "ws";
import { MINUTE_MS } from "../../../core/duration.ts";
import type { GatewayConfig } from "../../config/types.ts";
import { maxArrivalMs, memoryLimit, type Bodies } from "../../http/bodies.ts";
import { CallError } from "../../http/errors.ts";
import { SocketMemory } from "./memory.ts";
import { ResponseSocket, type CarryOut } from "./response-socket.ts";

/** Of the memory that this process may use, for the responses that connections remember. */
const MEMORY_SHARE = 1 / 16;
const PROBE_EVERY_MS = 30_000;
const MAX_IDLE_MS = 30 * MINUTE_MS;

/** The WebSockets of the Responses API at this gateway. */
export class ResponseSockets {
  readonly #config: () => GatewayConfig;
  readonly #bodies: Bodies;
  readonly #log: Logger;
  readonly #memory: SocketMemory;
  readonly #open = new Map<ResponseSocket, string>();
  #timer: NodeJS.Timeout | undefined;
  #whenEnded: (() => void) | null = null;

  constructor(config: () => GatewayConfig, bodies: Bodies, log: Logger) {
    this.#config = config;
    this.#bodies = bodies;
    this.#log = log;
    this.#memory = new SocketMemory(
      memoryLimit(config().server.workers) * MEMORY_SHARE,
    );
  }

  count(): number {
    return this.#open.size;
  }

  /** Throws 429 if a key has as many as it may. */
  rejectTooMany(key: string): void {
    const { socketsPerKey } = this.#config().server;
    const open = [...this.#open.values()].filter((one) => one === key).length;
    if (open >= socketsPerKey) {
      throw new CallError(
        "rate_limit_exceeded",
        `This key has ${open} WebSockets open, and may have ${socketsPerKey} at one gateway (\`max_websockets_per_key\`). Close one, or send calls with POST /v1/responses.`,
      );
    }
  }

  /** Serves a WebSocket until it is closed. `key` names the key that it belongs to. */
  serve(
    key: string,
    socket: WebSocket,
    connection: Socket,
    carryOut: CarryOut,
  ): void {
    const ports = {
      key,
      bodies: this.#bodies,
      arrivalMs: maxArrivalMs(this.#config().server.bodyLimitBytes),
      log: this.#log,
      idleMs: () => this.#config().timeouts.idleMs,
    };
    const memory = this.#memory.connection();
    const served = new ResponseSocket(
      socket,
      connection,
      ports,
      memory,
      carryOut,
    );
    this.#open.set(served, key);
    this.#timer ??= setInterval(
      () => this.probe(performance.now()),
      PROBE_EVERY_MS,
    );
    socket.on("close", () => this.#closed(served));
    if (this.#whenEnded !== null) {
      served.end();
    }
  }

  /** Closes those that are idle, and keeps the others open. */
  probe(now: number): void {
    for (const served of this.#open.keys()) {
      served.probe(now, MAX_IDLE_MS);
    }
  }

  /** Lets each finish its calls in progress, and closes it then; resolves when all are closed. */
  async end(): Promise<void> {
    const ended = Promise.withResolvers<null>();
    this.#whenEnded = () => ended.resolve(null);
    for (const served of this.#open.keys()) {
      served.end();
    }
    if (this.#open.size > 0) {
      await ended.promise;
    }
  }

  #closed(served: ResponseSocket): void {
    this.#open.delete(served);
    if (this.#open.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      this.#whenEnded?.();
    }
  }
}
