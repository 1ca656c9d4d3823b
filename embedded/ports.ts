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
  return {
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
