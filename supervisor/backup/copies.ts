import { createHash } from "node:crypto";
import {
  chmodSync,
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
import { describeFile, removeBackup, sizeOf } from "./backup-files.ts";
import { copiesToKeep } from "./backup-retention.ts";
import { isAhead, listBackups, momentOf } from "./manifest.ts";
import { sum } from "../../core/sum.ts";

const COPY_NAME = "copy.json";

/** File names that a sender may use. */
export const copyFileName = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/)
  .refine((name) => name !== COPY_NAME && !name.endsWith(".part"));

/** One encrypted file on the other host. */
export const copyFile = z
  .strictObject({
    name: copyFileName,
    bytes: z.number().int().nonnegative(),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
  })
  .readonly();
export type CopyFile = z.output<typeof copyFile>;

/** Sent to complete a copy, and stored with its files. */
export const copySchema = z.strictObject({
  /** Identifies the key that decrypts it. */
  keyId: z.string().regex(/^[0-9a-f]{8}$/),
  files: z.array(copyFile).min(1).readonly(),
});
type Copy = Readonly<z.output<typeof copySchema>>;

const ARRIVING = ".arriving-";
const MIN_FREE_BYTES = 1e9;

/** A complete copy is never changed: the sender may be compromised. */
export class CopyIsComplete extends Failure {}

type ListedCopy = Copy & {
  readonly kind: string;
  readonly name: string;
  readonly bytes: number;
};

export interface CopyPlace {
  readonly kind: string;
  readonly name: string;
  readonly keyId: string;
}

interface CopyRules {
  /** Maximum bytes of all copies. */
  readonly most: number;
  /** Which copies of a kind are kept when another one is complete. */
  readonly keep: (kind: string) => KeepRule;
  readonly timeZone: string;
  readonly now?: () => number;
}

/** Encrypted copies of the other host's backups: `copies/<kind>/<name>/`, and incomplete ones. */
export class Copies {
  readonly #directory: string;
  readonly #rules: CopyRules;
  readonly #now: () => number;
  /** Counts of files being received, by directory. */
  readonly #receiving = new Map<string, number>();

  constructor(directory: string, rules: CopyRules) {
    this.#directory = directory;
    this.#rules = rules;
    this.#now = rules.now ?? Date.now;
  }

  list(): readonly ListedCopy[] {
    return directoriesIn(this.#directory).flatMap((kind) =>
      listBackups(this.#kindDirectory(kind)).map((name) => {
        const copy = join(this.#kindDirectory(kind), name);
        return { kind, name, bytes: sizeOf(copy), ...readCopy(copy) };
      }),
    );
  }

  /** Throws a Failure if there is no room for so many bytes. */
  needRoom(bytes: number): void {
    const { most } = this.#rules;
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    if (bytes > roomIn(this.#directory, most)) {
      throw tooMuch(most);
    }
  }

  /** The files of an incomplete copy that have been received. */
  async arrived(place: CopyPlace): Promise<readonly CopyFile[]> {
    const target = this.#arrivingAt(place);
    if (!existsSync(target)) {
      return [];
    }
    const names = readdirSync(target).filter((name) => !name.endsWith(".part"));
    return Promise.all(names.map((name) => describeFile(join(target, name))));
  }

  /**
   * Stores one file, which gets its name only when it is on the disk. Throws a Failure if there is no room, CopyIsComplete if
   * the copy is complete.
   */
  async store(
    place: CopyPlace,
    file: string,
    content: Readable,
  ): Promise<CopyFile> {
    const target = this.#arrivingAt(place);
    const kindDirectory = this.#kindDirectory(place.kind);
    needIncomplete(kindDirectory, place.name);
    needPast(place.name, this.#now());
    removeOtherArrivals(kindDirectory, target);
    mkdirSync(target, { recursive: true, mode: 0o700 });
    const part = join(target, `${file}.part`);
    this.#countReceiving(target, 1);
    const received = await this.#receive(content, part).finally(() =>
      this.#countReceiving(target, -1),
    );
    renameSync(part, join(target, file));
    return { name: file, ...received };
  }

  /** Completes a copy, which is immutable from then on. Throws a Failure if the received files differ. */
  async complete(place: CopyPlace, copy: Copy): Promise<void> {
    const { keep, timeZone } = this.#rules;
    const target = this.#arrivingAt(place);
    const kindDirectory = this.#kindDirectory(place.kind);
    const final = join(kindDirectory, place.name);
    if (isSame(final, copy)) {
      return;
    }
    needIncomplete(kindDirectory, place.name);
    for (const { name, bytes } of copy.files) {
      const found = statSync(join(target, name), { throwIfNoEntry: false });
      if ((this.#receiving.get(target) ?? 0) > 0 || found?.size !== bytes) {
        throw new Failure(`${name} is incomplete: send the copy again.`);
      }
    }
    seal(target, copy, this.#now());
    renameSync(target, final);
    syncDirectory(kindDirectory);
    removeOldCopies(kindDirectory, keep(place.kind), timeZone, this.#now());
  }

  /** The path of a file of a complete copy. */
  file(kind: string, name: string, file: string): string | undefined {
    if (momentOf(name) === undefined) {
      return undefined;
    }
    const path = join(this.#kindDirectory(kind), name, file);
    return existsSync(path) ? path : undefined;
  }

  #kindDirectory(kind: string): string {
    return join(this.#directory, kind);
  }

  #arrivingAt({ kind, name, keyId }: CopyPlace): string {
    return join(this.#kindDirectory(kind), `${ARRIVING}${name}-${keyId}`);
  }

  #countReceiving(target: string, change: number): void {
    this.#receiving.set(target, (this.#receiving.get(target) ?? 0) + change);
  }

  async #receive(
    content: Readable,
    part: string,
  ): Promise<Omit<CopyFile, "name">> {
    const { most } = this.#rules;
    const room = roomIn(this.#directory, most);
    const hash = createHash("sha256");
    let bytes = 0;
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
    ).catch((error: unknown) => {
      rmSync(part, { force: true });
      throw error;
    });
    return { bytes, sha256: hash.digest("hex") };
  }
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
      `the copy ${name} is complete on this host and cannot be changed: take another backup.`,
    );
  }
}

/** The newest copy is restored by default: a date in the future must not hide later copies. */
function needPast(name: string, now: number): void {
  if (isAhead(momentOf(name) ?? 0, now)) {
    throw new Failure(
      `the date of backup ${name} is in the future by the clock of this host (${new Date(now).toISOString()}): set the clocks of both hosts.`,
    );
  }
}

/** Removes other files and makes the copy read-only. The modification time of copy.json is the time of completion. */
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
      removeBackup(kindDirectory, name, ARRIVING);
    }
  }
}

function readCopy(copy: string): Copy {
  return copySchema.parse(
    JSON.parse(readFileSync(join(copy, COPY_NAME), "utf8")),
  );
}

/** Older incomplete copies are removed. */
function removeOtherArrivals(directory: string, target: string): void {
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
  const used = sum(
    directoriesIn(directory).flatMap((kind) =>
      readdirSync(join(directory, kind)).map((name) =>
        sizeOf(join(directory, kind, name)),
      ),
    ),
  );
  const { bavail, bsize } = statfsSync(directory);
  return Math.min(most - used, bavail * bsize - MIN_FREE_BYTES);
}

function tooMuch(most: number): Failure {
  return new Failure(
    `this host stores at most ${Math.round(most / 1e6)} MB of copies and keeps 1 GB of its disk free: raise the limit (\`jobs: backup_copy: accept_at_most\`), or keep fewer backups.`,
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
