import type { DatabaseSync } from "node:sqlite";

/**
 * `unused_chunks` records since when no stored version references a chunk, the sequence of the chunk then, and the newest
 * change of a note at that time. `collected_chunks` lists removed chunks.
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

/** Adds the tables of the chunk collection to a database file. */
export function prepareCollection(database: DatabaseSync): void {
  if (isPrepared(database)) {
    return;
  }
  database.exec(`BEGIN IMMEDIATE; ${tables("TABLE")} COMMIT;`);
}

/** Creates the tables in memory when a full disk has no space for `prepareCollection`. */
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
