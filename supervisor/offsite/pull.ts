import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beginBackup, needFree, verifyFiles } from "../backup/backup-files.ts";
import { listBackups, MANIFEST_NAME } from "../backup/manifest.ts";
import { writeDurably } from "../../core/durable-file.ts";
import { Failure } from "../../core/failure.ts";
import { decryptFile } from "./age.ts";
import type { OffsitePlace } from "./settings.ts";
import {
  clear,
  gone,
  PART_BYTES,
  readEntries,
  type OffsiteBackup,
  type OffsiteEntry,
  type OffsiteWork,
} from "./store.ts";

/** Downloads and decrypts a backup; it appears in `directory` (`backups/<kind>`) once it is complete and verified. */
export async function pullBackup(
  place: OffsitePlace,
  backup: OffsiteBackup,
  directory: string,
  { signal, progress }: OffsiteWork,
): Promise<OffsiteEntry> {
  const { name, kind } = backup;
  if (listBackups(directory).includes(name)) {
    throw new Failure(`${name} already exists in ${directory}.`);
  }
  const [entry] = await readEntries(place, [backup], signal);
  if (entry === undefined) {
    throw gone(backup);
  }
  const making = beginBackup(directory, name);
  const all = entry.files.reduce((sum, { bytes }) => sum + bytes, 0) || 1;
  let done = 0;
  try {
    needFree(directory, all, "choose a larger disk");
    for (const part of partsOf(entry.files)) {
      progress(
        `downloading ${kind} ${name}/${part[0]?.name ?? ""}`,
        done / all,
      );
      await pullFiles(place, part, making.directory, signal);
      done += part.reduce((sum, { bytes }) => sum + bytes, 0);
    }
    writeDurably(join(making.directory, MANIFEST_NAME), entry.manifest);
    await verifyFiles(making.directory, signal);
    making.finish();
    return entry;
  } catch (error) {
    making.abandon();
    throw error;
  } finally {
    rmSync(place.staging, { recursive: true, force: true });
  }
}

type OffsiteFile = OffsiteEntry["files"][number];

/** In order; each part is at most as large as what is encrypted at once, or a single file. */
function partsOf(
  files: readonly OffsiteFile[],
): readonly (readonly OffsiteFile[])[] {
  const parts: OffsiteFile[][] = [];
  let bytes = Infinity;
  for (const file of files) {
    if (bytes + file.bytes > PART_BYTES) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)?.push(file);
    bytes += file.bytes;
  }
  return parts;
}

async function pullFiles(
  { remote, staging, settings }: OffsitePlace,
  files: readonly OffsiteFile[],
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  clear(staging);
  const objects = files.map(({ object }) => object);
  await remote.download([...new Set(objects)], staging, signal);
  for (const { name, object } of files) {
    const path = join(staging, object);
    if (!existsSync(path)) {
      throw new Failure(
        `${name} is missing at the target (${object}): run \`hearth offsite list\` and fetch another backup.`,
      );
    }
    await decryptFile(settings.identity, path, join(directory, name), signal);
  }
}
