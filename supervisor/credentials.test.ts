import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  givenPassword,
  openCredentials,
  operatorHeaders,
  authorizationFor,
} from "./credentials.ts";
import { createHome, type Home } from "./home/home.ts";
import { changeSecrets, readSecretsFile } from "./home/secrets.ts";
import { startTimeOf } from "./runtimes/process/identity.ts";
import { writeRunFile } from "./runtimes/process/run-file.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";

let place: ReturnType<typeof temporaryHome>;
let home: Home;

beforeEach(() => {
  place = temporaryHome();
  home = place.home;
  createHome(home);
});
afterEach(() => place.remove());

const ADDRESS = "http://127.0.0.1:4080";

/** Writes the file of a running supervisor, with this process in its place. */
function running(pid = process.pid): void {
  const startTime = startTimeOf(process.pid) ?? "";
  writeRunFile(home.runFile, {
    supervisor: { pid, startTime, address: ADDRESS, port: 4080 },
    services: {},
  });
}

test("a supervisor that starts nothing creates and keeps its own credentials, readable only by their owner", () => {
  const first = openCredentials(home, {})();
  expect(statSync(home.secrets).mode & 0o777).toBe(0o600);
  expect(readSecretsFile(home)).toEqual(first);
  expect(new Set(Object.values(first)).size).toBe(3);
  expect(openCredentials(home, {})()).toEqual(first);
});

test("missing credentials are added to an older file, which is otherwise unchanged", () => {
  const older = { operatorPassword: "of-an-older-release", note: "mine" };
  writeFileSync(home.secrets, JSON.stringify(older));
  const { operatorPassword, cliToken } = openCredentials(home, {})();
  expect(operatorPassword).toBe(older.operatorPassword);
  expect(JSON.parse(readFileSync(home.secrets, "utf8"))).toMatchObject({
    ...older,
    cliToken,
  });
});

test("a password from the environment takes precedence, and none is written to the file", () => {
  const file = join(place.directory, "password");
  writeFileSync(file, "of-the-deployment\n");
  const env = { HEARTH_OPERATOR_PASSWORD_FILE: file };
  expect(openCredentials(home, env)().operatorPassword).toBe(
    "of-the-deployment",
  );
  expect(readSecretsFile(home)).not.toHaveProperty("operatorPassword");
  changeSecrets(home, { operatorPassword: "of-an-earlier-start" });
  expect(openCredentials(home, env)().operatorPassword).toBe(
    "of-the-deployment",
  );
  writeFileSync(file, "\n");
  expect(() => givenPassword(env)).toThrow(
    "the file in HEARTH_OPERATOR_PASSWORD_FILE is empty: write the operator password to it.",
  );
});

test("changes of the file by a command apply immediately; an invalid file changes nothing", () => {
  const credentials = openCredentials(home, {});
  const before = credentials();
  changeSecrets(home, { operatorPassword: "another-password-000" });
  expect(credentials()).toEqual({
    ...before,
    operatorPassword: "another-password-000",
  });
  writeFileSync(home.secrets, "{");
  expect(credentials().operatorPassword).toBe("another-password-000");
});

test("the token is sent only to the running supervisor of this home", () => {
  const { cliToken, operatorPassword } = openCredentials(home, {})();
  expect(authorizationFor(home, ADDRESS, {})).toEqual({});
  running();
  const token = { authorization: `Bearer ${cliToken}` };
  expect(authorizationFor(home, `${ADDRESS}/`, {})).toEqual(token);
  expect(authorizationFor(home, "http://localhost:4080", {})).toEqual(token);
  const given = { HEARTH_OPERATOR_PASSWORD: "of-another-supervisor" };
  expect(authorizationFor(home, ADDRESS, given)).toEqual(token);
  for (const other of ["http://127.0.0.1:4081", "http://10.0.0.1:4080"]) {
    expect(authorizationFor(home, other, {})).toEqual({});
    expect(authorizationFor(home, other, given)).toEqual(
      operatorHeaders("of-another-supervisor"),
    );
  }
  // Another program may listen on the supervisor's port.
  running(2 ** 22 + 1);
  expect(authorizationFor(home, ADDRESS, {})).toEqual({});
  // Started before tokens existed.
  running();
  changeSecrets(home, { cliToken: undefined });
  expect(authorizationFor(home, ADDRESS, {})).toEqual(
    operatorHeaders(operatorPassword),
  );
});

test("reading existing credentials creates nothing", () => {
  authorizationFor(home, ADDRESS, {});
  expect(existsSync(home.secrets)).toBe(false);
});
