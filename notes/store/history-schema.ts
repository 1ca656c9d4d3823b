import type { DatabaseSync } from "node:sqlite";

/**
 * `history` says from when to when each version of a note was current (`until` is null while it is), and holds the body once
 * compaction has taken it from `revisions`. Of chunks, which never change, only those that were deleted are in it.
 *
 * Only additions, so that an earlier release can still open the file. Such a one writes no history, which `recorded_seq` shows:
 * it then differs from `update_seq`.
 */
const additions = `
CREATE TABLE history (
  document INTEGER NOT NULL,
  rev TEXT NOT NULL,
  type TEXT NOT NULL,
  size INTEGER NOT NULL,
  since INTEGER NOT NULL,
  until INTEGER,
  body BLOB
);
CREATE UNIQUE INDEX history_by_rev ON history (document, rev);
CREATE INDEX history_by_end ON history (until, size) WHERE until IS NOT NULL;
ALTER TABLE totals ADD COLUMN recorded_seq INTEGER;
INSERT INTO properties VALUES ('history_from', '0');
`;

/** Adds the history to a database file that has none yet; `now` in milliseconds since 1970. */
export function prepareHistory(database: DatabaseSync, now: number): void {
  const has = database
    .prepare("SELECT 1 FROM sqlite_schema WHERE name = 'history'")
    .get();
  const row =
    has &&
    database.prepare("SELECT update_seq, recorded_seq FROM totals").get();
  if (row !== undefined && row.update_seq === row.recorded_seq) return;
  database.exec("BEGIN IMMEDIATE");
  if (has === undefined) database.exec(additions);
  database
    .prepare("UPDATE properties SET value = ? WHERE name = 'history_from'")
    .run(String(now));
  database.exec("UPDATE totals SET recorded_seq = update_seq");
  database.exec("COMMIT");
}
