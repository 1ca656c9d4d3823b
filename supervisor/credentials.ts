import { statSync } from "node:fs";
import { codeOf, Failure } from "../core/failure.ts";
import type { Home } from "./home/home.ts";
import { completeAccess, readSecretsFile } from "./home/secrets.ts";
import { readVariable, type Environment } from "../core/environment.ts";
import { aliveIn, readRunFile } from "./runtimes/process/run-file.ts";

/** What proves that a request to the supervisor comes from the operator. */
export interface Credentials {
  /** For people and programs: Basic authentication of the user `operator`, and the sign-in form. */
  readonly operatorPassword: string;
  /** For the commands on this machine: a bearer token that only the reader of secrets.json knows. */
  readonly cliToken: string;
  /** For Prometheus: a bearer token that reads /metrics and /readyz, and nothing else. */
  readonly metricsToken: string;
}

/** The operator's password where the environment sets it; undefined where secrets.json holds it. */
export function givenPassword(env: Environment): string | undefined {
  const given = readVariable("HEARTH_OPERATOR_PASSWORD", env);
  // An empty password would be accepted from every caller.
  if (given === "") {
    throw new Failure(
      "HEARTH_OPERATOR_PASSWORD_FILE names an empty file: write the operator password into it.",
    );
  }
  return given;
}

/**
 * The credentials of the supervisor on this home: those of the environment and of secrets.json, which gets those that it lacks.
 * A command may change the file while the supervisor runs, so it is read again when it has changed.
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
        // The file is being edited: the last values count until it can be read again.
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

/** Differs after each change: the file is always replaced as a whole. */
function versionOf(path: string): string {
  try {
    const { ino, mtimeMs } = statSync(path);
    return `${ino} ${mtimeMs}`;
  } catch (error) {
    return codeOf(error) ?? "";
  }
}

/**
 * The headers that prove that a command is the operator's. What secrets.json holds is sent to the supervisor of this home alone:
 * any other address may belong to another program, also on this machine.
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
  // A supervisor of an earlier release knows no token.
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
