import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { needFree } from "../backup/backup-files.ts";
import { MANIFEST_NAME, readManifest } from "../backup/manifest.ts";
import { Failure } from "../../core/failure.ts";
import { encryptedSizes, encryptFile, encryptText } from "./age.ts";
import type { OffsitePlace } from "./settings.ts";
import {
  clear,
  entryPath,
  objectOf,
  PART_BYTES,
  type OffsiteBackup,
  type OffsiteEntry,
  type OffsiteExtra,
  type OffsiteWork,
} from "./store.ts";

/** Uploads a backup; objects that exist already are skipped. Returns how many encrypted bytes were uploaded. */
export async function pushBackup(
  place: OffsitePlace,
  { kind, name }: OffsiteBackup,
  parts: OffsiteWork & {
    /** `backups/<kind>/<name>` */
    readonly backup: string;
    readonly extra: OffsiteExtra;
  },
): Promise<number> {
  const { backup, signal, progress } = parts;
  const { remote, staging, settings } = place;
  const there = await remote.list(signal);
  const files = readManifest(backup).files.map((file) => ({
    ...file,
    object: objectOf(settings.identity, file.sha256),
  }));
  clear(staging);
  try {
    const uploaded = await uploadObjects(place, files, there, {
      backup,
      signal,
      progress: (file, done) =>
        progress(`uploading ${kind} ${name}/${file}`, done),
    });
    await stageEntry(place, {
      format: 1,
      kind,
      name,
      settings: parts.extra,
      manifest: readFileSync(join(backup, MANIFEST_NAME), "utf8"),
      files: files.map(({ name, object, bytes }) => ({ name, object, bytes })),
    });
    await remote.upload(staging, signal);
    return uploaded;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

interface OffsiteFile {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly object: string;
}

/** Encrypts and uploads missing objects in parts, so that staging takes little room. */
async function uploadObjects(
  place: OffsitePlace,
  files: readonly OffsiteFile[],
  there: ReadonlyMap<string, number>,
  parts: {
    readonly backup: string;
    readonly signal: AbortSignal;
    readonly progress: (file: string, done: number) => void;
  },
): Promise<number> {
  const { backup, signal, progress } = parts;
  const { remote, recipient, staging } = place;
  const sizeOnceEncrypted = await encryptedSizes(recipient);
  const missing = new Map(
    files
      .filter(
        ({ object, bytes }) => there.get(object) !== sizeOnceEncrypted(bytes),
      )
      .map((file) => [file.object, file]),
  );
  const all = [...missing.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  let uploaded = 0;
  let staged = 0;
  const upload = async () => {
    await remote.upload(staging, signal);
    clear(staging);
    uploaded += staged;
    staged = 0;
  };
  for (const file of missing.values()) {
    progress(file.name, (uploaded + staged) / (all || 1));
    const bytes = sizeOnceEncrypted(file.bytes);
    needFree(staging, bytes, "move backups to a larger disk");
    await encryptChecked(place, backup, file, signal);
    staged += bytes;
    if (staged >= PART_BYTES) {
      await upload();
    }
  }
  if (staged > 0) {
    await upload();
  }
  return uploaded;
}

async function encryptChecked(
  { recipient, staging }: OffsitePlace,
  backup: string,
  file: OffsiteFile,
  signal: AbortSignal,
): Promise<void> {
  const to = join(staging, file.object);
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  const from = join(backup, file.name);
  if ((await encryptFile(recipient, from, to, signal)) !== file.sha256) {
    throw new Failure(
      `${from} has changed since it was written: take another backup (\`hearth backup run\`, \`hearth notes backup\`) and check the disk.`,
    );
  }
}

async function stageEntry(
  { recipient, staging }: OffsitePlace,
  entry: OffsiteEntry,
): Promise<void> {
  const path = join(staging, entryPath(entry));
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, await encryptText(recipient, JSON.stringify(entry)));
}
