import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { writeDurably } from "../../core/durable-file.ts";
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

/** Every secret of the embedded stack; nothing else holds them. */
export type Secrets = Readonly<Record<(typeof NAMES)[number], string>> & {
  /** The gateway's login role; the other letter after a rotation. Absent: gateway_a. */
  readonly gatewayDbRole?: "gateway_a" | "gateway_b" | undefined;
  /** The master key before the last rotation, accepted until then (ISO time). */
  readonly previousMasterKey?: string | undefined;
  readonly previousMasterKeyUntil?: string | undefined;
  /** Where off-site backups go, as rclone takes it, and the age identity that decrypts them (`hearth offsite setup`). */
  readonly offsiteTarget?: string | undefined;
  readonly offsiteIdentity?: string | undefined;
  /** What `hearth rotate` has begun, so that the same command goes on after an interruption. */
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
    .regex(/^AGE-SECRET-KEY-/, "begins with AGE-SECRET-KEY-")
    .optional(),
  rotation: z
    .object({ of: z.string(), values: z.record(z.string(), z.string()) })
    .optional(),
});

/** Reads secrets.json, or makes it at the first start. A secret that a newer version adds is made and kept. */
export function readOrMakeSecrets(home: Home): Secrets {
  const known = readSecretsFile(home);
  if (known === undefined && !isNewHome(home)) {
    throw new Failure(
      `${home.secrets} is gone, and without it the data in ${home.root} cannot be opened: put it back from a copy, or move ${home.root} away to begin anew.`,
    );
  }
  const secrets = { ...makeSecrets(), ...known };
  if (known === undefined || NAMES.some((name) => !(name in known))) {
    writeDurably(home.secrets, `${JSON.stringify(secrets, null, 2)}\n`);
  }
  chmodSync(home.secrets, 0o600);
  return secrets;
}

/** What a supervisor needs to let the operator in, as far as secrets.json holds it. */
export type AccessSecrets = Pick<
  Secrets,
  "operatorPassword" | "cliToken" | "metricsToken"
>;

/**
 * The same where a supervisor starts nothing and needs no other secret. `withoutPassword`: the operator's comes from elsewhere,
 * so that none is made.
 */
export function completeAccess(
  home: Home,
  withoutPassword: boolean,
): AccessSecrets {
  const known = readSecretsFile(home) ?? {};
  const made: AccessSecrets = {
    operatorPassword: makeSecret(),
    cliToken: makeSecret(),
    metricsToken: makeSecret(),
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

/** The secrets if there are any; throws one sentence when the file is broken. */
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
        : "it is not JSON";
    throw new Failure(
      `${home.secrets} cannot be read (${detail}): mend it or put it back from a copy.`,
    );
  }
}

/** Those that a stack may lack. */
const OPTIONAL_NAMES = [
  "gatewayDbRole",
  "previousMasterKey",
  "previousMasterKeyUntil",
] as const;

/** The secrets as they are now, but for a rotation that has begun, for a process that runs while `hearth rotate` changes them. */
export function followSecrets(home: Home, known: Secrets): Secrets {
  const now = (): Partial<Secrets> => readSecretsFile(home) ?? {};
  return Object.defineProperties(
    {},
    Object.fromEntries([
      ...NAMES.map((name) => [
        name,
        { enumerable: true, get: () => now()[name] ?? known[name] },
      ]),
      // What is not in the file any more is over, whatever was known before.
      ...OPTIONAL_NAMES.map((name) => [
        name,
        { enumerable: true, get: () => now()[name] },
      ]),
    ]),
  ) as Secrets;
}

/** Changes some of them, durably, and keeps the rest of the file as it is. A value of undefined is taken out. */
export function changeSecrets(home: Home, changed: Partial<Secrets>): void {
  const next = { ...readSecretsFile(home), ...changed };
  writeDurably(home.secrets, `${JSON.stringify(next, null, 2)}\n`);
}

/** 32 URL-safe characters of 192 random bits. */
export function makeSecret(): string {
  return randomBytes(24).toString("base64url");
}

function makeSecrets(): Secrets {
  return {
    masterKey: `sk-${makeSecret()}`,
    saltKey: makeSecret(),
    postgresPassword: makeSecret(),
    gatewayDbPassword: makeSecret(),
    supervisorDbPassword: makeSecret(),
    backupDbPassword: makeSecret(),
    notesAdminPassword: makeSecret(),
    operatorPassword: makeSecret(),
    cliToken: makeSecret(),
    metricsToken: makeSecret(),
  };
}

/** Writes one secret to a file of its own (0600) and returns the path, for a variable `<NAME>_FILE`. */
export function handOver(home: Home, name: string, secret: string): string {
  const path = join(home.handed, name);
  if (!existsSync(path) || readFileSync(path, "utf8") !== secret) {
    writeDurably(path, secret);
  }
  return path;
}
