import { existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { isFullDisk, textOf } from "../../core/failure.ts";
import { openDatabaseFile } from "../../core/open-database.ts";

/** Content that SQLite cannot read, unlike a file that is locked, read-only or on a full disk. */
export class DamagedFile extends Error {}

/** https://www.sqlite.org/rescode.html: IOERR_READ, IOERR_SHORT_READ, IOERR_CORRUPTFS; below them CORRUPT and NOTADB. */
const UNREADABLE_CODES = [266, 522, 8458];
const DAMAGED_CODES = [11, 26];

/** Opens a file, even on a full disk, and verifies it. Throws a {@link DamagedFile} or an error of SQLite. */
export function openVerified(
  path: string,
  options: { readonly readOnly?: boolean } = {},
): DatabaseSync {
  refuseDirectory(path);
  if (statSync(path, { throwIfNoEntry: false })?.size === 0) {
    throw new DamagedFile("it is empty");
  }
  try {
    return openAndRead(path, options, "NORMAL");
  } catch (error) {
    if (!isFullDisk(error)) {
      throw error;
    }
    // https://www.sqlite.org/wal.html#use_of_wal_without_shared_memory
    return openAndRead(path, options, "EXCLUSIVE");
  }
}

function openAndRead(
  path: string,
  options: { readonly readOnly?: boolean },
  lockingMode: "NORMAL" | "EXCLUSIVE",
): DatabaseSync {
  const db = openDatabaseFile(path, options);
  try {
    db.exec(`PRAGMA locking_mode = ${lockingMode}`);
    const verdict = Object.values(
      db.prepare("PRAGMA quick_check(1)").get() ?? {},
    )[0];
    if (verdict !== "ok") {
      throw new DamagedFile(String(verdict).split("\n").at(-1));
    }
    return db;
  } catch (error) {
    db.close();
    throw isDamage(error) ? new DamagedFile(textOf(error)) : error;
  }
}

/** SQLite only reports that it cannot open a directory. */
export function refuseDirectory(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) {
    throw new DamagedFile("it is a directory");
  }
}

export function isDamage(error: unknown): boolean {
  if (error instanceof DamagedFile) {
    return true;
  }
  if (typeof error !== "object" || error === null || !("errcode" in error)) {
    return false;
  }
  const code = Number(error.errcode);
  return DAMAGED_CODES.includes(code & 0xff) || UNREADABLE_CODES.includes(code);
}

/** Renames a file and its log, with the time in the name; returns the new path. */
export function moveAside(path: string, now: number): string {
  const time = new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, "");
  let aside = `${path}.damaged-${time}`;
  for (let count = 2; existsSync(aside); count += 1) {
    aside = `${path}.damaged-${time}-${count}`;
  }
  renameSync(path, aside);
  if (existsSync(`${path}-wal`)) {
    renameSync(`${path}-wal`, `${aside}-wal`);
  }
  // Only an index into the log.
  rmSync(`${path}-shm`, { force: true });
  return aside;
}

/** The renamed files of this path that still exist, oldest first. */
export function damagedFiles(path: string): readonly string[] {
  const directory = dirname(path);
  if (!existsSync(directory)) {
    return [];
  }
  return readdirSync(directory)
    .filter((name) => name.startsWith(`${basename(path)}.damaged-`))
    .filter((name) => !name.endsWith("-wal"))
    .toSorted()
    .map((name) => join(directory, name));
}
