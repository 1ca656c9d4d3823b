import type { AddressInfo } from "node:net";
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
      await listenOn(listenFd, server, database);
    }
  } catch (error) {
    const reason =
      (error as { code?: string }).code === "EADDRINUSE"
        ? "another program uses it"
        : (error as Error).message;
    throw new StartError(
      `cannot listen on ${host}:${port} (${reason}): stop that program, or set HEARTH_GATEWAY_PORT.`,
    );
  }
  return (server.server.address() as AddressInfo).port;
}

async function listenOn(
  fd: number,
  server: HttpServer,
  database: DatabaseState,
): Promise<void> {
  await server.ready();
  const deadline = Date.now() + READY_WITHIN_MS;
  while (!database.ready() && Date.now() < deadline) {
    await sleep(10);
  }
  await new Promise<void>((resolve, reject) => {
    server.server.once("error", reject);
    server.server.listen({ fd }, resolve);
  });
}
