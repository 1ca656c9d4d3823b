import { gatewayRoleName } from "../components/postgres-server.ts";
import type { HearthConfig } from "../config/config-schema.ts";
import type { RotationKind } from "../config/rotation.ts";
import { isVerifierOf } from "../../core/scram.ts";
import { typedDocker, type StackEngines } from "../engine.ts";
import { containerName } from "../names.ts";
import { askPostgres } from "../postgres-socket.ts";
import type { Finding } from "./findings.ts";
import { ANSWERS_WITHIN_MS } from "./host-view.ts";
import { rejectsNotesAdmin } from "./notes-admin.ts";
import { containersNamed, filesOf, revealed, type State } from "./state.ts";

const RUN = "npm run deploy -- ";

/**
 * Throws one sentence if a password that an `up` does not change in its server was changed by hand: the `up` would succeed, and leave the
 * stack without a login. `rotated` is the secret that is about to be replaced.
 */
export async function rejectChangedPasswords(
  engines: StackEngines,
  config: HearthConfig,
  state: State,
  rotated?: RotationKind,
): Promise<void> {
  if (
    isDeployed(passwordOfProvider(state), config.postgresPassword) &&
    isDeployed(passwordOfSupervisors(state), config.notesAdminPassword)
  ) {
    return;
  }
  // Changed in the server, too, it is right.
  const [found] = [
    ...(rotated === "postgres"
      ? []
      : superuserFindings(await readVerifiers(engines, config), config)),
    ...(await notesFindings(engines, config)),
  ];
  if (found !== undefined) {
    throw new Error(`${found.what}; nothing was changed: ${found.fix}.`);
  }
}

/**
 * Passwords of the configuration that the running servers do not have, and that an `up` does not change there; with `roles` also those of
 * the login roles. Servers that do not answer are left out.
 */
export async function findChangedPasswords(
  engines: StackEngines,
  config: HearthConfig,
  { roles = false } = {},
): Promise<readonly Finding[]> {
  const [verifiers, ofNotes] = await Promise.all([
    readVerifiers(engines, config),
    notesFindings(engines, config),
  ]);
  return [
    ...superuserFindings(verifiers, config),
    ...ofNotes,
    ...(roles ? roleFindings(verifiers, config) : []),
  ];
}

type Verifiers = ReadonlyMap<string, string>;

function superuserFindings(
  verifiers: Verifiers,
  { postgresPassword }: HearthConfig,
): readonly Finding[] {
  return hasOther(verifiers, "postgres", postgresPassword)
    ? [
        {
          what: "hearth:postgresPassword is not the password of Postgres' superuser",
          fix: `${RUN}rotate postgres gives both another one`,
        },
      ]
    : [];
}

function roleFindings(
  verifiers: Verifiers,
  config: HearthConfig,
): readonly Finding[] {
  const logins = [
    [gatewayRoleName(config), "gatewayPassword"],
    ["supervisor", "supervisorPassword"],
    ["backup", "backupPassword"],
  ] as const;
  return logins
    .filter(([role, setting]) => hasOther(verifiers, role, config[setting]))
    .map(([role, setting]) => ({
      what: `hearth:${setting} is not the password of the role ${role} in Postgres`,
      fix: `${RUN}up --refresh sets it there`,
    }));
}

/** The password verifiers of the running Postgres by role; none if it does not answer. */
async function readVerifiers(
  engines: StackEngines,
  { placement }: HearthConfig,
): Promise<Verifiers> {
  const output = await askPostgres(
    engines[placement.postgres],
    "SELECT rolname, rolpassword FROM pg_authid WHERE rolpassword IS NOT NULL;",
    ANSWERS_WITHIN_MS,
  ).catch(() => "");
  return new Map(
    output.split("\n").map((line): [string, string] => {
      const [role = "", verifier = ""] = line.split("|");
      return [role, verifier];
    }),
  );
}

/** False for a role that is not there. */
function hasOther(
  verifiers: Verifiers,
  role: string,
  password: string,
): boolean {
  const verifier = verifiers.get(role);
  return verifier !== undefined && !isVerifierOf(password, verifier);
}

async function notesFindings(
  engines: StackEngines,
  { placement, notesAdminPassword }: HearthConfig,
): Promise<readonly Finding[]> {
  const engine = engines[placement.notes];
  const remove = `rm --force ${containerName(engine, "couchdb")}`;
  return (await rejectsNotesAdmin(engine, notesAdminPassword))
    ? [
        {
          what: "hearth:notesAdminPassword is not the password of the notes server's admin",
          fix: `set it back, or start the server with it: \`${typedDocker(engine, remove)}\`, then ${RUN}up`,
        },
      ]
    : [];
}

/** True also without a deployed value. */
function isDeployed(deployed: unknown, value: string): boolean {
  return deployed === undefined || deployed === value;
}

function passwordOfProvider({ resources }: State): unknown {
  const provider = resources.find(
    ({ type }) => type === "pulumi:providers:postgresql",
  );
  return revealed(provider?.inputs?.["password"]);
}

function passwordOfSupervisors(state: State): string | undefined {
  return containersNamed(state, ["supervisor-a", "supervisor-b"])
    .flatMap(filesOf)
    .find(({ file }) => file === "/run/hearth/NOTES_ADMIN_PASSWORD")?.content;
}
