import { Failure } from "../core/failure.ts";
import { readPort, type Environment } from "../core/environment.ts";
import { freePort } from "../supervisor/runtimes/process/ports.ts";
import {
  aliveIn,
  type RunFile,
} from "../supervisor/runtimes/process/run-file.ts";

export interface Ports {
  readonly supervisor: number;
  readonly gateway: number;
  readonly notes: number;
  readonly postgres: number;
  readonly echo: number;
}

/** The ports of this start, from variables; 0 is the previous port if it is free, otherwise any free one. */
export async function choosePorts(
  env: Environment,
  before: RunFile,
): Promise<Ports> {
  const lastOf = (service: string): number | undefined =>
    before.services[service]?.port;
  const ports = {
    supervisor: await settle(
      readPort("HEARTH_SUPERVISOR_PORT", 4080, env),
      before.supervisor?.port,
      false,
    ),
    gateway: await settle(
      readPort("HEARTH_GATEWAY_PORT", 4000, env),
      lastOf("gateway"),
      aliveIn(before.services["gateway"]) !== undefined,
    ),
    notes: await settle(
      readPort("HEARTH_NOTES_PORT", 5984, env),
      lastOf("notes"),
      aliveIn(before.services["notes"]) !== undefined,
    ),
    postgres: await settle(
      readPort("HEARTH_POSTGRES_PORT", 0, env),
      lastOf("postgres"),
      aliveIn(before.services["postgres"]) !== undefined,
    ),
    echo: await settle(
      0,
      lastOf("echo"),
      aliveIn(before.services["echo"]) !== undefined,
    ),
  };
  rejectSharedPort(ports);
  return ports;
}

/** The services whose port is set, in the order of the documentation. */
const SET = ["gateway", "notes", "supervisor", "postgres"] as const;

function rejectSharedPort(ports: Ports): void {
  const services = new Map<number, string>();
  for (const service of SET) {
    const port = ports[service];
    const other = services.get(port);
    if (other !== undefined) {
      throw new Failure(
        `port ${port} is set for ${other} and ${service}: set another one with HEARTH_${service.toUpperCase()}_PORT=<port>.`,
      );
    }
    services.set(port, service);
  }
}

async function settle(
  requested: number,
  last: number | undefined,
  heldByOurs: boolean,
): Promise<number> {
  if (requested !== 0) {
    return requested;
  }
  if (last !== undefined && heldByOurs) {
    return last;
  }
  return freePort(last);
}
