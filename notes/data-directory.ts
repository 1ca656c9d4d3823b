import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isFullDisk } from "../core/failure.ts";
import { writeDurably } from "../core/durable-file.ts";
import { lockFile, type FileLock } from "../core/file-lock.ts";
import { makeDirectory } from "../core/make-directory.ts";

/** The paths within the data directory. */
export interface DataDirectory {
  readonly databases: string;
  readonly spool: string;
  /** Releases the directory for another process. */
  readonly release: () => void;
}

/** Prepares the data directory and locks it against other notes stores. Throws an error of one sentence. */
export function claimDataDirectory(directory: string): DataDirectory {
  const databases = join(directory, "databases");
  const spool = join(directory, "spool");
  try {
    for (const each of [directory, databases, spool]) {
      makeDirectory(each, 0o700);
    }
    checkWritable(directory);
  } catch (failure) {
    throw new Error(directoryFailure(directory, failure));
  }
  const lock = lockDirectory(directory);
  try {
    // Bodies that a previous process received but did not store were never acknowledged. A process that still runs would need them, so the lock comes first.
    for (const file of readdirSync(spool)) {
      rmSync(join(spool, file));
    }
  } catch (failure) {
    lock.release();
    throw new Error(directoryFailure(directory, failure));
  }
  return { databases, spool, release: lock.release };
}

/** A full disk does not prevent the start: existing notes can be read, and space may be freed later. */
function checkWritable(directory: string): void {
  try {
    writeDurably(join(directory, "written-at-start"), `${process.pid}\n`);
  } catch (failure) {
    if (!isFullDisk(failure)) {
      throw failure;
    }
  }
}

/** Explains in one sentence why the directory cannot be used. */
export function directoryFailure(directory: string, failure: unknown): string {
  const { code, message } = failure as NodeJS.ErrnoException;
  switch (code) {
    case "ENOSPC":
      return `the disk that holds ${directory} is full; free some space and start again`;
    case "EROFS":
      return `the file system of the data directory ${directory} is read-only; check the disk (dmesg), mount it writable, or set NOTES_DIR to another directory`;
    case "EACCES":
    case "EPERM":
      return `the data directory ${directory} is not writable by this user; change its owner or set NOTES_DIR to another directory`;
    case "ENOTDIR":
    case "EEXIST":
      return `the data directory ${directory} is not a directory; set NOTES_DIR to another path`;
    default:
      return `the data directory ${directory} cannot be used: ${message}`;
  }
}

function lockDirectory(directory: string): FileLock {
  const lock = lockFile(join(directory, "lock.sqlite"));
  if (lock === undefined) {
    throw new Error(
      `another notes store is already using the data directory ${directory}; stop it, or set NOTES_DIR to another directory`,
    );
  }
  return lock;
}
