import { rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { isDamage, refuseDirectory } from "../history/sqlite-file.ts";

/**
 * Holds a home for one supervisor. SQLite's file lock is the kernel's: it goes when the process does, however it ends.
 * Returns undefined when another supervisor holds it.
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
    // The file holds nothing: a new one does as well.
    rmSync(path, { force: true, recursive: true });
    db = holdFile(path);
  }
  return { release: () => db.close() };
}

function holdFile(path: string): DatabaseSync {
  refuseDirectory(path);
  const db = new DatabaseSync(path);
  try {
    // Without a journal file there is nothing that a full disk could keep from being written.
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
