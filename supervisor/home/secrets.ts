import { randomBytes } from "node:crypto";
import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { writeDurably, writeIfChanged } from "../../core/durable-file.ts";
import { Failure, codeOf, sentencesOf } from "../../core/failure.ts";
import { isNewHome, type Home } from "./home.ts";

const NAMES = [
  "masterKey",
  "saltKey",
  "postgresPassword",
  "gatewayDbPassword",
  "supervisorDbPassword",
  "backupDbPassword",
  "notesAdminPassword",
  "operatorPassword",
  "cliToken",
  "metricsToken",
] as const;

/** All secrets of the embedded stack; they are stored nowhere else. */
export type Secrets = Readonly<Record<(typeof NAMES)[number], string>> & {
  /** The gateway's login role; the other letter after a rotation. Absent: gateway_a. */
  readonly gatewayDbRole?: "gateway_a" | "gateway_b" | undefined;
  /** The master key before the last rotation, accepted until then (ISO time). */
  readonly previousMasterKey?: string | undefined;
  /** Without the key: it is ending, and the gateway may still accept it. */
  readonly previousMasterKeyUntil?: string | undefined;
  /** Target of off-site backups in rclone's syntax, and the age identity that decrypts them (`hearth offsite setup`). */
  readonly offsiteTarget?: string | undefined;
  readonly offsiteIdentity?: string | undefined;
  /** State of `hearth rotate`, so that it can resume after an interruption. */
  readonly rotation?:
    | { readonly of: string; readonly values: Readonly<Record<string, string>> }
    | undefined;
};

const secretText = z
  .string()
  .regex(/^[A-Za-z0-9_-]{16,}$/, "at least 16 letters, digits, - or _");
const stored = z.looseObject({
  ...Object.fromEntries(NAMES.map((name) => [name, secretText.optional()])),
  gatewayDbRole: z.enum(["gateway_a", "gateway_b"]).optional(),
  previousMasterKey: secretText.optional(),
  previousMasterKeyUntil: z.iso.datetime().optional(),
  offsiteTarget: z.string().min(1).optional(),
  offsiteIdentity: z
    .string()
    .regex(/^AGE-SECRET-KEY-/, "must start with AGE-SECRET-KEY-")
    .optional(),
  rotation: z
    .object({ of: z.string(), values: z.record(z.string(), z.string()) })
    .optional(),
});

/** Reads secrets.json, or creates it at the first start. Missing secrets of a newer version are added. */
export function readOrCreateSecrets(home: Home): Secrets {
  const known = readSecretsFile(home);
  if (known === undefined && !isNewHome(home)) {
    throw new Failure(
      `${home.secrets} not found; without it, the data in ${home.root} cannot be read: restore it from a copy, or move ${home.root} away to start afresh.`,
    );
  }
  const secrets = { ...makeSecrets(), ...known };
  if (known === undefined || NAMES.some((name) => !(name in known))) {
    writeDurably(home.secrets, `${JSON.stringify(secrets, null, 2)}\n`);
  }
  chmodSync(home.secrets, 0o600);
  return secrets;
}

/** Credentials of the operator, as far as stored in secrets.json. */
type AccessSecrets = Pick<
  Secrets,
  "operatorPassword" | "cliToken" | "metricsToken"
>;

/**
 * The same for a supervisor that starts nothing and needs no other secret. `withoutPassword`: the operator's password comes
 * from elsewhere, so none is created.
 */
export function completeAccess(
  home: Home,
  withoutPassword: boolean,
): AccessSecrets {
  const known = readSecretsFile(home) ?? {};
  const made: AccessSecrets = {
    operatorPassword: createSecret(),
    cliToken: createSecret(),
    metricsToken: createSecret(),
  };
  const missing = Object.fromEntries(
    Object.entries(made).filter(
      ([name]) =>
        !(name in known) && !(withoutPassword && name === "operatorPassword"),
    ),
  );
  if (Object.keys(missing).length > 0) {
    changeSecrets(home, missing);
  }
  return { ...made, ...known, ...missing };
}

/** The secrets, if any; throws a Failure if the file is invalid. */
export function readSecretsFile(home: Home): Partial<Secrets> | undefined {
  let text: string;
  try {
    text = readFileSync(home.secrets, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") {
      return undefined;
    }
    throw new Failure(sentencesOf(error, home.secrets), error);
  }
  try {
    return stored.parse(JSON.parse(text)) as Partial<Secrets>;
  } catch (error) {
    const detail =
      error instanceof z.ZodError
        ? error.issues
            .map((issue) => `${issue.path.join(".")}: ${issue.message}`)
            .join("; ")
        : "invalid JSON";
    throw new Failure(
      `cannot read ${home.secrets} (${detail}): fix it or restore it from a copy.`,
    );
  }
}

/** Optional secrets. */
const OPTIONAL_NAMES = [
  "gatewayDbRole",
  "previousMasterKey",
  "previousMasterKeyUntil",
] as const;

/** The current secrets, without the state of a rotation, for a process that runs while `hearth rotate` changes them. */
export function followSecrets(home: Home, known: Secrets): Secrets {
  const now = (): Partial<Secrets> => readSecretsFile(home) ?? {};
  return Object.defineProperties(
    {},
    Object.fromEntries([
      ...NAMES.map((name) => [
        name,
        { enumerable: true, get: () => now()[name] ?? known[name] },
      ]),
      // Secrets that were removed from the file no longer apply.
      ...OPTIONAL_NAMES.map((name) => [
        name,
        { enumerable: true, get: () => now()[name] },
      ]),
    ]),
  ) as Secrets;
}

/** Changes some secrets durably and keeps the others. A value of undefined is removed. */
export function changeSecrets(home: Home, changed: Partial<Secrets>): void {
  const next = { ...readSecretsFile(home), ...changed };
  writeDurably(home.secrets, `${JSON.stringify(next, null, 2)}\n`);
}

/** 192 random bits as 32 URL-safe characters. */
export function createSecret(): string {
  return randomBytes(24).toString("base64url");
}

function makeSecrets(): Secrets {
  return {
    masterKey: `sk-${createSecret()}`,
    saltKey: createSecret(),
    postgresPassword: createSecret(),
    gatewayDbPassword: createSecret(),
    supervisorDbPassword: createSecret(),
    backupDbPassword: createSecret(),
    notesAdminPassword: createSecret(),
    operatorPassword: createSecret(),
    cliToken: createSecret(),
    metricsToken: createSecret(),
  };
}

/** Writes a secret to its own file (0600) and returns the path, for a variable `<NAME>_FILE`. */
export function handOver(home: Home, name: string, secret: string): string {
  const path = join(home.handed, name);
  writeIfChanged(path, secret);
  return path;
}
