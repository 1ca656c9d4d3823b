import { randomInt } from "node:crypto";
import { createServer, type AddressInfo, type Server } from "node:net";

const LOOPBACK = "127.0.0.1";
/** Below the ports that Linux and macOS choose for `listen` and for connections, above those of tunnels (infra/deploy/tunnel.ts). */
const RESERVED = { from: 21_000, to: 32_000 };
const WORKERS = 8;
const PORTS_OF_WORKER = (RESERVED.to - RESERVED.from) / WORKERS;

/** The worker of vitest; programs of their own share the range of one. */
const worker = Number(process.env["VITEST_POOL_ID"] ?? 0) % WORKERS;
/** One after the other, so that a port is not given twice before its program listens. */
let next = randomInt(PORTS_OF_WORKER);

/** Lets a server listen; returns its port. By default the system chooses one that is free at that moment. */
export async function listen(
  server: Server,
  { port = 0, host = LOOPBACK } = {},
): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  return portOf(server);
}

/** The port of a server that listens. */
export function portOf(server: Pick<Server, "address">): number {
  return (server.address() as AddressInfo).port;
}

/** A free port for a program that listens later, or repeatedly; neither the system nor another test worker gives it away. */
export async function freePort(): Promise<number> {
  for (;;) {
    next = (next + 1) % PORTS_OF_WORKER;
    const port = RESERVED.from + worker * PORTS_OF_WORKER + next;
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, LOOPBACK, () => resolve(true));
    });
    if (isFree) {
      await new Promise((resolve) => server.close(resolve));
      return port;
    }
  }
}
