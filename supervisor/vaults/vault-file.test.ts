import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { vaultChoices } from "./plugin-settings.ts";
import { openVaultFiles, type VaultFile } from "./vault-file.ts";

const FAMILY: VaultFile = {
  vault: "family",
  url: "https://notes.example",
  user: "family",
  password: "before",
  connection: "http://family:before@127.0.0.1:5984/family",
  vaultPassphrase: "a passphrase",
  choices: vaultChoices.parse({}),
};

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-vault-file-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

test("an unreadable file among those of removed vaults hides no other one", async () => {
  const files = openVaultFiles(directory);
  files.write(FAMILY);
  files.remove("family", Date.parse("2026-11-01T00:00:00Z"));
  mkdirSync(join(directory, "removed", "family.2026-11-02T000000Z.json"));
  expect(files.removed("family")).toEqual([FAMILY]);
  await files.putBack("family", async () => true);
  expect(files.read("family")).toEqual(FAMILY);
});

test.each([
  ["its password", FAMILY, "before"],
  [
    "the next password of an incomplete rotation",
    { ...FAMILY, nextPassword: "after" },
    "after",
  ],
])(
  "a removed file is put back by %s, any other one stays",
  async (_which, file, valid) => {
    const files = openVaultFiles(directory);
    files.write(file);
    files.remove("family", Date.parse("2026-11-01T00:00:00Z"));
    files.write({ ...FAMILY, password: "of another vault" });
    files.remove("family", Date.parse("2026-11-02T00:00:00Z"));
    expect(files.names()).toEqual([]);
    await files.putBack("family", async (password) => password === "none");
    expect(files.names()).toEqual([]);
    await files.putBack("family", async (password) => password === valid);
    expect(files.read("family")).toEqual(file);
  },
);
