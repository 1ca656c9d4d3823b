import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openNotesState } from "../supervisor/vaults/notes-state.ts";
import { vaultChoices } from "../supervisor/vaults/plugin-settings.ts";
import {
  openVaultFiles,
  type VaultFiles,
} from "../supervisor/vaults/vault-file.ts";
import { storedPassphrase } from "./vault-passphrase.ts";

let root: string;
let files: VaultFiles;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "hearth-passphrase-"));
  files = openVaultFiles(join(root, "vaults"));
  files.write({
    vault: "family",
    url: "https://notes.example",
    user: "family",
    password: "password",
    earlierPasswords: [],
    connection: "http://family:password@127.0.0.1:5984/family",
    vaultPassphrase: "a passphrase",
    choices: vaultChoices.parse({}),
  });
});
afterEach(() => rmSync(root, { recursive: true }));

test("a vault that was restored under another name has the passphrase of the original", () => {
  expect(storedPassphrase(root, "family")).toBe("a passphrase");
  expect(storedPassphrase(root, "family-before")).toBeUndefined();
  const state = openNotesState(join(root, "notes-state.json"), () => {});
  state.change("family-before", { member: "family" });
  expect(storedPassphrase(root, "family-before")).toBe("a passphrase");
});

test("a restored vault whose credentials were removed has the passphrase of its latest file with one", () => {
  const family = files.read("family")!;
  files.remove("family", Date.now());
  files.write({ ...family, vaultPassphrase: null });
  files.remove("family", Date.now());
  expect(storedPassphrase(root, "family")).toBe("a passphrase");
});
