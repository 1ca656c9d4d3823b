import { expect, test } from "vitest";
import type { VaultView } from "../supervisor/vaults/overview.ts";
import { removalWords } from "./vault-removal.ts";

test("before a vault is removed, the command says whether a backup contains it", () => {
  const view: VaultView = {
    vault: "family",
    state: "open",
    url: null,
    user: "family",
    documents: 3,
    fileBytes: 1000,
    reclaimableBytes: 0,
    conflicts: 0,
    seeds: 1,
    compactedAt: null,
    backup: null,
    problems: [],
  };
  const name = "2026-11-10T04-00-00Z";
  expect(removalWords(view)).toContain("No backup on this machine contains it");
  expect(removalWords({ ...view, backup: name })).toContain(
    `The backup ${name} contains it.`,
  );
});
