import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import { rejectedConnectionLogger } from "../../core/open-files.ts";

/** The connections of a server, with the number of requests in progress on each. */
interface Connections {
  /** Closes connections without a request now, the others when their requests have ended. */
  closeIdle(): void;
  closeAll(): void;
  /** Resolves when there is none. */
  ended(): Promise<void>;
}

const FIRST_REQUEST_MS = 1_000;

/**
 * Node closes only connections that are between two requests: one that has sent nothing yet, or half a head, delays
 * `server.close()` until its client or a timeout closes it. Above `maxConnections`, further ones are closed at once: otherwise clients
 * without a key could leave none for providers, Postgres and the journal.
 */
export function watchConnections(
  server: Server,
  limit: ConnectionLimit,
): Connections {
  return new WatchedConnections(server, limit);
}

interface ConnectionLimit {
  readonly maxConnections: number;
  readonly log: Logger;
}

class WatchedConnections implements Connections {
  readonly #inProgress = new Map<Socket, number>();
  /** Accepted, but without data yet. */
  readonly #fresh = new Set<Socket>();
  readonly #whenEnded: (() => void)[] = [];
  readonly #maxConnections: number;
  readonly #logRejection: () => void;
  #closing = false;

  constructor(server: Server, { maxConnections, log }: ConnectionLimit) {
    this.#maxConnections = maxConnections;
    this.#logRejection = rejectedConnectionLogger(log, maxConnections);
    server.on("connection", (socket) => this.#opened(socket));
    server.on("upgrade", (_request, socket: Socket) => {
      // The handler of the upgrade closes it.
      this.#fresh.delete(socket);
      this.#inProgress.set(socket, 1);
    });
    server.on("request", ({ socket }, response) => {
      this.#fresh.delete(socket);
      this.#inProgress.set(socket, (this.#inProgress.get(socket) ?? 0) + 1);
      response.once("close", () => this.#answered(socket));
    });
  }

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

  async ended(): Promise<void> {
    if (this.#inProgress.size > 0) {
      await new Promise<void>((resolve) => this.#whenEnded.push(resolve));
    }
  }

  #opened(socket: Socket): void {
    if (this.#inProgress.size >= this.#maxConnections) {
      socket.destroy();
      this.#logRejection();
      return;
    }
    this.#inProgress.set(socket, 0);
    this.#fresh.add(socket);
    socket.once("close", () => this.#closed(socket));
    if (this.#closing) {
      this.#closeUnlessUsed(socket);
    }
  }

  #answered(socket: Socket): void {
    const left = this.#inProgress.get(socket);
    if (left === undefined) {
      return;
    }
    this.#inProgress.set(socket, left - 1);
    if (this.#closing) {
      this.#closeIfIdle(socket);
    }
  }

  #closed(socket: Socket): void {
    this.#inProgress.delete(socket);
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
}
