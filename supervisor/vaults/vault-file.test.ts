import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
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
  earlierPasswords: ["first", "second"],
  connection: "http://family:before@127.0.0.1:5984/family",
  vaultPassphrase: "a passphrase",
  choices: vaultChoices.parse({}),
};

const NOW = Date.parse("2026-11-03T00:00:00Z");

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
  await files.putBack("family", async () => true, NOW);
  expect(files.read("family")).toEqual(FAMILY);
});

test("a damaged file is kept when a new one is written: its passphrase may still be readable", () => {
  const files = openVaultFiles(directory);
  files.write(FAMILY);
  files.write(FAMILY);
  expect(readdirSync(directory)).toEqual(["family.json"]);
  const damaged = readFileSync(files.pathOf("family"), "utf8").slice(0, -10);
  writeFileSync(files.pathOf("family"), damaged);
  files.write(FAMILY);
  expect(files.read("family")).toEqual(FAMILY);
  const removed = join(directory, "removed");
  const kept = readdirSync(removed).map((name) =>
    readFileSync(join(removed, name), "utf8"),
  );
  expect(kept).toEqual([damaged]);
  expect(files.removed("family")).toEqual([]);
});

test.each([
  ["its password", FAMILY, "before", false],
  [
    "the next password of an incomplete rotation",
    { ...FAMILY, nextPassword: "after" },
    "after",
    false,
  ],
  ["a password that a rotation has replaced", FAMILY, "second", true],
])(
  "a removed file is put back by %s, any other one stays",
  async (_which, file, valid, isRotated) => {
    const files = openVaultFiles(directory);
    const other = { ...FAMILY, password: "another", earlierPasswords: [] };
    files.write(file);
    files.remove("family", Date.parse("2026-11-01T00:00:00Z"));
    files.write(other);
    files.remove("family", Date.parse("2026-11-02T00:00:00Z"));
    expect(files.names()).toEqual([]);
    const putBack = (password: string) =>
      files.putBack("family", async (each) => each === password, NOW);
    expect(await putBack("none")).toBeUndefined();
    expect(files.names()).toEqual([]);
    for (const _time of ["removed", "there"]) {
      expect(await putBack(valid)).toEqual({ file, isRotated });
      expect(files.read("family")).toEqual(file);
    }
    expect(files.removed("family")).toEqual([other]);
  },
);

test("a file that is put back leaves the one in its place among those of removed vaults", async () => {
  const files = openVaultFiles(directory);
  files.write(FAMILY);
  files.remove("family", Date.parse("2026-11-01T00:00:00Z"));
  const created = { ...FAMILY, password: "created", earlierPasswords: [] };
  files.write(created);
  await files.putBack("family", async (each) => each === "first", NOW);
  expect(files.read("family")).toEqual(FAMILY);
  expect(files.removed("family")).toEqual([created]);
});

test("vaults of one name that are removed within a second keep a file each", () => {
  const files = openVaultFiles(directory);
  const second = { ...FAMILY, password: "second" };
  for (const file of [FAMILY, second]) {
    files.write(file);
    files.remove("family", NOW);
  }
  expect(files.removed("family")).toEqual([second, FAMILY]);
});

test("a user is found in the file of another vault that shares it, which stays", async () => {
  const files = openVaultFiles(directory);
  files.write(FAMILY);
  files.remove("family", NOW);
  const copy = {
    ...FAMILY,
    vault: "family-before",
    password: "after",
    earlierPasswords: ["before"],
  };
  files.write(copy);
  const isPassword = async (each: string) => each === "before";
  expect(await files.putBack("family", isPassword, NOW)).toEqual({
    file: copy,
    isRotated: true,
  });
  expect(files.names()).toEqual(["family-before"]);
});
