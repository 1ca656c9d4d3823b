import type { Server } from "node:http";
import type { Socket } from "node:net";

/** The connections of a server, by the requests under way on each. */
export interface Connections {
  /** Closes what carries no request, now and when the requests of the others have ended. */
  closeIdle(): void;
  closeAll(): void;
}

const FIRST_REQUEST_MS = 1_000;

/**
 * Node itself closes only connections that are between two requests: one that has sent nothing yet, or half a head, holds
 * up `server.close()` until its client or a timeout ends it.
 */
export function watchConnections(server: Server): Connections {
  const underWay = new Map<Socket, number>();
  /** Accepted, and nothing has come yet. */
  const fresh = new Set<Socket>();
  let closing = false;

  function closeIfIdle(socket: Socket): void {
    // The last answer is sent before the end.
    if (underWay.get(socket) === 0) {
      socket.destroySoon();
    }
  }

  /** A client connects and sends at once: to close in between would fail its call. */
  function closeUnlessUsed(socket: Socket): void {
    setTimeout(() => closeIfIdle(socket), FIRST_REQUEST_MS).unref();
  }

  server.on("connection", (socket) => {
    underWay.set(socket, 0);
    fresh.add(socket);
    socket.once("close", () => {
      underWay.delete(socket);
      fresh.delete(socket);
    });
    if (closing) {
      closeUnlessUsed(socket);
    }
  });
  server.on("request", ({ socket }, response) => {
    fresh.delete(socket);
    underWay.set(socket, (underWay.get(socket) ?? 0) + 1);
    response.once("close", () => {
      const left = underWay.get(socket);
      if (left === undefined) {
        return;
      }
      underWay.set(socket, left - 1);
      if (closing) {
        closeIfIdle(socket);
      }
    });
  });

  return {
    closeIdle() {
      closing = true;
      for (const socket of underWay.keys()) {
        if (fresh.has(socket)) {
          closeUnlessUsed(socket);
        } else {
          closeIfIdle(socket);
        }
      }
    },
    closeAll() {
      for (const socket of underWay.keys()) {
        socket.destroy();
      }
    },
  };
}
