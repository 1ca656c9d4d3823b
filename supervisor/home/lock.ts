import { rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { isDamage, refuseDirectory } from "../history/sqlite-file.ts";

/**
 * Locks a home for one supervisor. The kernel releases SQLite's file lock when the process ends, however it ends. Returns
 * undefined if another supervisor has the lock.
 */
export function lockHome(
  path: string,
): { readonly release: () => void } | undefined {
  let db: DatabaseSync;
  try {
    db = holdFile(path);
  } catch (error) {
    if (error instanceof Error && /locked|busy/.test(error.message)) {
      return undefined;
    }
    if (!isDamage(error)) {
      throw error;
    }
    // The file has no content: a new one serves the same purpose.
    rmSync(path, { force: true, recursive: true });
    db = holdFile(path);
  }
  return { release: () => db.close() };
}

function holdFile(path: string): DatabaseSync {
  refuseDirectory(path);
  const db = new DatabaseSync(path);
  try {
    // Without a journal file, nothing needs to be written on a full disk.
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
