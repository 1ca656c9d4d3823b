import { randomBytes } from "node:crypto";
import { existsSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { NOTES_SCHEMA_VERSION } from "../../core/notes-schema.ts";
import { Damage, Refusal } from "../refusal.ts";
import { prepareChecksums } from "./checksum.ts";
import { prepareCollection, standInCollection } from "./collect-schema.ts";
import { prepareHistory, standInHistory } from "./history-schema.ts";

const BUSY_TIMEOUT_MS = 5000;

const SCHEMA = `
CREATE TABLE properties (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE totals (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  update_seq INTEGER NOT NULL,
  documents INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  live_bytes INTEGER NOT NULL,
  stale_bytes INTEGER NOT NULL
);
INSERT INTO totals VALUES (1, 0, 0, 0, 0, 0);
CREATE TABLE documents (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  seq INTEGER NOT NULL,
  winner TEXT NOT NULL,
  deleted INTEGER NOT NULL,
  conflicts INTEGER NOT NULL,
  tree TEXT NOT NULL
);
CREATE UNIQUE INDEX documents_by_seq ON documents (seq);
CREATE INDEX documents_live ON documents (id) WHERE deleted = 0;
CREATE INDEX documents_conflicted ON documents (id) WHERE conflicts > 0;
CREATE TABLE revisions (
  document INTEGER NOT NULL,
  rev TEXT NOT NULL,
  leaf INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  type TEXT,
  size INTEGER NOT NULL,
  body BLOB NOT NULL
);
CREATE UNIQUE INDEX revisions_by_rev ON revisions (document, rev);
CREATE INDEX revisions_stale ON revisions (document) WHERE leaf = 0;
CREATE TABLE local_documents (id TEXT PRIMARY KEY, rev INTEGER NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
`;

/** Opens the file for writing, creating it first when it is new. Throws when it is damaged or of a newer version. */
export function openWriter(
  file: string,
  instanceStartTime: string,
): DatabaseSync {
  if (!existsSync(file)) {
    createFile(file, instanceStartTime);
  }
  // Checked before the first setting is made: `journal_mode` is written to the file.
  const database = configure(checkVersion(openFile(file)));
  try {
    prepareHistory(database, Date.now());
    prepareCollection(database);
    prepareChecksums(database);
    return database;
  } catch (failure) {
    database.close();
    throw failure;
  }
}

/** The only connection to an existing file: without the index of the write-ahead log, for which a full disk has no space. */
export function openOnFullDisk(file: string): DatabaseSync {
  const database = new DatabaseSync(file);
  // https://www.sqlite.org/wal.html#use_of_wal_without_shared_memory
  database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -8192;");
  checkVersion(database);
  try {
    standInHistory(database, Date.now());
    standInCollection(database);
    return database;
  } catch (failure) {
    database.close();
    throw failure;
  }
}

function checkVersion(database: DatabaseSync): DatabaseSync {
  try {
    const version = versionOf(database);
    if (version === NOTES_SCHEMA_VERSION) {
      return database;
    }
    if (version === 0) {
      // SQLite itself takes an emptied file for a new one.
      throw new Damage(
        "it contains no notes: the file was emptied, or its creation was interrupted",
      );
    }
    throw new Refusal(
      "newer_version",
      `The database was written by a newer version of Hearth (schema ${String(version)}, supported: ${NOTES_SCHEMA_VERSION}). Start that version.`,
    );
  } catch (failure) {
    database.close();
    throw failure;
  }
}

/** The creation of a file with this suffix was never acknowledged. */
export const UNFINISHED = "~";

/** Creates a file under another name until it is complete, so that a full disk or a kill leaves no unusable database. */
function createFile(file: string, instanceStartTime: string): void {
  const next = file + UNFINISHED;
  const parts = [
    next,
    `${next}-wal`,
    `${next}-shm`,
    `${next}-journal`,
    // A log that an interrupted removal left behind would be replayed into the new file.
    `${file}-wal`,
    `${file}-shm`,
  ];
  const removeParts = (): void => {
    for (const part of parts) {
      rmSync(part, { force: true });
    }
  };
  removeParts();
  try {
    const database = configure(openFile(next));
    try {
      create(database, instanceStartTime);
      // Only the main file is renamed, so the write-ahead log is merged into it first.
      database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } finally {
      database.close();
    }
    renameSync(next, file);
  } catch (failure) {
    removeParts();
    throw failure;
  }
}

function versionOf(database: DatabaseSync): unknown {
  return database.prepare("PRAGMA user_version").get()?.user_version;
}

const openFile = (file: string): DatabaseSync =>
  new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });

function configure(database: DatabaseSync): DatabaseSync {
  try {
    database.exec(`
      PRAGMA page_size = 8192;
      PRAGMA auto_vacuum = INCREMENTAL;
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA journal_size_limit = 67108864;
      PRAGMA cache_size = -8192;
    `);
    return database;
  } catch (failure) {
    database.close();
    throw failure;
  }
}

/** A second connection of the same thread: it sees only committed writes, so reads run during a large write. */
export function openReader(file: string): DatabaseSync {
  const database = new DatabaseSync(file, {
    readOnly: true,
    timeout: BUSY_TIMEOUT_MS,
  });
  database.exec("PRAGMA cache_size = -8192;");
  return database;
}

function create(database: DatabaseSync, instanceStartTime: string): void {
  database.exec("BEGIN IMMEDIATE");
  database.exec(SCHEMA);
  const insert = database.prepare("INSERT INTO properties VALUES (?, ?)");
  insert.run("instance_start_time", instanceStartTime);
  // Part of every sequence token: identifies tokens of another database, or of this one before it was recreated.
  insert.run("instance_id", randomBytes(16).toString("hex"));
  insert.run(
    "security",
    '{"members":{"roles":["_admin"]},"admins":{"roles":["_admin"]}}',
  );
  insert.run("revs_limit", "1000");
  database.exec(`PRAGMA user_version = ${NOTES_SCHEMA_VERSION}`);
  database.exec("COMMIT");
}
