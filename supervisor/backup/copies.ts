import { createHash } from "node:crypto";
import {
  chmodSync,
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  utimesSync,
} from "node:fs";
import { join } from "node:path";
import { Transform, type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { syncDirectory, writeDurably } from "../../core/durable-file.ts";
import { Failure } from "../../core/failure.ts";
import type { KeepRule } from "../jobs/config.ts";
import { sizeOf } from "./backup-files.ts";
import { copiesToKeep } from "./keep.ts";
import { listBackups, momentOf } from "./manifest.ts";

const COPY_NAME = "copy.json";

/** Names that a sender may give to files. */
export const copyFileName = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/)
  .refine((name) => name !== COPY_NAME && !name.endsWith(".part"));

/** One encrypted file as it lies on the other host. */
export const copyFile = z
  .strictObject({
    name: copyFileName,
    bytes: z.number().int().nonnegative(),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
  })
  .readonly();
export type CopyFile = z.output<typeof copyFile>;

/** What the sender says to close a copy, and what is kept beside its files. */
export const copySchema = z.strictObject({
  /** Which key opens it. */
  keyId: z.string().regex(/^[0-9a-f]{8}$/),
  files: z.array(copyFile).min(1).readonly(),
});
export type Copy = Readonly<z.output<typeof copySchema>>;

const ARRIVING = ".arriving-";
const LEAST_FREE_BYTES = 1e9;
/** Clocks of two hosts differ less. */
const MOST_AHEAD_MS = 86_400_000;

/** A complete copy is never changed, whoever asks: the sender may have been taken over. */
export class CopyIsComplete extends Failure {}

/** Copies of the other host's backups, which only its key opens: `copies/<kind>/<name>/`, and those that are still arriving. */
export interface Copies {
  readonly list: () => readonly (Copy & {
    readonly kind: string;
    readonly name: string;
    readonly bytes: number;
  })[];
  /** Throws a Failure when there is no room for so many bytes. */
  readonly needRoom: (bytes: number) => void;
  /** Files that arrived whole of a copy that is not complete. */
  readonly arrived: (place: CopyPlace) => Promise<readonly CopyFile[]>;
  /**
   * Stores one file; it has its name only when it is on the disk. Throws a Failure where it would be too much, CopyIsComplete
   * for a copy that is complete.
   */
  readonly store: (
    place: CopyPlace,
    file: string,
    content: Readable,
  ) => Promise<CopyFile>;
  /** Compares with what arrived, and makes the copy complete for good. Throws a Failure when anything differs. */
  readonly complete: (place: CopyPlace, copy: Copy) => Promise<void>;
  /** The path of a file of a complete copy. */
  readonly file: (
    kind: string,
    name: string,
    file: string,
  ) => string | undefined;
}

export interface CopyPlace {
  readonly kind: string;
  readonly name: string;
  readonly keyId: string;
}

export interface CopyRules {
  /** Bytes of all copies together. */
  readonly most: number;
  /** Which copies of a kind stay when another one is complete. */
  readonly keep: (kind: string) => KeepRule;
  readonly timeZone: string;
  readonly now?: () => number;
}

export function openCopies(
  directory: string,
  { most, keep, timeZone, now = Date.now }: CopyRules,
): Copies {
  /** Files that are arriving, by directory. */
  const underway = new Map<string, number>();
  const kindDirectory = (kind: string) => join(directory, kind);
  const arrivingAt = ({ kind, name, keyId }: CopyPlace) =>
    join(kindDirectory(kind), `${ARRIVING}${name}-${keyId}`);

  return {
    list: () =>
      directoriesIn(directory).flatMap((kind) =>
        listBackups(kindDirectory(kind)).map((name) => {
          const copy = join(kindDirectory(kind), name);
          return { kind, name, bytes: sizeOf(copy), ...readCopy(copy) };
        }),
      ),
    needRoom: (bytes) => {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      if (bytes > roomIn(directory, most)) {
        throw tooMuch(most);
      }
    },
    arrived: async (place) => {
      const target = arrivingAt(place);
      if (!existsSync(target)) {
        return [];
      }
      const names = readdirSync(target).filter(
        (name) => !name.endsWith(".part"),
      );
      return Promise.all(names.map((name) => describe(target, name)));
    },
    store: async (place, file, content) => {
      const target = arrivingAt(place);
      needIncomplete(kindDirectory(place.kind), place.name);
      needPast(place.name, now());
      forgetOthers(kindDirectory(place.kind), target);
      mkdirSync(target, { recursive: true, mode: 0o700 });
      const part = join(target, `${file}.part`);
      const room = roomIn(directory, most);
      const hash = createHash("sha256");
      let bytes = 0;
      underway.set(target, (underway.get(target) ?? 0) + 1);
      await pipeline(
        content,
        new Transform({
          transform: (chunk: Buffer, _encoding, done) => {
            bytes += chunk.length;
            hash.update(chunk);
            done(bytes > room ? tooMuch(most) : null, chunk);
          },
        }),
        createWriteStream(part, { mode: 0o600, flush: true }),
      )
        .catch((error: unknown) => {
          rmSync(part, { force: true });
          throw error;
        })
        .finally(() => underway.set(target, (underway.get(target) ?? 1) - 1));
      renameSync(part, join(target, file));
      return { name: file, bytes, sha256: hash.digest("hex") };
    },
    complete: async (place, copy) => {
      const target = arrivingAt(place);
      const final = join(kindDirectory(place.kind), place.name);
      if (isSame(final, copy)) {
        return;
      }
      needIncomplete(kindDirectory(place.kind), place.name);
      for (const file of copy.files) {
        if (
          (underway.get(target) ?? 0) > 0 ||
          statSync(join(target, file.name), { throwIfNoEntry: false })?.size !==
            file.bytes
        ) {
          throw new Failure(
            `${file.name} did not arrive whole: send the copy again.`,
          );
        }
      }
      seal(target, copy, now());
      renameSync(target, final);
      syncDirectory(kindDirectory(place.kind));
      const rule = keep(place.kind);
      removeOldCopies(kindDirectory(place.kind), rule, timeZone, now());
    },
    file: (kind, name, file) => {
      if (momentOf(name) === undefined) {
        return undefined;
      }
      const path = join(kindDirectory(kind), name, file);
      return existsSync(path) ? path : undefined;
    },
  };
}

