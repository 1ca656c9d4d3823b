import type { HearthConfig } from "../config/config-schema.ts";
import type { RotationKind } from "../config/rotation.ts";
import { isVerifierOf } from "../../core/scram.ts";
import { typedDocker } from "../engine.ts";
import { containerName } from "../names.ts";
import { askPostgres } from "../postgres-socket.ts";
import type { Finding } from "./findings.ts";
import { ANSWERS_WITHIN_MS } from "./host-view.ts";
import { rejectsNotesAdmin } from "./notes-admin.ts";
import { readSettings, type Session } from "./session.ts";
import { containersNamed, filesOf, revealed, type State } from "./state.ts";

const RUN = "npm run deploy -- ";

/**
 * Throws one sentence if a password that an `up` does not change in its server was changed by hand: the `up` would succeed, and leave the
 * stack without a login. `rotated` is the secret that is about to be replaced.
 */
export async function rejectChangedPasswords(
  session: Pick<Session, "stack" | "engines">,
  state: State,
  rotated?: RotationKind,
): Promise<void> {
  const config = await readSettings(session);
  if (
    isDeployed(passwordOfProvider(state), config.postgresPassword) &&
    isDeployed(passwordOfSupervisors(state), config.notesAdminPassword)
  ) {
    return;
  }
  // Changed in the server, too, it is right.
  const [found] = [
    ...(rotated === "postgres" ? [] : await postgresFindings(session, config)),
    ...(await notesFindings(session, config)),
  ];
  if (found !== undefined) {
    throw new Error(`${found.what}; nothing was changed: ${found.fix}.`);
  }
}

/** Passwords of the configuration that the running servers do not have. Those that do not answer are left out. */
export async function findChangedPasswords(
  session: Pick<Session, "engines">,
  config: HearthConfig,
): Promise<readonly Finding[]> {
  return [
    ...(await postgresFindings(session, config)),
    ...(await notesFindings(session, config)),
  ];
}

async function postgresFindings(
  { engines }: Pick<Session, "engines">,
  { placement, postgresPassword }: HearthConfig,
): Promise<readonly Finding[]> {
  const verifier = await askPostgres(
    engines[placement.postgres],
    "SELECT rolpassword FROM pg_authid WHERE rolname = 'postgres';",
    ANSWERS_WITHIN_MS,
  ).catch(() => "");
  return verifier === "" || isVerifierOf(postgresPassword, verifier)
    ? []
    : [
        {
          what: "hearth:postgresPassword is not the password of Postgres' superuser",
          fix: `${RUN}rotate postgres gives both another one`,
        },
      ];
}

async function notesFindings(
  { engines }: Pick<Session, "engines">,
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
