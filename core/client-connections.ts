import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import { MINUTE_MS } from "./duration.ts";
import { maxClientConnections } from "./open-files.ts";

const FIRST_REQUEST_MS = 1_000;
/** Requests that a client sends on one connection before their answers. Few clients send more than one. */
const MAX_PIPELINED = 32;
const LOG_EVERY_MS = MINUTE_MS;

/**
 * Node closes only connections that are between two requests: one that has sent nothing yet, or half a head, delays
 * `server.close()` until its client or a timeout closes it.
 *
 * Above `maxConnections`, the one that has waited longest for a request is closed, else the one with the oldest request whose body is
 * incomplete, and the new one if all have complete requests: otherwise clients without a key or password could leave none for others,
 * or no files for connections to other servers.
 *
 * Node handles every request that has arrived on a connection at once, a thousand of a few bytes each, and keeps their answers until
 * the client reads them: a connection with more than `MAX_PIPELINED` requests in progress is closed.
 */
export function watchConnections(
  server: Server,
  log: ErrorLog,
  maxConnections = maxClientConnections(),
): ClientConnections {
  return new ClientConnections(server, log, maxConnections);
}

interface ErrorLog {
  error(fields: object, message: string): void;
}

/** The connections of a server, with the number of requests in progress on each. */
export class ClientConnections {
  readonly #inProgress = new Map<Socket, number>();
  /** Without a request in progress, the longest first. */
  readonly #waiting = new Set<Socket>();
  /** By connection, its latest request with a body, which may be incomplete; the oldest first. */
  readonly #withBody = new Map<Socket, IncomingMessage>();
  /** Accepted, but without a request yet. */
  readonly #fresh = new Set<Socket>();
  readonly #whenEnded: (() => void)[] = [];
  readonly #maxConnections: number;
  readonly #log: ErrorLog;
  #loggedAt = -Infinity;
  #closing = false;

  constructor(server: Server, log: ErrorLog, maxConnections: number) {
    this.#maxConnections = maxConnections;
    this.#log = log;
    server.on("connection", (socket) => this.#opened(socket));
    server.on("request", (request, response) => {
      const { socket, headers } = request;
      this.#started(socket);
      if (
        headers["transfer-encoding"] !== undefined ||
        headers["content-length"] !== undefined
      ) {
        this.#withBody.set(socket, request);
      }
      if ((this.#inProgress.get(socket) ?? 0) > MAX_PIPELINED) {
        socket.destroy();
      }
      response.once("close", () => this.#answered(socket));
    });
  }

  /** Keeps a connection whose request to upgrade is accepted. */
  upgraded(socket: Socket): void {
    // Its handler closes it.
    this.#started(socket);
  }

  /** Closes connections without a request now, the others when their requests have ended. */
  closeIdle(): void {
    this.#closing = true;
    for (const socket of this.#inProgress.keys()) {
      if (this.#fresh.has(socket)) {
        this.#closeUnlessUsed(socket);
      } else {
        this.#closeIfIdle(socket);
      }
    }
  }

  closeAll(): void {
    for (const socket of this.#inProgress.keys()) {
      socket.destroy();
    }
  }

  /** Resolves when there is none. */
  async ended(): Promise<void> {
    if (this.#inProgress.size > 0) {
      await new Promise<void>((resolve) => this.#whenEnded.push(resolve));
    }
  }

  #opened(socket: Socket): void {
    if (this.#inProgress.size >= this.#maxConnections) {
      this.#logLimit();
      const [idlest = this.#slowest()] = this.#waiting;
      if (idlest === undefined) {
        socket.destroy();
        return;
      }
      this.#closed(idlest);
      idlest.destroy();
    }
    this.#inProgress.set(socket, 0);
    this.#waiting.add(socket);
    this.#fresh.add(socket);
    socket.once("close", () => this.#closed(socket));
    if (this.#closing) {
      this.#closeUnlessUsed(socket);
    }
  }

  /** The connection whose request has been incomplete for longest. */
  #slowest(): Socket | undefined {
    for (const [socket, request] of this.#withBody) {
      if (!request.complete) {
        return socket;
      }
    }
    return undefined;
  }

  #started(socket: Socket): void {
    this.#fresh.delete(socket);
    this.#waiting.delete(socket);
    this.#inProgress.set(socket, (this.#inProgress.get(socket) ?? 0) + 1);
  }

  #answered(socket: Socket): void {
    const inProgress = this.#inProgress.get(socket);
    if (inProgress === undefined) {
      return;
    }
    this.#inProgress.set(socket, inProgress - 1);
    if (inProgress === 1) {
      this.#waiting.add(socket);
      this.#withBody.delete(socket);
    }
    if (this.#closing) {
      this.#closeIfIdle(socket);
    }
  }

  #closed(socket: Socket): void {
    this.#inProgress.delete(socket);
    this.#waiting.delete(socket);
    this.#withBody.delete(socket);
    this.#fresh.delete(socket);
    if (this.#inProgress.size === 0) {
      this.#whenEnded.splice(0).forEach((resolve) => resolve());
    }
  }

  #closeIfIdle(socket: Socket): void {
    // Sends the last answer first.
    if (this.#inProgress.get(socket) === 0) {
      socket.destroySoon();
    }
  }

  /** Clients send right after they connect: closing in between would fail their call. */
  #closeUnlessUsed(socket: Socket): void {
    setTimeout(() => this.#closeIfIdle(socket), FIRST_REQUEST_MS).unref();
  }

  #logLimit(): void {
    const now = performance.now();
    if (now - this.#loggedAt < LOG_EVERY_MS) {
      return;
    }
    this.#loggedAt = now;
    this.#log.error(
      { maxConnections: this.#maxConnections },
      "too many connections for the limit of open files; those without a complete request are closed, or else new ones: raise the limit (`ulimit -n 65536`; LimitNOFILE=65536 of systemd; `--ulimit nofile=65536` of Docker) and restart",
    );
  }
}
