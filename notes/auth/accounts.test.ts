import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDatabases, USERS, type Databases } from "../databases.ts";
import { readSettings, type Settings } from "../settings.ts";
import { openAccounts, type Accounts } from "./accounts.ts";

let directory: string;
let settings: Settings;
let databases: Databases;
let accounts: Accounts;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "hearth-notes-accounts-"));
  const ini = join(directory, "hearth.ini");
  writeFileSync(
    ini,
    `[chttpd_auth]\niterations=1\n[admins]\nadmin=-pbkdf2:sha256-${"a".repeat(64)},salt,1\n`,
  );
  settings = readSettings(ini, directory);
  databases = await openDatabases({
    directory: join(directory, "databases"),
    spoolDirectory: directory,
    passwordIterations: 1,
    historyMaxBytes: 1_000_000,
    idleMs: 60_000,
    events: {
      compacted: () => undefined,
      readOnly: () => undefined,
      failed: (name, detail) => expect.unreachable(`${name}: ${detail}`),
      hung: (name) => expect.unreachable(`${name} hung`),
    },
  });
  accounts = openAccounts(settings, databases);
});

afterEach(async () => {
  await databases.close();
  rmSync(directory, { recursive: true });
});

/** Saves a user and returns the revision of the document. */
async function save(
  name: string,
  password: string,
  rev?: string,
): Promise<string> {
  const users = await databases.open(USERS);
  const text = JSON.stringify({ name, password, roles: [], type: "user" });
  const { body } = await users.call(
    {
      operation: "putDocument",
      id: `org.couchdb.user:${name}`,
      query: rev === undefined ? {} : { rev },
      body: { kind: "memory", bytes: Buffer.from(text) },
      maxDocumentSize: 1000,
    },
    new AbortController().signal,
  );
  return (JSON.parse(body!) as { rev: string }).rev;
}

test("an account is current until its password changes, even if nothing watched it then", async () => {
  const rev = await save("ann", "first");
  await save("bea", "first");
  const ann = (await accounts.find("ann"))!;
  const bea = (await accounts.find("bea"))!;
  expect(await accounts.isCurrent(ann)).toBe(true);
  await save("ann", "second", rev);
  expect(await accounts.isCurrent(ann)).toBe(false);
  expect(await accounts.isCurrent(bea)).toBe(true);
});

test("an admin is current until the ini's password changes", async () => {
  const admin = (await accounts.find("admin"))!;
  await settings.set("log", "level", "info");
  expect(await accounts.isCurrent(admin)).toBe(true);
  await settings.set("admins", "admin", "second");
  expect(await accounts.isCurrent(admin)).toBe(false);
});
