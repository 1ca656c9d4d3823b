import { MINUTE_MS } from "../core/duration.ts";
import { sizeWords } from "../core/size.ts";
import { growthWords } from "../supervisor/vaults/growth.ts";
import {
  rowsOf,
  spaceOf,
  type VaultSpace,
} from "../supervisor/vaults/space.ts";
import { readVaultAt } from "../supervisor/vaults/vault-past.ts";
import type { VaultGrowth } from "../supervisor/vaults/vault-acts.ts";
import { supervisorArg, vaultArg } from "./notes-vaults.ts";
import { findStack } from "./stack-client.ts";
import { print, printJson, printTable } from "./terminal.ts";
import { openPast } from "./vault-history.ts";
import { passphraseArg } from "./vault-passphrase.ts";
import { defineVerb, jsonArg, UsageError } from "./verb.ts";

const SLOW_MS = MINUTE_MS;

export const space = defineVerb({
  name: "notes space",
  description: "Show the space used by a vault, by folder, and its growth.",
  example: "hearth notes space notes attachments",
  args: {
    ...vaultArg,
    folder: {
      type: "positional",
      required: false,
      description: "Show the contents of this folder",
    },
    ...passphraseArg,
    ...jsonArg,
    ...supervisorArg,
  },
  run: async ({ vault, folder, json, supervisor, ...args }) => {
    const stack = findStack(supervisor);
    const { growth } = (await stack.ask(
      "GET",
      `/api/notes/${encodeURIComponent(vault)}/growth`,
      SLOW_MS,
    )) as VaultGrowth;
    // Printed before requests that fail on a CouchDB, which provides only this.
    if (json !== true) {
      print(`Vault ${vault}. ${growthWords(growth)}`);
    }
    const { source, cipher } = await openPast(
      stack,
      vault,
      args["passphrase-file"],
    );
    const stored = await source.space();
    const { now } = await source.summary();
    const past = await readVaultAt(source, cipher, now);
    const measured = spaceOf(stored, past, folder);
    if (folder !== undefined && measured.folders?.length === 0) {
      throw new UsageError(
        `folder "${folder}" not found. Run \`hearth notes space ${vault}\` for the folders of the vault.`,
      );
    }
    if (json === true) {
      printJson({ growth, space: measured });
    } else {
      printSpace(measured);
    }
    return 0;
  },
});

function printSpace(space: VaultSpace): void {
  printTable(
    ["name", "size", "share", ""],
    rowsOf(space).map(({ name, bytes, note, share }) => [
      { text: name },
      { text: sizeWords(bytes), right: true },
      { text: `${share} %`, right: true },
      { text: note },
    ]),
  );
}
