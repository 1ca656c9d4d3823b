import type { RotationKind } from "../config/rotation.ts";
import type { HostName } from "../config/config-schema.ts";
import { dockerAt } from "../engine.ts";
import { rejectOtherStacks, unknownStack } from "../leftover.ts";
import { listenersOn } from "../config/listeners.ts";
import { portsInUse } from "../hosts/ports-in-use.ts";
import { loginRoles } from "./adopt.ts";
import {
  ANSWERS_WITHIN_MS,
  containersOn,
  namesByHost,
  probeHost,
  probeHosts,
  requireHosts,
  type UnknownContainer,
} from "./host-view.ts";
import { rejectChangedPasswords } from "./changed-passwords.ts";
import { rejectChangedIdentity } from "./kept-settings.ts";
import { leftBehind } from "./placement.ts";
import { readSettings, type Session } from "./session.ts";
import {
  hostOf,
  isEmptyState,
  readState,
  ROLE_TYPE,
  VOLUME_TYPE,
  type State,
} from "./state.ts";

/**
 * Checks state, hosts and Postgres; throws if a destroy could not complete, or would remove a stack whose state is
 * in another backend. Returns the containers it would remove in addition to the engine's preview. Changes nothing.
 */
export async function checkDestroy(
  session: Session,
): Promise<readonly UnknownContainer[]> {
  const state = await readState(session.stack);
  const { engines } = session;
  await requireHosts(engines, {
    otherwise: () =>
      'or replace it (docs/deploy.md, "Replace a host"); then run destroy again',
  });
  const hosts = await probeHosts(engines);
  const known = new Set(state.resources.map(({ id }) => id));
  const unknown = containersOn(hosts).filter(({ id }) => !known.has(id));
  if (isEmptyState(state)) {
    rejectUnknown(unknown);
  }
  if (state.resources.some(({ type }) => type === ROLE_TYPE)) {
    await askForRoles(session);
  }
  return unknown;
}

interface StateOptions {
  readonly rotated?: RotationKind;
  readonly refresh?: boolean;
  readonly without?: HostName | undefined;
}

/**
 * Throws if the state does not belong to what runs on the hosts, or the configuration not to the state: a run would start over with
 * other containers, or with data or servers that it cannot use. `rotated` is the secret that the run replaces; with `refresh` it may
 * start with empty volumes; the host `without` is left out of the run.
 */
export async function checkState(
  session: Session,
  options: StateOptions = {},
): Promise<void> {
  const state = await readState(session.stack);
  if (isEmptyState(state)) {
    await rejectLostState(session);
  }
  const config = await readSettings(session);
  rejectChangedIdentity(session.engines, config, state);
  await rejectChangedPasswords(session.engines, config, state, options.rotated);
  const volumes = state.resources.filter(({ type }) => type === VOLUME_TYPE);
  // Those of a moved service leave the state.
  const moved = leftBehind({ resources: volumes }, config.placement).map(
    ({ resource }) => resource,
  );
  const kept = volumes.filter((each) => !moved.includes(each));
  await rejectMissingVolumes(session, kept, options);
}

/**
 * Throws for volumes of the state that are not on their hosts, which can be other machines than before: Docker would create empty ones
 * without a word. With `refresh`, which creates them, only reports them.
 */
async function rejectMissingVolumes(
  { engines, say }: Session,
  volumes: State["resources"],
  { rotated, refresh = false, without }: StateOptions,
): Promise<void> {
  const kept = (["a", "b"] as const).flatMap((host) => {
    const names = volumes
      .filter((each) => hostOf(each) === host)
      .map(({ inputs }) => String(inputs?.["name"]));
    return host === without || names.length === 0 ? [] : [{ host, names }];
  });
  const found = await Promise.all(
    kept.map(async ({ host, names }) => {
      // A host that does not respond is reported elsewhere.
      const view = await probeHost(engines[host]);
      const missing = names.filter(
        (name) => !(view?.volumes.includes(name) ?? true),
      );
      return { host, missing: missing.toSorted() };
    }),
  );
  const empty = found.filter(({ missing }) => missing.length > 0);
  const what = empty
    .map(
      ({ host, missing }) =>
        `host ${host.toUpperCase()}: ${engines[host].endpoint} does not have the stack's volumes ${missing.join(", ")}`,
    )
    .join("; ");
  if (what === "") {
    return;
  }
  if (refresh) {
    say(`${what}: empty ones are created.`);
    return;
  }
  // During a rotation, `up` is rejected.
  const command =
    rotated === undefined
      ? "`npm run deploy -- up --refresh`"
      : "the same command with --refresh";
  const settings = empty.map(({ host }) => `hearth:hosts.${host}`);
  throw new Error(
    `${what}; nothing was changed: if it is the wrong machine, set ${settings.join(" and ")} back; to create empty volumes there, run ${command}, then restore a backup (docs/deploy.md, "Replace a host").`,
  );
}

/**
 * For an empty state. Throws if a stack is running on the hosts, whose containers would be removed and created again, or if
 * names or ports are used by something else. A host that does not respond is left to the engine, which cannot reach it either.
 */
async function rejectLostState(session: Session): Promise<void> {
  const { a, b } = await probeHosts(session.engines);
  rejectUnknown(containersOn({ a, b }));
  if (a !== null) {
    await rejectCollisions(session, "a");
  }
  if (b !== null) {
    await rejectCollisions(session, "b");
  }
}

/** Throws for names and ports used by something else on a host without this stack. */
async function rejectCollisions(
  { engines, hosts }: Session,
  host: "a" | "b",
): Promise<void> {
  await rejectOtherStacks(engines[host]);
  // Configuration mistakes are reported by the program.
  if (hosts === null) {
    return;
  }
  const docker = (...args: string[]) => dockerAt(engines[host], args);
  const inUse = await portsInUse({ docker }, hosts);
  for (const listener of listenersOn(host, hosts)) {
    const foreign = inUse.foreignContainerAt(listener);
    if (foreign !== undefined) {
      throw new Error(
        `host ${host.toUpperCase()}: ${listener.address}:${listener.port}, needed by ${listener.service}, is used by the container ${foreign}; nothing was changed: stop that container, or choose another port (hearth:ports).`,
      );
    }
  }
}

function rejectUnknown(unknown: readonly UnknownContainer[]): void {
  if (unknown.length > 0) {
    throw unknownStack(namesByHost(unknown));
  }
}

/** Throws unless Postgres is running: roles are dropped in the running server. */
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
