import { askHttp } from "../supervisor/checks/http-get.ts";
import { Failure } from "../core/failure.ts";
import { databaseUrl, gatewayDatabaseUrl } from "./gateway.ts";
import type { Home } from "../supervisor/home/home.ts";
import {
  admitGatewayRole,
  opensPostgres,
  setPassword,
  shutOut,
} from "./postgres-roles.ts";
import {
  changeSecrets,
  handOver,
  createSecret,
  readOrCreateSecrets,
  type Secrets,
} from "../supervisor/home/secrets.ts";

export const ROTATION_KINDS = ["master", "postgres", "notes"] as const;
export type RotationKind = (typeof ROTATION_KINDS)[number];

/** The addresses of the running stack. */
export interface RotationPlace {
  readonly home: Home;
  readonly gateway: string;
  readonly notes: string;
  readonly postgresPort: number;
}

const ANSWERS_WITHIN_MS = 30_000;

/**
 * Replaces one secret of the running stack without a restart. The new values are in secrets.json until all is done, so that
 * an interrupted rotation continues with them. Throws a Failure that says what to do.
 */
export async function rotateSecret(
  place: RotationPlace,
  kind: RotationKind,
  graceMs: number,
): Promise<Secrets> {
  const { home } = place;
  const known = readOrCreateSecrets(home);
  const unfinished = known.rotation;
  if (unfinished !== undefined && unfinished.of !== kind) {
    throw notComplete(unfinished.of);
  }
  const values = unfinished?.values ?? decide(kind, known, graceMs);
  changeSecrets(home, { rotation: { of: kind, values } });
  switch (kind) {
    case "master":
      await rotateMaster(place, values);
      break;
    case "postgres":
      await rotatePostgres(place, known, values as unknown as PostgresValues);
      break;
    case "notes":
      await rotateNotes(place, values as unknown as NotesValues);
      break;
  }
  changeSecrets(home, { rotation: undefined });
  return readOrCreateSecrets(home);
}

/** Ends the grace period: the previous master key is denied from now on. If it fails, `hearth doctor` reports it. */
export async function endGrace(place: RotationPlace): Promise<void> {
  const { home } = place;
  const { rotation } = readOrCreateSecrets(home);
  // The gateway may already have a new master key that is not in the secrets yet.
  if (rotation !== undefined) {
    throw notComplete(rotation.of);
  }
  changeSecrets(home, {
    previousMasterKey: undefined,
    // Stays until the gateway has no such key, so that `hearth doctor` reports an end that failed.
    previousMasterKeyUntil: new Date().toISOString(),
  });
  handOver(home, "PROXY_MASTER_KEY_PREVIOUS", "");
  handOver(home, "PROXY_MASTER_KEY_PREVIOUS_UNTIL", "");
  await reloadGateway(place, [readOrCreateSecrets(home).masterKey]);
  changeSecrets(home, { previousMasterKeyUntil: undefined });
}

function notComplete(kind: string): Failure {
  return new Failure(
    `the rotation of ${kind} is not complete. Run \`hearth rotate ${kind}\` to continue it.`,
  );
}

type PostgresValues = Readonly<
  Record<
    | "gatewayDbPassword"
    | "supervisorDbPassword"
    | "backupDbPassword"
    | "postgresPassword",
    string
  >
> & { readonly gatewayDbRole: "gateway_a" | "gateway_b" };
interface NotesValues {
  readonly old: string;
  readonly notesAdminPassword: string;
}

function decide(
  kind: RotationKind,
  known: Secrets,
  graceMs: number,
): Readonly<Record<string, string>> {
  switch (kind) {
    case "master":
      return {
        masterKey: `sk-${createSecret()}`,
        previousMasterKey: known.masterKey,
        previousMasterKeyUntil: new Date(Date.now() + graceMs).toISOString(),
      };
    case "postgres":
      return {
        gatewayDbRole: otherRole(known.gatewayDbRole ?? "gateway_a"),
        gatewayDbPassword: createSecret(),
        supervisorDbPassword: createSecret(),
        backupDbPassword: createSecret(),
        postgresPassword: createSecret(),
      };
    case "notes":
      return {
        old: known.notesAdminPassword,
        notesAdminPassword: createSecret(),
      };
  }
}

