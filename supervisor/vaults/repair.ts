import { counted } from "../../core/words.ts";
import {
  leafOf,
  parseDocument,
  readLeaves,
  readNotesManifest,
  type VaultEntry,
} from "./backup-format.ts";
import { unreadableDocuments } from "./backup-vault.ts";
import type { Couch } from "./couch.ts";
import { Database } from "./database.ts";
import { forEveryVault, VaultFailure } from "./every-vault.ts";

interface RepairOptions {
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
 * them: the store replaces damaged content only. Throws a Failure, after all vaults, for each with damage that the backup cannot repair.
 */
export async function repairVaults(
  options: RepairOptions,
): Promise<readonly RepairedVault[]> {
  const { vaults } = readNotesManifest(options.backup);
  const all: RepairedVault[] = [];
  const names = vaults.map(({ name }) => name);
  await forEveryVault(options.couch, names, async (vault, index) => {
    const repaired = await repairVault(options, vaults[index]!, (done) =>
      options.progress(`vault ${vault}`, (index + done) / vaults.length),
    );
    if (repaired.length > 0) {
      all.push({ vault, repaired });
    }
  });
  return all;
}

/** Returns the ids of documents whose damaged content was replaced. */
async function repairVault(
  { couch, backup, signal }: RepairOptions,
  entry: VaultEntry,
  progress: (done: number) => void,
): Promise<readonly string[]> {
  const database = new Database(couch, entry.name);
  const info = await database.info({ signal });
  if (info === undefined || info.instance_start_time !== entry.instance) {
    return [];
  }
  const read = () => unreadableDocuments({ database, info, signal, progress });
  const damaged = new Set(await read());
  if (damaged.size === 0) {
    return [];
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
    throw new VaultFailure(
      `the content of ${counted(left.length, "document")} of vault ${entry.name} is damaged, and the backup does not have it: ${left.slice(0, 10).join(", ")}. Check the disk (\`dmesg\`), then edit these notes on a device that has them; for chunks (h:…), run “Overwrite server data” on the device with the newest notes.`,
    );
  }
  return [...damaged];
}
