import type { DatabaseSync } from "node:sqlite";

/**
 * `history` records from when to when each version of a note was current (`until` is null while it is), and its body once
 * compaction has removed it from `revisions`. Of chunks, which never change, it contains only deleted ones.
 *
 * Only additions, so that an earlier release can still open the file. It writes no history, and `recorded_seq` then differs
 * from `update_seq`.
 */
const COLUMNS = `(
  document INTEGER NOT NULL,
  rev TEXT NOT NULL,
  type TEXT NOT NULL,
  size INTEGER NOT NULL,
  since INTEGER NOT NULL,
  until INTEGER,
  body BLOB,
  sum INTEGER
)`;
const additions = `
CREATE TABLE history ${COLUMNS};
CREATE UNIQUE INDEX history_by_rev ON history (document, rev);
CREATE INDEX history_by_end ON history (until, size) WHERE until IS NOT NULL;
ALTER TABLE totals ADD COLUMN recorded_seq INTEGER;
INSERT INTO properties VALUES ('history_from', '0');
`;

/** Adds the history to a database file without one; `now` in milliseconds since 1970. */
export function prepareHistory(database: DatabaseSync, now: number): void {
  const state = stateOf(database);
  if (state === "whole") {
    return;
  }
  database.exec("BEGIN IMMEDIATE");
  if (state === "none") {
    database.exec(additions);
  }
  database
    .prepare("UPDATE properties SET value = ? WHERE name = 'history_from'")
    .run(String(now));
  database.exec("UPDATE totals SET recorded_seq = update_seq");
  database.exec("COMMIT");
}

/** Creates an empty history, starting now, in memory when a full disk has no space for `prepareHistory`. */
export function standInHistory(database: DatabaseSync, now: number): void {
  if (stateOf(database) === "whole") {
    return;
  }
  // Temporary tables take precedence over those of the file: https://www.sqlite.org/lang_naming.html
  database.exec(`
    PRAGMA temp_store = MEMORY;
    CREATE TEMP TABLE history ${COLUMNS};
    CREATE TEMP TABLE properties AS SELECT * FROM main.properties WHERE name <> 'history_from';
  `);
  database
    .prepare("INSERT INTO temp.properties VALUES ('history_from', ?)")
    .run(String(now));
}

function stateOf(database: DatabaseSync): "none" | "interrupted" | "whole" {
  const has = database
    .prepare("SELECT 1 FROM sqlite_schema WHERE name = 'history'")
    .get();
  if (has === undefined) {
    return "none";
  }
  const row = database
    .prepare("SELECT update_seq, recorded_seq FROM totals")
    .get();
  return row?.update_seq === row?.recorded_seq ? "whole" : "interrupted";
}
