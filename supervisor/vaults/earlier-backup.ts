import { copyFileSync, linkSync } from "node:fs";
import { basename, join } from "node:path";
import { isIntact, needFree } from "../backup/backup-files.ts";
import type { BackupFile } from "../backup/manifest.ts";
import { Failure } from "../../core/failure.ts";
import {
  leafOf,
  readLeaves,
  readNotesManifest,
  type VaultEntry,
  type VaultPart,
} from "./backup-format.ts";

/** A vault in the newest backup. A new backup stores only what differs, and links to the files of this one. */
export interface EarlierVault {
  readonly backup: string;
  readonly name: string;
  /** Newest first. */
  readonly parts: readonly VaultPart[];
  readonly files: readonly BackupFile[];
  /** For each document, the `leavesKey` of its leaves and the bytes of its lines. */
  readonly documents: Map<
    string,
    { readonly leaves: string; readonly bytes: number }
  >;
}

/** Compares the leaves of documents: one whose key differs from the earlier backup is stored again with all its leaves. */
export function leavesKey(revisions: readonly string[]): string {
  return revisions.toSorted().join(" ");
}

/**
 * Reads a vault from the newest backup (its path); undefined if that is not a usable base: it does not exist, lacks this database,
 * was created by an older version, or is damaged. `onDamage` is called with the path of a damaged file.
 */
export async function readEarlier(
  backup: string | undefined,
  vault: string,
  instance: string,
  signal: AbortSignal,
  onDamage: (path: string) => void,
): Promise<EarlierVault | undefined> {
  if (backup === undefined) {
    return undefined;
  }
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
    name: basename(backup),
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
    // The drill and `hearth backup list` report an unreadable backup; the new one is a full backup.
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

/** Bytes. Smaller parts are rewritten each time, so that a year of nightly backups is a few files. */
const SMALL_PART = 1_000_000;

/**
 * How many of the parts, from the newest on, are merged into a new file of `written` bytes: each part that is less than twice as
 * large as the bytes written before it. So each line is rewritten only a few times, and there are few files. All parts are merged
 * when less than half of their bytes is `live`.
 */
export function partsToMerge(
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

/** Adds a part to a new backup under a separate name; copies it only if the file system does not support links. */
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
    needFree(directory, known.bytes, "use a file system with hard links");
    copyFileSync(source, join(directory, name));
  }
  return { part: { ...part, file: name }, file: { ...known, name } };
}
