import type { DatabaseSync } from "node:sqlite";
import { isFullDisk } from "../../core/failure.ts";

/** Days of check results. */
const RESERVE_BYTES = 4 * 1024 * 1024;

/**
 * Leaves free pages in the history file, and a write-ahead log as large: on a full disk the history is written into them, and
 * no other program can take them. Does nothing where the disk has no room for them.
 */
export function keepHistoryReserve(db: DatabaseSync): void {
  try {
    // The checkpoint writes the pages before they are free: a file that was only extended may have holes.
    db.exec(`
      DROP TABLE IF EXISTS reserve;
      BEGIN;
      CREATE TABLE reserve (room BLOB);
      INSERT INTO reserve VALUES (zeroblob(${RESERVE_BYTES}));
      COMMIT;
      PRAGMA wal_checkpoint;
      DROP TABLE reserve`);
  } catch (error) {
    if (db.isTransaction) {
      db.exec("ROLLBACK");
    }
    if (!isFullDisk(error)) {
      throw error;
    }
  }
}
