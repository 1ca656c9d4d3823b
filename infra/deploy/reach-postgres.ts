import type { HostName } from "../config/config.ts";
import { POSTGRES_AT_VARIABLE } from "../config/program-config.ts";
import { isReached, openTunnel, tunnelPort, type Tunnel } from "./tunnel.ts";
import { readOwnValues, type Session } from "./session.ts";

/**
 * Opens an ssh tunnel to Postgres where this machine does not reach it, and tells this run of the program alone, by a variable:
 * in the stack's file it would outlive a run that is killed. null: none is needed (`without` leaves Postgres' own host out), or
 * there is no other way than the address. Throws a sentence when the tunnel cannot be opened.
 */
export async function reachPostgres(
  { stack, engines, hosts }: Session,
  without: HostName | undefined,
): Promise<Tunnel | null> {
  // Mistakes in the configuration are the program's to tell.
  if (hosts === null) {
    return null;
  }
  const host = hosts.placement.postgres;
  if (without === host) {
    return null;
  }
  const { postgresAt } = await readOwnValues(stack);
  if (
    postgresAt !== undefined ||
    process.env[POSTGRES_AT_VARIABLE] !== undefined
  ) {
    return null;
  }
  const { address } = hosts.hosts[host];
  if (!engines[host].endpoint.startsWith("ssh://")) {
    return null;
  }
  const port = hosts.ports.postgres;
  if (await isReached(address, port)) {
    return null;
  }
  const localPort = tunnelPort(stack.name);
  const tunnel = await openTunnel({
    engine: engines[host],
    host,
    address,
    port,
    localPort,
  });
  process.env[POSTGRES_AT_VARIABLE] = `127.0.0.1:${localPort}`;
  return {
    async close() {
      delete process.env[POSTGRES_AT_VARIABLE];
      await tunnel.close();
    },
  };
}
