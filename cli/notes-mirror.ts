import { setTimeout as sleep } from "node:timers/promises";
import {
  MirrorFolder,
  type MirrorCounts,
} from "../supervisor/vaults/mirror-folder.ts";
import { openMirrorGit } from "../supervisor/vaults/mirror-git.ts";
import { mirrorVault } from "../supervisor/vaults/vault-mirror.ts";
import { supervisorArg, vaultArg } from "./notes-vaults.ts";
import { onStopSignals } from "../core/signals.ts";
import { findStack } from "./stack-client.ts";
import { paint, print, printJsonLine } from "./terminal.ts";
import { openPast } from "./vault-history.ts";
import { passphraseArg } from "./vault-passphrase.ts";
import { defineVerb } from "./verb.ts";

const POLL_MS = 5000;

export const mirror = defineVerb({
  name: "notes mirror",
  description:
    "Export a vault as plain, decrypted files and follow its changes until Ctrl-C.",
  example: "hearth notes mirror notes ~/notes-mirror --git",
  args: {
    ...vaultArg,
    directory: {
      type: "positional",
      required: true,
      description: "A new or empty folder, or an earlier mirror of this vault",
    },
    git: {
      type: "boolean",
      description: "Commit changes to git every 15 minutes",
    },
    ...passphraseArg,
    json: {
      type: "boolean",
      description: "Print each pass as a line of JSON",
    },
    ...supervisorArg,
  },
  run: async ({
    vault,
    directory,
    git: withGit,
    supervisor,
    json,
    ...args
  }) => {
    const stop = new AbortController();
    const forget = onStopSignals(
      () => stop.abort(),
      () => process.exit(1),
    );
    const { source, cipher } = await openPast(
      findStack(supervisor, process.env, stop.signal),
      vault,
      args["passphrase-file"],
    );
    const report = (sentence: string): void =>
      json
        ? printJsonLine({ warning: sentence })
        : print(paint("warn", sentence));
    const folder = new MirrorFolder(directory, vault, report);
    const git = withGit
      ? await openMirrorGit(directory, vault, Date.now)
      : undefined;
    let last: MirrorCounts | undefined;
    await mirrorVault({
      source,
      cipher,
      folder,
      report,
      stop: stop.signal,
      passed: async (counts) => {
        if (json) {
          printJsonLine({ vault, directory, ...counts });
        } else {
          printPass(vault, directory, last, counts);
        }
        last = counts;
        await git?.commitIfDue();
      },
      pause: async (signal) =>
        sleep(POLL_MS, undefined, { signal }).catch(() => {}),
    });
    await git?.commit();
    forget();
    return (last?.leftOut ?? 0) === 0 ? 0 : 1;
  },
});

function printPass(
  vault: string,
  directory: string,
  last: MirrorCounts | undefined,
  { files, written, deleted }: MirrorCounts,
): void {
  if (last === undefined) {
    print(
      `Vault ${vault} mirrored to ${directory}: ${files} files. Following changes; stop with Ctrl-C.`,
    );
    return;
  }
  const newlyWritten = written - last.written;
  const newlyDeleted = deleted - last.deleted;
  if (newlyWritten + newlyDeleted > 0) {
    print(
      `${new Date().toLocaleTimeString()}: ${newlyWritten} written, ${newlyDeleted} deleted.`,
    );
  }
}
