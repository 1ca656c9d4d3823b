import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { openDatabaseFile } from "./open-database.ts";

export interface FileLock {
  readonly release: () => void;
}

/** The garbage collector closes a file that nothing refers to, which would release its lock. */
const held = new Set<DatabaseSync>();

const SQLITE_BUSY = 5;

/**
 * Locks a file for this process; undefined if another process has it. Throws if the file cannot be opened or is not the empty
 * database that it was created as.
 *
 * The lock is the kernel's (an exclusive SQLite transaction; nothing is written, so it works on a full disk): it ends with its
 * process, however that ends, so no lock is ever stale. A file with a process id could not distinguish two containers on one
 * volume, since both see themselves as process 1.
 */
export function lockFile(path: string): FileLock | undefined {
  const file = openDatabaseFile(path);
  try {
    file.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    file.close();
    if (isBusy(error)) {
      return undefined;
    }
    throw error;
  }
  held.add(file);
  return {
    release: () => {
      if (held.delete(file)) {
        file.close();
      }
    },
  };
}

const RETRY_MS = 100;

/** The same once the process that has it has released it; undefined if that takes longer than `withinMs`. */
export async function waitForLock(
  path: string,
  withinMs: number,
): Promise<FileLock | undefined> {
  for (let waited = 0; waited < withinMs; waited += RETRY_MS) {
    const lock = lockFile(path);
    if (lock !== undefined) {
      return lock;
    }
    await sleep(RETRY_MS);
  }
  return undefined;
}

function isBusy(error: unknown): boolean {
  return (
    error instanceof Error &&
    "errcode" in error &&
    error.errcode === SQLITE_BUSY
  );
}
