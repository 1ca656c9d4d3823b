import { randomInt } from "node:crypto";
import { createServer, type AddressInfo, type Server } from "node:net";

const LOOPBACK = "127.0.0.1";
/** Below the ports that Linux and macOS choose for `listen` and for connections. */
const RESERVED = { from: 20_000, to: 32_000 };

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

/** A free port for a program that listens later, or repeatedly; the system gives it to no other program. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(RESERVED.from, RESERVED.to);
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
