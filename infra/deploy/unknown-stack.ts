import { dockerAt, typedDocker } from "../engine.ts";
import { refuseOtherStacks, unknownStack } from "../leftover.ts";
import { listenersOn } from "../hosts/needs.ts";
import { portsInUse } from "../hosts/ports-in-use.ts";
import { loginRoles } from "./adopt.ts";
import {
  ANSWERS_WITHIN_MS,
  lookAt,
  namesByHost,
  type HostView,
} from "./host-view.ts";
import { readSettings, type Session } from "./session.ts";
import { knowsNothing, readState, ROLE_TYPE } from "./state.ts";

/** A container of ours on a host that the state does not know. */
export interface UnknownContainer {
  readonly host: "a" | "b";
  readonly name: string;
}

/**
 * Looks at state, hosts and Postgres, and refuses a destroy that could not finish, or that would take away a stack whose state is
 * elsewhere. Gives what it would remove beside what the engine's preview shows. Changes nothing. Throws a sentence.
 */
export async function lookBeforeDestroy(
  session: Session,
): Promise<readonly UnknownContainer[]> {
  const state = await readState(session.stack);
  const hosts = await lookAtHosts(session);
  const known = new Set(state.resources.map(({ id }) => id));
  const unknown = containersOn(hosts).filter(({ id }) => !known.has(id));
  if (knowsNothing(state)) {
    refuseUnknown(unknown);
  }
  if (state.resources.some(({ type }) => type === ROLE_TYPE)) {
    await askForRoles(session);
  }
  return unknown;
}

/**
 * Refuses to deploy from an empty state over a stack that runs, where what the state does not know would be removed and created again;
 * or beside something that has the same names or ports. A host that does not respond is left to the engine, which cannot touch it either. Throws a sentence.
 */
export async function refuseLostState(session: Session): Promise<void> {
  if (!knowsNothing(await readState(session.stack))) {
    return;
  }
  const { engines } = session;
  const [a, b] = await Promise.all([lookAt(engines.a), lookAt(engines.b)]);
  refuseUnknown(containersOn({ a, b }));
  if (a !== null) {
    await refuseCollisions(session, "a");
  }
  if (b !== null) {
    await refuseCollisions(session, "b");
  }
}

/** Names and ports that something else on a host has: nothing of the stack is there yet. */
async function refuseCollisions(
  { engines, hosts }: Session,
  host: "a" | "b",
): Promise<void> {
  await refuseOtherStacks(engines[host]);
  // Mistakes in the configuration are the program's to tell.
  if (hosts === null) {
    return;
  }
  const docker = (...args: string[]) => dockerAt(engines[host], args);
  const inUse = await portsInUse({ docker }, hosts);
  for (const listener of listenersOn(host, hosts)) {
    const stranger = inUse.strangerAt(listener);
    if (stranger !== undefined) {
      throw new Error(
        `host ${host.toUpperCase()}: ${listener.address}:${listener.port}, needed by ${listener.service}, is used by the container ${stranger}; nothing was changed: stop that container, or choose another port (hearth:ports).`,
      );
    }
  }
}

/** What runs on the hosts that answer. */
export function containersOn(
  hosts: Readonly<Record<"a" | "b", HostView | null>>,
): readonly (UnknownContainer & { readonly id: string })[] {
  return (["a", "b"] as const).flatMap(
    (host) =>
      hosts[host]?.containers.map(({ id, name }) => ({ host, id, name })) ?? [],
  );
}

function refuseUnknown(unknown: readonly UnknownContainer[]): void {
  if (unknown.length > 0) {
    throw unknownStack(namesByHost(unknown));
  }
}

async function lookAtHosts({
  engines,
}: Session): Promise<Readonly<Record<"a" | "b", HostView>>> {
  const look = async (host: "a" | "b") => {
    const view = await lookAt(engines[host]);
    if (view === null) {
      throw new Error(
        `host ${host.toUpperCase()}: Docker does not respond; nothing was changed: start the host and check that \`${typedDocker(engines[host], "ps")}\` works, or replace it (docs/deploy.md, "Replace a host"); then run destroy again.`,
      );
    }
    return view;
  };
  const [a, b] = await Promise.all([look("a"), look("b")]);
  return { a, b };
}

/** Roles are dropped in the running server. */
async function askForRoles(session: Session): Promise<void> {
  const { placement } = await readSettings(session);
  try {
    await loginRoles(session.engines[placement.postgres], ANSWERS_WITHIN_MS);
  } catch (cause) {
    throw new Error(
      "Postgres is not running, but its roles must be dropped; nothing was changed: run `npm run deploy -- up --refresh`, then destroy again.",
      { cause },
    );
  }
}
