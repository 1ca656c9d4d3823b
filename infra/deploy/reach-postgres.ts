import type { HostName } from "../config/config-schema.ts";
import { POSTGRES_AT_VARIABLE } from "../config/program-config.ts";
import { probeHost } from "./host-view.ts";
import { isReached, openTunnel, tunnelPort, type Tunnel } from "./tunnel.ts";
import { readOwnValues, type Session } from "./session.ts";

/**
 * Opens an ssh tunnel to Postgres if this machine does not reach it, and passes its port to this run of the program in a
 * variable: in the stack's file it would outlive a killed run. null: none is needed (`without` excludes Postgres' own host), or
 * the host is not reached by ssh or does not respond. Throws one sentence if the tunnel cannot be opened.
 */
export async function reachPostgres(
  { stack, engines, hosts }: Session,
  without: HostName | undefined,
): Promise<Tunnel | null> {
  // Configuration mistakes are reported by the program.
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
  // The verb reports it, with what it can do without the host.
  if ((await probeHost(engines[host])) === null) {
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