function isSame(final: string, copy: Copy): boolean {
  return (
    existsSync(final) &&
    JSON.stringify(readCopy(final)) === JSON.stringify(copy)
  );
}

function needIncomplete(kindDirectory: string, name: string): void {
  if (existsSync(join(kindDirectory, name))) {
    throw new CopyIsComplete(
      `this host has all of the copy ${name}, and keeps it as it is: take another backup, which gets a copy of its own.`,
    );
  }
}

/** The newest copy is the one that is restored: none may claim to be it for years. */
function needPast(name: string, now: number): void {
  if ((momentOf(name) ?? 0) > now + MOST_AHEAD_MS) {
    throw new Failure(
      `the backup ${name} is of the future by this host's clock (${new Date(now).toISOString()}): set both hosts' clocks.`,
    );
  }
}

/** The copy's own files and no more, which nothing writes to from now on. The time of copy.json is when it was complete. */
function seal(target: string, copy: Copy, now: number): void {
  const names = new Set(copy.files.map(({ name }) => name));
  for (const name of readdirSync(target)) {
    if (names.has(name)) {
      chmodSync(join(target, name), 0o400);
    } else {
      rmSync(join(target, name), { recursive: true, force: true });
    }
  }
  const description = join(target, COPY_NAME);
  writeDurably(description, `${JSON.stringify(copy)}\n`);
  utimesSync(description, now / 1000, now / 1000);
  chmodSync(description, 0o400);
  syncDirectory(target);
}

function removeOldCopies(
  kindDirectory: string,
  rule: KeepRule,
  timeZone: string,
  now: number,
): void {
  const copies = listBackups(kindDirectory).map((name) => ({
    name,
    at: statSync(join(kindDirectory, name, COPY_NAME)).mtimeMs,
  }));
  const kept = copiesToKeep(copies, rule, timeZone, now);
  for (const { name } of copies) {
    if (!kept.has(name)) {
      rmSync(join(kindDirectory, name), { recursive: true, force: true });
    }
  }
}

async function describe(directory: string, name: string): Promise<CopyFile> {
  const path = join(directory, name);
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return { name, bytes: statSync(path).size, sha256: hash.digest("hex") };
}

function readCopy(copy: string): Copy {
  return copySchema.parse(
    JSON.parse(readFileSync(join(copy, COPY_NAME), "utf8")),
  );
}

/** Only the newest is worth waiting for. */
function forgetOthers(directory: string, target: string): void {
  if (!existsSync(directory)) {
    return;
  }
  for (const name of readdirSync(directory)) {
    if (name.startsWith(ARRIVING) && join(directory, name) !== target) {
      rmSync(join(directory, name), { recursive: true, force: true });
    }
  }
}

function roomIn(directory: string, most: number): number {
  const used = directoriesIn(directory)
    .flatMap((kind) =>
      readdirSync(join(directory, kind)).map((name) =>
        sizeOf(join(directory, kind, name)),
      ),
    )
    .reduce((sum, size) => sum + size, 0);
  const { bavail, bsize } = statfsSync(directory);
  return Math.min(most - used, bavail * bsize - LEAST_FREE_BYTES);
}

function tooMuch(most: number): Failure {
  return new Failure(
    `this host keeps at most ${Math.round(most / 1e6)} MB of copies, and 1 GB of its disk free: give it more room (\`jobs: backup_copy: accept_at_most\`), or keep fewer backups.`,
  );
}

function directoriesIn(directory: string): readonly string[] {
  if (!existsSync(directory)) {
    return [];
  }
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}
