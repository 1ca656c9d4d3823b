import { existsSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { Failure } from "../../core/failure.ts";
import { sizeWords } from "../../core/size.ts";
import { beginBackup, writeCompressed } from "../backup/backup-files.ts";
import {
  backupName,
  newestBackup,
  writeManifest,
  type BackupFile,
} from "../backup/manifest.ts";
import {
  CONFIG_FILE,
  USERS_FILE,
  type NotesManifest,
  type VaultEntry,
} from "./backup-format.ts";
import { versionWords } from "../release/version.ts";
import { backUpVault } from "./backup-vault.ts";
import type { Couch } from "./couch.ts";
import type { DatabaseInfo } from "./couch-answers.ts";
import { Database, vaultNames } from "./database.ts";
import { asUnreadable, unreadableWords } from "./unreadable-vault.ts";
import {
  emptyEscrow,
  readableEscrow,
  type EscrowFiles,
} from "./seed-escrow.ts";
import { withBackedUpSeed } from "./backed-up-seed.ts";
import { openUsers } from "./users.ts";
import { counted } from "../../core/words.ts";

interface BackupOptions {
  readonly couch: Couch;
  readonly escrow: EscrowFiles;
  /** `backups/notes`; contains a directory per backup. */
  readonly directory: string;
  readonly now: () => number;
  readonly signal: AbortSignal;
  /** The current step, and the completed fraction from 0 to 1. */
  readonly progress: (text: string, done?: number) => void;
}

export interface CreatedBackup {
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
  readonly manifest: NotesManifest;
  /** Damaged files of the previous backup; the new one contains their documents in full. */
  readonly damaged: readonly string[];
}

/** Copies every leaf of every vault with its history, the two documents that replication omits, access rules, users and settings. */
export async function backupNotes(
  options: BackupOptions,
): Promise<CreatedBackup> {
  const { couch, directory, now, signal } = options;
  const vaults = await readVaults(couch);
  const takenAt = unusedMoment(directory, now());
  const name = backupName(takenAt);
  // What has not changed since the last one takes no space.
  const making = beginBackup(directory, name, 0);
  try {
    const { entries, damaged, ...backedUp } = await writeVaults(
      options,
      vaults,
      making.directory,
    );
    const server = await writeServer(options, making.directory);
    const files = [...backedUp.files, ...server.files];
    const manifest: NotesManifest = {
      format: 1,
      kind: "notes",
      takenAt,
      files,
      madeBy: versionWords(),
      vaults: entries,
      users: server.users,
    };
    writeManifest(making.directory, manifest);
    signal.throwIfAborted();
    making.finish();
    return {
      name,
      path: join(directory, name),
      manifest,
      damaged,
      bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    };
  } catch (error) {
    making.abandon();
    throw error;
  }
}

async function writeVaults(
  { directory, escrow, now, signal, progress }: BackupOptions,
  vaults: readonly OpenVault[],
  making: string,
): Promise<{
  readonly entries: VaultEntry[];
  readonly files: readonly BackupFile[];
  readonly damaged: readonly string[];
}> {
  const newest = newestBackup(directory, now());
  const total = vaults.reduce((sum, { info }) => sum + info.sizes.active, 0);
  const entries: VaultEntry[] = [];
  const files: BackupFile[] = [];
  const damaged: string[] = [];
  let bytesDone = 0;
  for (const [index, { database, info }] of vaults.entries()) {
    const { active } = info.sizes;
    const backedUp = await backUpVault({
      database,
      info,
      escrow: await withBackedUpSeed(
        { backups: directory, now },
        readableEscrow(escrow, database.name) ?? emptyEscrow(database.name),
        info.instance_start_time,
      ),
      newest: newest === undefined ? undefined : join(directory, newest),
      signal,
      making,
      prefix: `vault-${index + 1}`,
      onDamage: (path) => damaged.push(path),
      progress: (done) =>
        progress(
          `vault ${database.name}`,
          (bytesDone + done * active) / Math.max(1, total),
        ),
    });
    bytesDone += active;
    entries.push(backedUp.entry);
    files.push(...backedUp.files);
  }
  return { entries, files, damaged };
}

/** Writes the users and the settings of the server. */
async function writeServer(
  { couch, signal }: BackupOptions,
  making: string,
): Promise<{ readonly files: readonly BackupFile[]; readonly users: number }> {
  const users = await openUsers(couch).all();
  const userLines = users.map((user) => `${JSON.stringify(user)}\n`);
  const usersFile = await writeCompressed(
    ...([making, USERS_FILE, Readable.from(userLines), signal] as const),
  );
  const config = await couch.ask("GET", "/_node/_local/_config", { signal });
  const configLines = [`${JSON.stringify(config, null, 2)}\n`];
  const configFile = await writeCompressed(
    ...([making, CONFIG_FILE, Readable.from(configLines), signal] as const),
  );
  return { files: [usersFile, configFile], users: users.length };
}

/** Names have a resolution of one second; a second backup within it is dated to the next free one. */
function unusedMoment(directory: string, at: number): number {
  let moment = at;
  while (existsSync(join(directory, backupName(moment)))) {
    moment += 1000;
  }
  return moment;
}

interface OpenVault {
  readonly database: Database;
  readonly info: DatabaseInfo;
}

async function readVaults(couch: Couch): Promise<readonly OpenVault[]> {
  const found = [];
  for (const name of await vaultNames(couch)) {
    const database = new Database(couch, name);
    if (await database.isRestoring()) {
      throw new Failure(
        `no backup was created, as vault "${name}" is being restored: run \`hearth notes backup\` once it is complete.`,
      );
    }
    const info = await database.info().catch(asUnreadable);
    if (typeof info === "string") {
      throw new Failure([
        "no backup was created, as one without an unreadable vault would in time replace those with it.",
        unreadableWords(name, info),
      ]);
    }
    if (info !== undefined) {
      found.push({ database, info });
    }
  }
  return found;
}

/** A summary of a backup's content. */
export function describeBackup({
  name,
  bytes,
  manifest,
}: CreatedBackup): string {
  const leaves = manifest.vaults.reduce((sum, vault) => sum + vault.leaves, 0);
  return `${counted(manifest.vaults.length, "vault")} with ${counted(leaves, "revision")} in ${sizeWords(bytes)}: ${name}`;
}
