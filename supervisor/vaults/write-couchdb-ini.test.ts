import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { hashAdminPassword } from "../../core/couchdb-ini.ts";
import { execute } from "../../core/execute.ts";
import { readSettings } from "../../notes/settings.ts";

const PROGRAM = join(import.meta.dirname, "write-couchdb-ini.ts");
const UUID = "00112233445566778899aabbccddeeff";

function inDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "hearth-write-ini-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

test("the notes store reads the written ini, which has the password's hash only", async () => {
  const directory = inDirectory();
  const [file, password] = [
    join(directory, "10-hearth.ini"),
    join(directory, "password"),
  ];
  writeFileSync(password, "secret\n");
  writeFileSync(file, "of an earlier run", { mode: 0o440 });
  const { ok, stderr } = await execute(process.execPath, [PROGRAM, file], {
    env: {
      NOTES_UUID: UUID,
      NOTES_COOKIE_SECRET: "cookie",
      NOTES_ADMIN_PASSWORD_FILE: password,
      NOTES_TRUSTED_PROXIES: "10.1.0.0/16",
    },
  });
  expect({ ok, stderr }).toEqual({ ok: true, stderr: "" });
  const settings = readSettings(file, directory);
  expect(settings.uuid).toBe(UUID);
  expect(settings.admins()).toEqual({
    admin: hashAdminPassword("secret", UUID),
  });
  expect(settings.get("chttpd_auth", "secret")).toBe("cookie");
  expect(settings.trustedProxies.check("10.1.2.3")).toBe(true);
  expect(settings.trustedProxies.check("10.2.2.3")).toBe(false);
});

test("a missing secret is named, and nothing is written", async () => {
  const file = join(inDirectory(), "10-hearth.ini");
  const { exitCode, stderr } = await execute(
    process.execPath,
    [PROGRAM, file],
    { env: { NOTES_UUID: UUID, NOTES_COOKIE_SECRET: "cookie" } },
  );
  expect(exitCode).toBe(1);
  expect(stderr).toBe(
    "hearth: NOTES_ADMIN_PASSWORD is not set: set it, or NOTES_ADMIN_PASSWORD_FILE to a file with it.\n",
  );
  expect(existsSync(file)).toBe(false);
});
