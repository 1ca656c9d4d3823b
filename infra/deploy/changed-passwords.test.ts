import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { scramVerifier } from "../../core/scram.ts";
import type { RotationKind } from "../config/rotation.ts";
import { engineSettings, validConfig } from "../../test/infra/stack-config.ts";
import {
  findChangedPasswords,
  rejectChangedPasswords,
} from "./changed-passwords.ts";
import { openSession, readSettings, type Session } from "./session.ts";
import type { State } from "./state.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-passwords-"));
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

/**
 * Fakes both hosts: Postgres has the deployed passwords, or these, by role, and the notes server answers a login with `status`.
 */
function serversWith({
  passwords = {},
  status,
}: {
  readonly passwords?: Readonly<Record<string, string>>;
  readonly status: string;
}): void {
  const verifiers = Object.entries({
    postgres: validConfig["postgresPassword"] ?? "",
    gateway_a: validConfig["gatewayPassword"] ?? "",
    supervisor: validConfig["supervisorPassword"] ?? "",
    backup: validConfig["backupPassword"] ?? "",
    ...passwords,
  }).map(([role, password]) => `${role}|${scramVerifier(role, password)}`);
  const ssh = join(directory, "ssh");
  writeFileSync(
    ssh,
    `#!/bin/sh
case "$*" in
  *"'psql'"*) printf '${verifiers.join("\\n")}\\n' ;;
  *"'node'"*) echo ${status} ;;
esac
`,
  );
  chmodSync(ssh, 0o755);
}

async function sessionWith(
  settings: Readonly<Record<string, string>>,
): Promise<Session> {
  const all = { ...validConfig, ...settings };
  const stack = {
    name: "home",
    getAllConfig: async () => engineSettings(all),
  } as unknown as Stack;
  return openSession(stack, () => {});
}

const secret = (value: unknown) => ({
  "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
  plaintext: JSON.stringify(value),
});

const DEPLOYED: State = {
  pending_operations: [],
  resources: [
    {
      urn: "urn:pulumi:home::hearth::pulumi:providers:postgresql::postgres-login",
      type: "pulumi:providers:postgresql",
      inputs: { password: secret(validConfig["postgresPassword"]) },
    },
    {
      urn: "urn:pulumi:home::hearth::docker:index/container:Container::supervisor-a",
      type: "docker:index/container:Container",
      inputs: {
        uploads: secret([
          {
            file: "/run/hearth/NOTES_ADMIN_PASSWORD",
            content: validConfig["notesAdminPassword"],
          },
        ]),
      },
    },
  ],
};

/** The error before a run with changed settings; "" for none. */
async function rejected(
  settings: Readonly<Record<string, string>>,
  rotated?: RotationKind,
): Promise<string> {
  const session = await sessionWith(settings);
  return rejectChangedPasswords(
    session.engines,
    await readSettings(session),
    DEPLOYED,
    rotated,
  ).then(
    () => "",
    (error: unknown) => (error as Error).message,
  );
}

const OTHER = "another-0123456789abcdef";
const POSTGRES =
  "hearth:postgresPassword is not the password of Postgres' superuser";
const NOTES =
  "hearth:notesAdminPassword is not the password of the notes server's admin";
const ROTATE = "npm run deploy -- rotate postgres gives both another one";
const RESTART =
  "set it back, or start the server with it: `ssh root@192.168.1.10 docker rm --force hearth-couchdb`, then npm run deploy -- up";

test("a password that was changed in the configuration only is rejected with the next step", async () => {
  serversWith({ status: "401" });
  expect(await rejected({ notesAdminPassword: OTHER })).toBe(
    `${NOTES}; nothing was changed: ${RESTART}.`,
  );
  serversWith({ status: "200" });
  expect(await rejected({ postgresPassword: OTHER })).toBe(
    `${POSTGRES}; nothing was changed: ${ROTATE}.`,
  );
});

test("the rotation that replaces the password is not rejected", async () => {
  serversWith({ status: "200" });
  expect(await rejected({ postgresPassword: OTHER }, "postgres")).toBe("");
  expect(await rejected({ postgresPassword: OTHER }, "redis")).not.toBe("");
});

test("a password that was changed in its server, too, is accepted, and so is a server that does not run", async () => {
  serversWith({ passwords: { postgres: OTHER }, status: "200" });
  expect(
    await rejected({ postgresPassword: OTHER, notesAdminPassword: OTHER }),
  ).toBe("");
  writeFileSync(join(directory, "ssh"), "#!/bin/sh\nexit 1\n");
  expect(
    await rejected({ postgresPassword: OTHER, notesAdminPassword: OTHER }),
  ).toBe("");
});

test("the doctor compares the servers with the configuration, whatever was deployed", async () => {
  const session = await sessionWith({ postgresPassword: OTHER });
  const config = await readSettings(session);
  serversWith({ status: "401" });
  expect(await findChangedPasswords(session.engines, config)).toEqual([
    { what: POSTGRES, fix: ROTATE },
    { what: NOTES, fix: RESTART },
  ]);
  serversWith({ passwords: { postgres: OTHER }, status: "200" });
  expect(await findChangedPasswords(session.engines, config)).toEqual([]);
});

test("the doctor finds login roles with another password than in the configuration", async () => {
  const session = await sessionWith({});
  const config = await readSettings(session);
  const found = () =>
    findChangedPasswords(session.engines, config, { roles: true });
  serversWith({ status: "200" });
  expect(await found()).toEqual([]);
  serversWith({
    passwords: { gateway_a: OTHER, supervisor: OTHER, backup: OTHER },
    status: "200",
  });
  const fix = "npm run deploy -- up --refresh sets it there";
  expect(await found()).toEqual([
    {
      what: "hearth:gatewayPassword is not the password of the role gateway_a in Postgres",
      fix,
    },
    {
      what: "hearth:supervisorPassword is not the password of the role supervisor in Postgres",
      fix,
    },
    {
      what: "hearth:backupPassword is not the password of the role backup in Postgres",
      fix,
    },
  ]);
  writeFileSync(join(directory, "ssh"), "#!/bin/sh\nexit 1\n");
  expect(await found()).toEqual([]);
});