function otherRole(role: "gateway_a" | "gateway_b"): "gateway_a" | "gateway_b" {
  return role === "gateway_a" ? "gateway_b" : "gateway_a";
}

/** After the reload both keys are valid, so the file contains a valid one at any time. */
async function rotateMaster(
  place: RotationPlace,
  values: Readonly<Record<string, string>>,
): Promise<void> {
  const { home } = place;
  const { masterKey = "", previousMasterKey = "" } = values;
  handOver(home, "PROXY_MASTER_KEY_PREVIOUS", previousMasterKey);
  handOver(
    home,
    "PROXY_MASTER_KEY_PREVIOUS_UNTIL",
    values["previousMasterKeyUntil"] ?? "",
  );
  handOver(home, "PROXY_MASTER_KEY", masterKey);
  await reloadGateway(place, [previousMasterKey, masterKey]);
  changeSecrets(home, values);
}

/** The gateway switches to another role, so that both passwords are valid until it has. */
async function rotatePostgres(
  place: RotationPlace,
  known: Secrets,
  values: PostgresValues,
): Promise<void> {
  const { home, postgresPort: port } = place;
  const { gatewayDbRole, gatewayDbPassword, postgresPassword } = values;
  // After an interruption at the very end the new password may be in effect already.
  const superuser = (await opensPostgres(port, known))
    ? known
    : { ...known, postgresPassword };
  await admitGatewayRole(port, superuser, values);
  handOver(home, "DATABASE_URL", gatewayDatabaseUrl(values, port));
  await reloadGateway(place, [known.masterKey]);
  changeSecrets(home, { gatewayDbRole, gatewayDbPassword });
  await shutOut(port, superuser, otherRole(gatewayDbRole));
  for (const [role, key, variable] of [
    ["supervisor", "supervisorDbPassword", "SUPERVISOR_DATABASE_URL"],
    ["backup", "backupDbPassword", "BACKUP_DATABASE_URL"],
    // Last: the others are changed with it.
    ["postgres", "postgresPassword", "RESTORE_DATABASE_URL"],
  ] as const) {
    await setPassword(port, superuser, role, values[key]);
    handOver(home, variable, databaseUrl(role, values[key], port));
    changeSecrets(home, { [key]: values[key] });
  }
}

async function rotateNotes(
  place: RotationPlace,
  { old, notesAdminPassword: wanted }: NotesValues,
): Promise<void> {
  const { home, notes } = place;
  const put = async (password: string) =>
    (
      await askHttp(`${notes}/_node/_local/_config/admins/admin`, {
        method: "PUT",
        headers: {
          authorization: `Basic ${Buffer.from(`admin:${password}`).toString("base64")}`,
          "content-type": "application/json",
        },
        body: JSON.stringify(wanted),
        signal: AbortSignal.timeout(ANSWERS_WITHIN_MS),
      })
    ).status;
  // After an interruption the new password may be in effect. No other is tried: the store locks out clients that guess.
  const status = (await put(old)) === 200 ? 200 : await put(wanted);
  if (status !== 200) {
    throw new Failure(
      `the notes store did not accept its new admin password (status ${status}). Run \`hearth logs notes\` for the reason, then run the same command again.`,
    );
  }
  changeSecrets(home, { notesAdminPassword: wanted });
  handOver(home, "NOTES_ADMIN_PASSWORD", wanted);
}

/** Has the gateway read its files again, authorized by the first of these keys that it accepts. */
async function reloadGateway(
  { gateway }: RotationPlace,
  keys: readonly string[],
): Promise<void> {
  let answer = "";
  for (const key of keys) {
    const { status, body } = await askHttp(`${gateway}/config/reload`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(ANSWERS_WITHIN_MS),
    });
    if (status === 200) {
      return;
    }
    answer = `${status} ${body.slice(0, 200)}`;
  }
  throw new Failure(
    `the gateway did not reload its secrets (${answer}). Run \`hearth logs gateway\` for the reason, then run the same command again.`,
  );
}
