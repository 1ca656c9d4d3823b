import type { AddressInfo, ListenOptions, Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServerConfig } from "./config/types.ts";
import type { DatabaseState } from "./database/connection.ts";
import type { createServer } from "./http/server.ts";
import { StartError } from "./start-error.ts";

/** How long calls that wait on a socket taken over may wait for the database. */
const READY_WITHIN_MS = 30_000;

type HttpServer = ReturnType<typeof createServer>;

/**
 * Listens on the configured address, or on a socket that a predecessor handed over: calls that wait on it must not reach a
 * gateway without its database. Returns the port; throws {@link StartError}.
 */
export async function listen(
  server: HttpServer,
  { host, port }: Pick<ServerConfig, "host" | "port">,
  listenFd: number | undefined,
  database: DatabaseState,
): Promise<number> {
  try {
    if (listenFd === undefined) {
      await server.listen({ host, port });
    } else {
      await server.ready();
      await untilReady(database);
      await listenTo(server.server, { fd: listenFd });
    }
  } catch (error) {
    throw cannotListen(error, host, port);
  }
  return (server.server.address() as AddressInfo).port;
}

/** The same for the primary process of several workers, which passes connections on. */
export async function listenPlain(
  server: Server,
  { host, port }: Pick<ServerConfig, "host" | "port">,
  listenFd: number | undefined,
): Promise<void> {
  try {
    await listenTo(
      server,
      listenFd === undefined ? { host, port } : { fd: listenFd },
    );
  } catch (error) {
    throw cannotListen(error, host, port);
  }
}

/** A worker's server: the primary process listens on the port, accepts connections and passes them on. */
export async function takeConnections(
  server: HttpServer,
  port: number,
): Promise<number> {
  await server.ready();
  // At this event a server begins to watch over the time that requests take to arrive.
  server.server.emit("listening");
  return port;
}

async function untilReady(database: DatabaseState): Promise<void> {
  const deadline = performance.now() + READY_WITHIN_MS;
  while (!database.ready() && performance.now() < deadline) {
    await sleep(10);
  }
}

function listenTo(
  server: Server,
  place: ListenOptions | { readonly fd: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(place, resolve);
  });
}

function cannotListen(error: unknown, host: string, port: number): StartError {
  const reason =
    (error as { code?: string }).code === "EADDRINUSE"
      ? "another program uses it"
      : (error as Error).message;
  return new StartError(
    `cannot listen on ${host}:${port} (${reason}): stop that program, or set HEARTH_GATEWAY_PORT.`,
  );
}
