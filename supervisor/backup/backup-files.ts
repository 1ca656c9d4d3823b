import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Transform, type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createGunzip, createGzip } from "node:zlib";
import { syncDirectory } from "../../core/durable-file.ts";
import { Failure } from "../../core/failure.ts";
import { freeBytesOf } from "../../core/free-bytes.ts";
import { newestBackup, readManifest, type BackupFile } from "./manifest.ts";
import { sizeWords } from "../../core/size.ts";
import { sum } from "../../core/sum.ts";

const MAKING = ".making-";
const MIN_FREE_BYTES = 64 * 1024 * 1024;
/** A backup that would leave less is stopped: notes and the ledger are on the same disk. */
const MIN_LEFT_BYTES = MIN_FREE_BYTES / 2;
/** Bytes written between two checks. */
const CHECKED_BYTES = 4 * 1024 * 1024;

/** An incomplete backup, under a temporary name. */
interface Making {
  readonly directory: string;
  /** Completes it atomically. */
  readonly finish: () => void;
  /** Removes it. */
  readonly abandon: () => void;
}

/** Incomplete backups of this process; others were left by killed processes. */
const open = new Set<string>();

/**
 * Starts a backup `name` in `parent`, which is `backups/<kind>`. Remains of killed runs are removed; fails early if the disk
 * has no space for `bytes`, by default a little more than the size of the last one.
 */
export function beginBackup(
  parent: string,
  name: string,
  bytes?: number,
): Making {
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  for (const left of readdirSync(parent)) {
    if (left.startsWith(MAKING) && !open.has(join(parent, left))) {
      rmSync(join(parent, left), { recursive: true, force: true });
    }
  }
  needFree(parent, bytes ?? lastSize(parent) * 1.1, fewer(parent));
  const directory = join(parent, `${MAKING}${name}`);
  mkdirSync(directory, { mode: 0o700 });
  open.add(directory);
  return {
    directory,
    finish: () => {
      syncDirectory(directory);
      renameSync(directory, join(parent, name));
      open.delete(directory);
      syncDirectory(parent);
    },
    abandon: () => {
      rmSync(directory, { recursive: true, force: true });
      open.delete(directory);
    },
  };
}

/**
 * Removes a backup from `parent` in one step: what a killed process leaves of it has a temporary name that starts with `prefix`.
 */
export function removeBackup(
  parent: string,
  name: string,
  prefix = MAKING,
): void {
  const leaving = join(parent, `${prefix}removed-${name}`);
  rmSync(leaving, { recursive: true, force: true });
  renameSync(join(parent, name), leaving);
  rmSync(leaving, { recursive: true, force: true });
}

function lastSize(parent: string): number {
  const newest = newestBackup(parent, Date.now());
  return newest === undefined ? 0 : sizeOf(join(parent, newest));
}

const fewer = (parent: string): string =>
  `keep fewer backups (\`jobs: ${basename(parent)}_backup: keep\`)`;

/** Throws a Failure if a disk has no room for so many bytes plus a reserve. `advice` is an alternative to freeing space. */
export function needFree(
  directory: string,
  bytes: number,
  advice: string,
): void {
  const needed = MIN_FREE_BYTES + bytes;
  const free = freeBytesOf(directory);
  if (free < needed) {
    throw new Failure(
      `the disk of ${directory} has ${sizeWords(free)} left; a backup needs about ${sizeWords(needed)}: free some space, or ${advice}.`,
    );
  }
}

function checkLeft(making: string): void {
  const parent = dirname(making);
  const free = freeBytesOf(parent);
  if (free < MIN_LEFT_BYTES) {
    throw new Failure(
      `the disk of ${parent} has only ${sizeWords(free)} left, so the backup was stopped: free some space, or ${fewer(parent)}.`,
    );
  }
}

/** Bytes of all its files. */
export function sizeOf(backup: string): number {
  return sum(
    readdirSync(backup).map((name) => statSync(join(backup, name)).size),
  );
}

