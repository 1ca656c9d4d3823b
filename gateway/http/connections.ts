import type { Server } from "node:http";
import type { Socket } from "node:net";

/** The connections of a server, with the number of requests in progress on each. */
export interface Connections {
  /** Closes connections without a request now, the others when their requests have ended. */
  closeIdle(): void;
  closeAll(): void;
}

const FIRST_REQUEST_MS = 1_000;

/**
 * Node closes only connections that are between two requests: one that has sent nothing yet, or half a head, delays
 * `server.close()` until its client or a timeout closes it.
 */
export function watchConnections(server: Server): Connections {
  const inProgress = new Map<Socket, number>();
  /** Accepted, but without data yet. */
  const fresh = new Set<Socket>();
  let closing = false;

  function closeIfIdle(socket: Socket): void {
    // Sends the last answer first.
    if (inProgress.get(socket) === 0) {
      socket.destroySoon();
    }
  }

  /** Clients send right after they connect: closing in between would fail their call. */
  function closeUnlessUsed(socket: Socket): void {
    setTimeout(() => closeIfIdle(socket), FIRST_REQUEST_MS).unref();
  }

  server.on("connection", (socket) => {
    inProgress.set(socket, 0);
    fresh.add(socket);
    socket.once("close", () => {
      inProgress.delete(socket);
      fresh.delete(socket);
    });
    if (closing) {
      closeUnlessUsed(socket);
    }
  });
  server.on("upgrade", (_request, socket: Socket) => {
    // It is closed by whoever uses it from here on.
    fresh.delete(socket);
    inProgress.set(socket, 1);
  });
  server.on("request", ({ socket }, response) => {
    fresh.delete(socket);
    inProgress.set(socket, (inProgress.get(socket) ?? 0) + 1);
    response.once("close", () => {
      const left = inProgress.get(socket);
      if (left === undefined) {
        return;
      }
      inProgress.set(socket, left - 1);
      if (closing) {
        closeIfIdle(socket);
      }
    });
  });

  return {
    closeIdle() {
      closing = true;
      for (const socket of inProgress.keys()) {
        if (fresh.has(socket)) {
          closeUnlessUsed(socket);
        } else {
          closeIfIdle(socket);
        }
      }
    },
    closeAll() {
      for (const socket of inProgress.keys()) {
        socket.destroy();
      }
    },
  };
}
