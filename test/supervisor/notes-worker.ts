// A supervisor to be killed during a backup or restore: prints "half done" halfway and blocks there.
import { join } from "node:path";
import { backupNotes } from "../../supervisor/vaults/backup.ts";
import { openCouch } from "../../supervisor/vaults/couch.ts";
import { openNotesState } from "../../supervisor/vaults/notes-state.ts";
import { restoreNotes } from "../../supervisor/vaults/restore.ts";
import { openEscrow } from "../../supervisor/vaults/seed-escrow.ts";
import { openVaultFiles } from "../../supervisor/vaults/vault-file.ts";

const [work = "", url = "", directory = "", path = ""] = process.argv.slice(2);
const couch = openCouch({
  url,
  password: () => process.env["NOTES_ADMIN_PASSWORD"],
});
const escrow = openEscrow(join(directory, "escrow"));
const parked = new Int32Array(new SharedArrayBuffer(4));
const signal = new AbortController().signal;
const pauseHalfway = (text: string, done = 0): void => {
  if (!text.startsWith("vault") || done === 0) {
    return;
  }
  process.stdout.write("half done\n");
  Atomics.wait(parked, 0, 0);
};

if (work === "backup") {
  await backupNotes({
    couch,
    escrow,
    directory: path,
    now: Date.now,
    signal,
    progress: pauseHalfway,
  });
} else {
  await restoreNotes({
    couch,
    backup: path,
    as: "vault-half",
    state: openNotesState(join(directory, "notes-state.json"), () => {}),
    escrow,
    files: openVaultFiles(join(directory, "vaults")),
    busy: new Set(),
    now: Date.now,
    signal,
    progress: pauseHalfway,
  });
}
