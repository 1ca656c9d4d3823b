import { randomBytes } from "node:crypto";
import { DatabaseSync } from "node:sqlite";

/** Kept in the file; a newer program refuses a file of a version it does not know. */
const SCHEMA_VERSION = 1;

const schema = `
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

/** Opens the file for writing, making it first when it is new. Throws when it is damaged or of a newer version. */
export function openWriter(
  file: string,
  instanceStartTime: string,
): DatabaseSync {
  const database = new DatabaseSync(file);
  database.exec(`
    PRAGMA page_size = 8192;
    PRAGMA auto_vacuum = INCREMENTAL;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA busy_timeout = 5000;
    PRAGMA cache_size = -8192;
  `);
  const version = database.prepare("PRAGMA user_version").get()?.user_version;
  if (version === 0) create(database, instanceStartTime);
  else if (version !== SCHEMA_VERSION) {
    throw new Error(
      `it was written by a newer version of Hearth (schema ${String(version)}, this one knows ${SCHEMA_VERSION}); start that version`,
    );
  }
  return database;
}

/** A second connection of the same thread: it sees committed writes only, so reads go on while a large write is under way. */
export function openReader(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { readOnly: true });
  database.exec("PRAGMA busy_timeout = 5000; PRAGMA cache_size = -8192;");
  return database;
}

function create(database: DatabaseSync, instanceStartTime: string): void {
  database.exec("BEGIN IMMEDIATE");
  database.exec(schema);
  const insert = database.prepare("INSERT INTO properties VALUES (?, ?)");
  insert.run("instance_start_time", instanceStartTime);
  // Part of every sequence token: a token of another database, or of a former life of this one, is told apart by it.
  insert.run("instance_id", randomBytes(16).toString("hex"));
  insert.run(
    "security",
    '{"members":{"roles":["_admin"]},"admins":{"roles":["_admin"]}}',
  );
  insert.run("revs_limit", "1000");
  database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
  database.exec("COMMIT");
}
