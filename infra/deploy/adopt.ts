import { gatewayRoleName } from "../components/postgres-server.ts";
import type { HearthConfig } from "../config/config-schema.ts";
import { dockerAt, outputLines, type StackEngine } from "../engine.ts";
import { removeLeftoverRole } from "../leftover.ts";
import { askPostgres } from "../postgres-socket.ts";
import { containerName } from "../names.ts";
import { bringUp, refreshFirst } from "./bring-up.ts";
import { rejectUnfinishedRotation } from "./rotate.ts";
import { readSettings, type Session } from "./session.ts";
import { removeSettings, setSetting } from "./settings.ts";
import { readState, ROLE_TYPE } from "./state.ts";

/**
 * Throws during a rotation whose login roles are in the state: the rotation must be completed. After a lost state, `adopt`
 * imports them first.
 */
export async function rejectDuringRotation(session: Session): Promise<void> {
  const config = await readSettings(session);
  if ((await rolesInState(session)).length > 0) {
    rejectUnfinishedRotation(config);
  }
}

/**
 * Takes over what runs on the hosts after the state was lost: volumes by name, roles by `import`; containers cannot be
 * imported and are created again on their existing data. Ends with `up --refresh`. Harmless if nothing was lost.
 */
export async function adopt(session: Session): Promise<void> {
  const { engines, say } = session;
  const config = await readSettings(session);
  const known = await rolesInState(session);
  const takeOver = (roles: string) =>
    setSetting(session, "importRoles", { value: roles, secret: false });
  // From here on, networks with Hearth's containers are taken over too.
  await takeOver("none");
  const engine = engines[config.placement.postgres];
  if (!(await postgresIsHealthy(engine))) {
    say("Postgres is not running; starting it on its existing volume.");
    await startPostgres(session, config);
  }
  const wanted = [gatewayRoleName(config), "supervisor", "backup"];
  const there = await loginRoles(engine);
  const unused = ["gateway_a", "gateway_b"].filter(
    (role) => there.includes(role) && !wanted.includes(role),
  );
  const imported = wanted.filter(
    (role) => there.includes(role) && !known.includes(role),
  );
  if (imported.length > 0) {
    say(`Adopted from Postgres: ${imported.join(", ")}.`);
    await takeOver(imported.join(","));
  }
  await bringUp(session, refreshFirst);
  await removeSettings(session, ["importRoles"]);
  // The other role of a rotation that had started: no gateway logs in with it any more.
  if (config.rotation === undefined) {
    for (const role of unused) {
      await removeLeftoverRole(engine, role);
      say(`Dropped the unused role ${role}.`);
    }
  }
}

/** All login roles except the superuser: Hearth's and the operator's own. */
export async function loginRoles(
  engine: StackEngine,
  withinMs?: number,
): Promise<readonly string[]> {
  const output = await askPostgres(
    engine,
    "SELECT rolname FROM pg_roles WHERE rolcanlogin AND rolname <> 'postgres' ORDER BY rolname;",
    withinMs,
  );
  return outputLines(output);
}

async function postgresIsHealthy(engine: StackEngine): Promise<boolean> {
  const found = await dockerAt(engine, [
    "ps",
    "--quiet",
    "--filter",
    `name=^/${containerName(engine, "postgres")}$`,
    "--filter",
    "health=healthy",
  ]);
  return found.trim() !== "";
}

async function rolesInState({ stack }: Session): Promise<readonly string[]> {
  const { resources } = await readState(stack);
  return resources
    .filter(({ type }) => type === ROLE_TYPE)
    .map(({ id }) => id ?? "");
}

/** Creates only the resources of its container, so that existing roles can be listed before they are registered. */
export async function startPostgres(
  session: Session,
  { placement: { postgres: host } }: Pick<HearthConfig, "placement">,
): Promise<void> {
  await bringUp(session, {
    ...refreshFirst,
    target: [
      "postgres",
      "postgres-data",
      "postgres-image",
      `host-${host}`,
      `network-${host}`,
      `socket-network-${host}`,
    ].map((name) => `**::${name}`),
  });
}
