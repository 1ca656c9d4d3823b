import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { isFullDisk } from "./refusal.ts";
import { writeDurably } from "../core/durable-file.ts";

/** The places within the data directory. */
export interface DataDirectory {
  readonly databases: string;
  readonly spool: string;
  /** Lets another process use the directory. */
  readonly release: () => void;
}

/** Makes the data directory usable and keeps other notes stores out of it. Throws one sentence. */
export function claimDataDirectory(directory: string): DataDirectory {
  const databases = join(directory, "databases");
  const spool = join(directory, "spool");
  try {
    for (const each of [directory, databases, spool]) {
      mkdirSync(each, { recursive: true, mode: 0o700 });
    }
    checkWritable(directory);
  } catch (failure) {
    throw new Error(directoryFailure(directory, failure));
  }
  const release = lock(directory);
  try {
    // What an earlier process received but could not store was never acknowledged. One that still runs would miss it.
    for (const file of readdirSync(spool)) {
      rmSync(join(spool, file));
    }
  } catch (failure) {
    release();
    throw new Error(directoryFailure(directory, failure));
  }
  return { databases, spool, release };
}

/** A full disk is no reason to refuse: what is there can be read, and there may be room later. */
function checkWritable(directory: string): void {
  try {
    writeDurably(join(directory, "written-at-start"), `${process.pid}\n`);
  } catch (failure) {
    if (!isFullDisk(failure)) {
      throw failure;
    }
  }
}

/** One sentence on why the directory cannot be used. */
export function directoryFailure(directory: string, failure: unknown): string {
  const { code, message } = failure as NodeJS.ErrnoException;
  switch (code) {
    case "ENOSPC":
      return `the disk that holds ${directory} is full; free some space and start again`;
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return `the data directory ${directory} is not writable for this user; change its owner or set NOTES_DIR to another one`;
    case "ENOTDIR":
    case "EEXIST":
      return `the data directory ${directory} is no directory; set NOTES_DIR to another one`;
    default:
      return `the data directory ${directory} cannot be used: ${message}`;
  }
}

// An SQLite lock: the system gives it up with the process, however that ends.
function lock(directory: string): () => void {
  const file = new DatabaseSync(join(directory, "lock.sqlite"));
  try {
    // Nothing is ever written, so the lock works on a full disk, too.
    file.exec(
      "PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE",
    );
  } catch {
    file.close();
    throw new Error(
      `another notes store is already using the data directory ${directory}; stop it, or set NOTES_DIR to another one`,
    );
  }
  return () => file.close();
}
