import { closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** Opens a database file of SQLite. Throws the system's error where the file cannot be opened: SQLite's names neither file nor cause. */
export function openDatabaseFile(
  path: string,
  { readOnly = false }: { readonly readOnly?: boolean } = {},
): DatabaseSync {
  try {
    return new DatabaseSync(path, { readOnly });
  } catch (error) {
    closeSync(openSync(path, readOnly ? "r" : "a"));
    throw error;
  }
}
