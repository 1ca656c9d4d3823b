import type { DatabaseSync } from "node:sqlite";
import { isFullDisk } from "../../core/failure.ts";

/** Days of check results. */
const RESERVE_BYTES = 4 * 1024 * 1024;

/**
 * Reserves free pages in the history file, and a write-ahead log of the same size: on a full disk, the history is written into
 * them. Does nothing if the disk has no room for them.
 */
export function keepHistoryReserve(db: DatabaseSync): void {
  try {
    // The checkpoint writes the pages before they are freed: a file that was only extended may be sparse.
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
