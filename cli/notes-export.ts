import { parseMoment } from "../supervisor/vaults/moment.ts";
import { exportVault } from "../supervisor/vaults/vault-export.ts";
import { inZone } from "./local-time.ts";
import { atArg } from "./notes-history.ts";
import { supervisorArg, vaultArg } from "./notes-vaults.ts";
import { findStack } from "./stack-client.ts";
import { paint, print, printJson } from "./terminal.ts";
import { openPast } from "./vault-history.ts";
import { passphraseArg } from "./vault-passphrase.ts";
import { defineVerb, jsonArg } from "./verb.ts";

export const exportVerb = defineVerb({
  name: "notes export",
  description: "Export a vault as plain, decrypted files into a new folder.",
  example: "hearth notes export notes ~/notes-copy",
  args: {
    ...vaultArg,
    directory: {
      type: "positional",
      required: true,
      description: "A new or empty folder",
    },
    ...atArg,
    ...passphraseArg,
    ...jsonArg,
    ...supervisorArg,
  },
  run: async ({ vault, directory, at, json, supervisor, ...args }) => {
    const now = Date.now();
    const moment = at === undefined ? undefined : parseMoment(at, now);
    const { source, cipher } = await openPast(
      findStack(supervisor),
      vault,
      args["passphrase-file"],
    );
    const exported = await exportVault(
      source,
      cipher,
      directory,
      moment ?? (await source.summary()).now,
    );
    if (json) {
      printJson(exported);
    } else {
      print(
        `Vault ${vault} as of ${inZone(exported.at)} exported to ${directory}: ${exported.files} files.`,
      );
      for (const { path, why } of exported.left) {
        print(paint("warn", `Not written: ${path} (${why}).`));
      }
    }
    return exported.left.length === 0 ? 0 : 1;
  },
});
