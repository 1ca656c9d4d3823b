import { DatabaseSync } from "node:sqlite";

/**
 * Holds a home for one supervisor. SQLite's file lock is the kernel's: it goes when the process does, however it ends.
 * Returns undefined when another supervisor holds it.
 */
export function lockHome(
  path: string,
): { readonly release: () => void } | undefined {
  const db = new DatabaseSync(path);
  try {
    db.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    if (error instanceof Error && /locked|busy/.test(error.message))
      return undefined;
    throw error;
  }
  return { release: () => db.close() };
}
