import { parseMoment } from "../supervisor/vaults/moment.ts";
import { exportVault } from "../supervisor/vaults/vault-export.ts";
import { inZone } from "./local-time.ts";
import { atArg } from "./notes-history.ts";
import { supervisorArg, vaultArg } from "./notes-vaults.ts";
import { findStack } from "./stack-client.ts";
import { paint, printAnswer } from "./terminal.ts";
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
    printAnswer(
      json,
      exported,
      [
        `Vault ${vault} as of ${inZone(exported.at)} exported to ${directory}: ${exported.files} files.`,
        ...exported.left.map(({ path, why }) =>
          paint("warn", `Not written: ${path} (${why}).`),
        ),
      ].join("\n"),
    );
    return exported.left.length === 0 ? 0 : 1;
  },
});
