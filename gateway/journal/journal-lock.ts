import fs from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";

/**
 * Locks the journal's directory for this process; throws a sentence naming the process that has it.
 *
 * The lock is the kernel's (an exclusive SQLite transaction on an empty file, never written): it is released when its
 * process ends in any way, so there are no stale locks. A file with a process id could not distinguish two
 * containers on one volume, since both see themselves as process 1.
 */
export function lockJournal(directory: string): { release(): void } {
  const lock = new DatabaseSync(path.join(directory, "lock"));
  const ownerFile = path.join(directory, "owner");
  try {
    lock.exec("PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE");
  } catch (error) {
    lock.close();
    if (!isBusy(error)) {
      throw error;
    }
    throw new Error(
      `The journal ${directory} is in use by ${describeOwner(ownerFile)}: stop that gateway, or set HEARTH_JOURNAL_DIR to another directory.`,
      { cause: error },
    );
  }
  // Only for the message above; the lock works on a full disk too.
  try {
    fs.writeFileSync(ownerFile, `${process.pid}\n`);
  } catch {
    // The message then names "another process".
  }
  return { release: () => lock.close() };
}

function isBusy(error: unknown): boolean {
  const SQLITE_BUSY = 5;
  return (
    error instanceof Error &&
    "errcode" in error &&
    error.errcode === SQLITE_BUSY
  );
}

function describeOwner(ownerFile: string): string {
  try {
    const pid = fs.readFileSync(ownerFile, "utf8").trim();
    return pid === "" ? "another process" : `process ${pid}`;
  } catch {
    return "another process";
  }
}
