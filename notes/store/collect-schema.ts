import type { DatabaseSync } from "node:sqlite";

/**
 * `unused_chunks` says since when no version that the store holds has named a chunk, of which sequence the chunk was then, and
 * the newest change of a note at that time. `collected_chunks` names those that were removed.
 *
 * Only additions, so that an earlier release can still open the file.
 */
const tables = (kind: "TABLE" | "TEMP TABLE"): string => `
CREATE ${kind} unused_chunks (
  document INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  notes_seq INTEGER NOT NULL,
  since INTEGER NOT NULL,
  size INTEGER NOT NULL
);
CREATE ${kind} collected_chunks (id TEXT PRIMARY KEY) WITHOUT ROWID;
`;

/** Adds to a database file what the collection of chunks keeps there. */
export function prepareCollection(database: DatabaseSync): void {
  if (isPrepared(database)) {
    return;
  }
  database.exec(`BEGIN IMMEDIATE; ${tables("TABLE")} COMMIT;`);
}

/** In memory, in place of what `prepareCollection` has no room for on a full disk. */
export function standInCollection(database: DatabaseSync): void {
  if (!isPrepared(database)) {
    database.exec(tables("TEMP TABLE"));
  }
}

function isPrepared(database: DatabaseSync): boolean {
  const found = database
    .prepare("SELECT 1 FROM sqlite_schema WHERE name = 'unused_chunks'")
    .get();
  return found !== undefined;
}