/** Compresses a stream into a file that is on the disk when this resolves. `onBytes` gets the number of uncompressed bytes. */
export async function writeCompressed(
  directory: string,
  name: string,
  content: Readable,
  signal: AbortSignal,
  onBytes: (bytes: number) => void = () => {},
): Promise<BackupFile> {
  const path = join(directory, name);
  const hash = createHash("sha256");
  let bytes = 0;
  let checked = 0;
  await pipeline(
    content,
    watching(({ length }) => onBytes(length)),
    // Backups are rarely read and are written while calls are served: the fast level takes 10 % more space.
    createGzip({ level: constants.Z_BEST_SPEED }),
    watching((chunk) => {
      bytes += chunk.length;
      hash.update(chunk);
      if (bytes - checked >= CHECKED_BYTES) {
        checked = bytes;
        checkLeft(directory);
      }
    }),
    createWriteStream(path, { flags: "wx", mode: 0o600, flush: true }),
    { signal },
  );
  return { name, bytes, sha256: hash.digest("hex") };
}

/** The decompressed content of a file of a backup. */
export function readCompressed(backup: string, name: string): Readable {
  const packed = createReadStream(join(backup, name));
  const unpacked = createGunzip();
  packed.once("error", (error) => unpacked.destroy(error));
  unpacked.once("close", () => packed.destroy());
  return packed.pipe(unpacked);
}

/** Reads every file, or those of the names, and compares it with the manifest. Throws a Failure with the first difference. */
export async function verifyFiles(
  backup: string,
  signal: AbortSignal,
  onProgress: (text: string, done: number) => void = () => {},
  names?: ReadonlySet<string>,
): Promise<void> {
  const files = readManifest(backup).files.filter(
    ({ name }) => names?.has(name) !== false,
  );
  const all = files.reduce((sum, { bytes }) => sum + bytes, 0);
  let bytesRead = 0;
  for (const file of files) {
    onProgress(`reading ${file.name}`, all === 0 ? 1 : bytesRead / all);
    requireSound(backup, file, await problemOf(backup, file, signal));
    bytesRead += file.bytes;
  }
}

/** Quick, as it reads no contents. Throws a Failure if a file of a backup is missing or has another size than in its manifest. */
export function requireFiles(
  backup: string,
  files: readonly BackupFile[],
): void {
  for (const file of files) {
    requireSound(backup, file, sizeProblemOf(backup, file));
  }
}

function requireSound(
  backup: string,
  { name }: BackupFile,
  problem: string | undefined,
): void {
  if (problem !== undefined) {
    throw new Failure(
      `${join(backup, name)} ${problem}: use another backup, or create one (\`hearth backup run\`), and check the disk.`,
    );
  }
}

/** Whether a file of a backup is unchanged. */
export async function isIntact(
  backup: string,
  file: BackupFile,
  signal: AbortSignal,
): Promise<boolean> {
  return (await problemOf(backup, file, signal)) === undefined;
}

function sizeProblemOf(
  backup: string,
  { name, bytes }: BackupFile,
): string | undefined {
  const size = statSync(join(backup, name), { throwIfNoEntry: false })?.size;
  if (size === undefined) {
    return "is missing";
  }
  return size === bytes ? undefined : `has ${size} bytes instead of ${bytes}`;
}

async function problemOf(
  backup: string,
  file: BackupFile,
  signal: AbortSignal,
): Promise<string | undefined> {
  const problem = sizeProblemOf(backup, file);
  if (problem !== undefined) {
    return problem;
  }
  const { sha256 } = await describeFile(join(backup, file.name), signal);
  return sha256 === file.sha256
    ? undefined
    : "has changed since it was written (its checksum differs)";
}

/** A stored file as manifests describe it. */
export async function describeFile(
  path: string,
  signal?: AbortSignal,
): Promise<BackupFile> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash, { signal });
  return {
    name: basename(path),
    bytes: statSync(path).size,
    sha256: hash.digest("hex"),
  };
}

/** Passes a stream through and reports each chunk. */
export function watching(hear: (chunk: Buffer) => void): Transform {
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      try {
        hear(chunk);
      } catch (error) {
        done(error as Error);
        return;
      }
      done(null, chunk);
    },
  });
}
