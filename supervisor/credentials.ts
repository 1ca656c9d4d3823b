import { statSync } from "node:fs";
import { codeOf, Failure } from "../core/failure.ts";
import type { Home } from "./home/home.ts";
import { completeAccess, readSecretsFile } from "./home/secrets.ts";
import { readVariable, type Environment } from "../core/environment.ts";
import { aliveIn, readRunFile } from "./runtimes/process/run-file.ts";

/** Credentials of the operator for requests to the supervisor. */
export interface Credentials {
  /** For people and programs: Basic authentication of the user `operator`, and the sign-in form. */
  readonly operatorPassword: string;
  /** For commands on this machine: a bearer token from secrets.json. */
  readonly cliToken: string;
  /** For Prometheus: a bearer token for /metrics and /readyz only. */
  readonly metricsToken: string;
}

/** The operator's password from the environment; undefined if it is in secrets.json. */
export function givenPassword(env: Environment): string | undefined {
  const given = readVariable("HEARTH_OPERATOR_PASSWORD", env);
  // An empty password would be accepted from every caller.
  if (given === "") {
    throw new Failure(
      "the file in HEARTH_OPERATOR_PASSWORD_FILE is empty: write the operator password to it.",
    );
  }
  return given;
}

/**
 * The credentials of the supervisor of this home, from the environment and from secrets.json; missing ones are added to the
 * file. It is read again after changes, because commands may change it while the supervisor runs.
 */
export function openCredentials(
  home: Home,
  env: Environment,
): () => Credentials {
  const given = givenPassword(env);
  let known = { ...completeAccess(home, given !== undefined) };
  let version = versionOf(home.secrets);
  return () => {
    const current = versionOf(home.secrets);
    if (current !== version) {
      try {
        known = { ...known, ...readSecretsFile(home) };
      } catch {
        // While the file is being edited, the last values remain valid.
      }
      version = current;
    }
    const { operatorPassword, cliToken, metricsToken } = known;
    return {
      operatorPassword: given ?? operatorPassword,
      cliToken,
      metricsToken,
    };
  };
}

/** Changes with the file, which is always replaced as a whole. */
function versionOf(path: string): string {
  try {
    const { ino, mtimeMs } = statSync(path);
    return `${ino} ${mtimeMs}`;
  } catch (error) {
    return codeOf(error) ?? "";
  }
}

/**
 * Headers with the operator's credentials for commands. Those of secrets.json are sent only to the supervisor of this home:
 * another address may belong to another program, even on this machine.
 */
export function authorizationFor(
  home: Home,
  address: string,
  env: Environment,
): Readonly<Record<string, string>> {
  const ours = aliveIn(readRunFile(home.runFile).supervisor)?.address;
  const secrets = isSameServer(ours, address)
    ? readSecretsFile(home)
    : undefined;
  if (secrets?.cliToken !== undefined) {
    return { authorization: `Bearer ${secrets.cliToken}` };
  }
  // A supervisor of an earlier release has no token.
  const password = givenPassword(env) ?? secrets?.operatorPassword;
  return password === undefined ? {} : operatorHeaders(password);
}

/** Basic authentication of the user `operator`. */
export function operatorHeaders(
  password: string,
): Readonly<Record<string, string>> {
  const basic = Buffer.from(`operator:${password}`).toString("base64");
  return { authorization: `Basic ${basic}` };
}

function isSameServer(ours: string | undefined, other: string): boolean {
  return (
    ours !== undefined &&
    URL.canParse(other) &&
    new URL(other.replace("//localhost", "//127.0.0.1")).origin ===
      new URL(ours).origin
  );
}
