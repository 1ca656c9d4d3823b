import { copyFileSync, linkSync } from "node:fs";
import { join } from "node:path";
import { isIntact } from "../backup/backup-files.ts";
import { listBackups, type BackupFile } from "../backup/manifest.ts";
import { Failure } from "../../core/failure.ts";
import {
  leafOf,
  readLeaves,
  readNotesManifest,
  type VaultEntry,
  type VaultPart,
} from "./backup-format.ts";

/** What the newest backup has of a vault: a new one stores only what differs, and links to the files of this one. */
export interface EarlierVault {
  readonly backup: string;
  readonly name: string;
  /** Newest first. */
  readonly parts: readonly VaultPart[];
  readonly files: readonly BackupFile[];
  /** Of each document, its leaves as `leavesKey` gives them, and how many bytes its lines have. */
  readonly documents: Map<
    string,
    { readonly leaves: string; readonly bytes: number }
  >;
}

/** A document with other leaves than in the earlier backup is stored again, with all of them. */
export function leavesKey(revisions: readonly string[]): string {
  return revisions.toSorted().join(" ");
}

/**
 * Reads the newest backup's part of a vault; undefined where there is none to build on: none of this database, or one that an
 * older version took. `onDamage` hears of a file that is not as it was written, and nothing is built on that one either.
 */
export async function readEarlier(
  directory: string,
  vault: string,
  instance: string,
  signal: AbortSignal,
  onDamage: (path: string) => void,
): Promise<EarlierVault | undefined> {
  const [name] = listBackups(directory);
  if (name === undefined) {
    return undefined;
  }
  const backup = join(directory, name);
  const found = entryIn(backup, vault);
  if (found?.entry.size === undefined || found.entry.instance !== instance) {
    return undefined;
  }
  const { file, size, parts: older } = found.entry;
  const parts = [{ file, size }, ...older];
  const names = new Set(parts.map((part) => part.file));
  const files = found.files.filter((each) => names.has(each.name));
  for (const each of files) {
    if (!(await isIntact(backup, each, signal))) {
      onDamage(join(backup, each.name));
      return undefined;
    }
  }
  return {
    backup,
    name,
    parts,
    files,
    documents: await readDocuments(backup, found.entry),
  };
}

function entryIn(backup: string, vault: string) {
  try {
    const { vaults, files } = readNotesManifest(backup);
    const entry = vaults.find((each) => each.name === vault);
    return entry === undefined ? undefined : { entry, files };
  } catch (error) {
    // A backup that cannot be read is what the drill and `hearth backup list` report; this one is taken in full.
    if (error instanceof Failure) {
      return undefined;
    }
    throw error;
  }
}

async function readDocuments(
  backup: string,
  entry: VaultEntry,
): Promise<EarlierVault["documents"]> {
  const documents: EarlierVault["documents"] = new Map();
  for await (const line of readLeaves(backup, entry)) {
    const { id, rev } = leafOf(line);
    const known = documents.get(id);
    documents.set(id, {
      leaves: leavesKey([...(known?.leaves.split(" ") ?? []), rev]),
      bytes: (known?.bytes ?? 0) + line.length,
    });
  }
  return documents;
}

/** Parts that are smaller are written again each time, so that a year of nights is a few files. */
const SMALL_PART = 1_000_000;

/**
 * How many of the parts, from the newest on, a new file of `written` bytes takes in: while a part is not twice as large as what
 * is written anyway, so that each line is written a few times in its life and there are few files. All of them when less than
 * half of their bytes is `live`.
 */
export function partsToTakeIn(
  parts: readonly VaultPart[],
  written: number,
  live: number,
): number {
  const all = parts.reduce((sum, { size }) => sum + size, 0);
  if (live * 2 < all) {
    return parts.length;
  }
  let total = written;
  let count = 0;
  for (const { size } of parts) {
    if (size >= Math.max(2 * total, SMALL_PART)) {
      break;
    }
    total += size;
    count += 1;
  }
  return count;
}

/** Makes a part available in a new backup under a name of its own there, without copying where the file system has links. */
export function linkPart(
  earlier: EarlierVault,
  part: VaultPart,
  prefix: string,
  directory: string,
): { readonly part: VaultPart; readonly file: BackupFile } {
  const known = earlier.files.find(({ name }) => name === part.file);
  if (known === undefined) {
    throw new Error(`${part.file} is not in the manifest of ${earlier.name}`);
  }
  const [, from = earlier.name] =
    /\.(\d[\dT-]+Z)\.jsonl\.gz$/.exec(part.file) ?? [];
  const name = `${prefix}.${from}.jsonl.gz`;
  const source = join(earlier.backup, part.file);
  try {
    linkSync(source, join(directory, name));
  } catch {
    copyFileSync(source, join(directory, name));
  }
  return { part: { ...part, file: name }, file: { ...known, name } };
}
