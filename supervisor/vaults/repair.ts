import { Failure } from "../../core/failure.ts";
import { counted } from "../../core/words.ts";
import {
  leafOf,
  parseDocument,
  readLeaves,
  readNotesManifest,
} from "./backup-format.ts";
import { unreadableDocuments } from "./backup-vault.ts";
import type { Couch } from "./couch.ts";
import { openDatabase } from "./database.ts";

export interface RepairOptions {
  readonly couch: Couch;
  /** One backup: `backups/notes/<name>`. */
  readonly backup: string;
  readonly signal: AbortSignal;
  readonly progress: (text: string, done?: number) => void;
}

export interface RepairedVault {
  readonly vault: string;
  /** Ids of documents whose damaged content was replaced. */
  readonly repaired: readonly string[];
}

/**
 * Reads every document of the vaults of a backup, and sends those again that the store cannot return, as when the disk damaged
 * them: the store replaces damaged content only. Throws a Failure when some are not in the backup.
 */
export async function repairVaults({
  couch,
  backup,
  signal,
  progress,
}: RepairOptions): Promise<readonly RepairedVault[]> {
  const { vaults } = readNotesManifest(backup);
  const all: RepairedVault[] = [];
  for (const [index, entry] of vaults.entries()) {
    const database = openDatabase(couch, entry.name);
    const info = await database.info({ signal });
    if (info === undefined || info.instance_start_time !== entry.instance) {
      continue;
    }
    const read = () =>
      unreadableDocuments({
        database,
        info,
        signal,
        progress: (done) =>
          progress(`vault ${entry.name}`, (index + done) / vaults.length),
      });
    const damaged = new Set(await read());
    if (damaged.size === 0) {
      continue;
    }
    for await (const line of readLeaves(backup, entry)) {
      if (damaged.has(leafOf(line).id)) {
        await database.write([parseDocument(line)], {
          keepRevisions: true,
          signal,
        });
      }
    }
    const left = await read();
    if (left.length > 0) {
      throw new Failure(
        `the content of ${counted(left.length, "document")} of vault ${entry.name} is damaged, and the backup does not have it: ${left.slice(0, 10).join(", ")}. Check the disk (\`dmesg\`), then edit these notes on a device that has them; for chunks (h:…), run “Overwrite server data” on the device with the newest notes.`,
      );
    }
    all.push({ vault: entry.name, repaired: [...damaged] });
  }
  return all;
}
