import { DatabaseSync } from "node:sqlite";
import { ALARM_TABLES } from "../alerts/alarm-store.ts";
import { CHECK_TABLES, LATENCIES_COLUMN } from "../checks/check-tables.ts";
import { textOf } from "../../core/failure.ts";
import { keepHistoryReserve } from "./reserve.ts";
import { SESSION_TABLES } from "./sessions.ts";
import { INVITATION_TABLES } from "./invitations.ts";
import { PERSONAL_ACTS_INDEX } from "./personal-acts.ts";
import { USER_ID_COLUMN, USER_SESSION_TABLES } from "./user-sessions.ts";
import { ASKED_BY_COLUMN, JOB_TABLES } from "../jobs/job-history.ts";
import { DamagedFile, moveAside, openVerified } from "./sqlite-file.ts";

/** Every transition and every action with its reason, in a file of the supervisor. */
export interface History {
  /** Records a transition of a service. */
  readonly serviceChanged: (
    service: string,
    from: string,
    to: string,
    reason: string | null,
  ) => void;
  /** Records a transition of a check. */
  readonly checkChanged: (
    check: string,
    from: string,
    to: string,
    reason: string | null,
  ) => void;
  /** Records an action on a service. */
  readonly act: (service: string, act: Act, reason: string) => void;
  /** Times of automatic restarts since the last start or restart by an operator (milliseconds since 1970). */
  readonly restartsOf: (service: string) => readonly number[];
  /** Times of healing, as `restartsOf`. */
  readonly healsOf: (service: string) => readonly number[];
  /** Newest first; only of `name`, if given. */
  readonly latest: (limit: number, name?: string) => readonly HistoryEntry[];
  /** The open file, for modules with their own tables. */
  readonly db: DatabaseSync;
  readonly close: () => void;
}

/**
 * restart: automatic after it ended; heal: because of a check; restart-asked: by a person; asked: another action of the
 * operator, described by the reason.
 */
export type Act =
  | "start"
  | "adopt"
  | "stop"
  | "restart"
  | "restart-asked"
  | "heal"
  | "asked"
  | "alarm"
  | "notice"
  | "alarm-over"
  | "supervisor-start"
  | "supervisor-stop";

export interface HistoryEntry {
  readonly at: number;
  readonly kind: "service" | "check" | "act";
  readonly name: string;
  readonly from: string | null;
  readonly to: string;
  readonly reason: string | null;
}

const STEPS: readonly string[] = [
  `CREATE TABLE events (
     id INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('service', 'check', 'act')),
     name TEXT NOT NULL, from_state TEXT, to_state TEXT NOT NULL, reason TEXT
   ) STRICT;
   CREATE INDEX events_by_name ON events (kind, name, id);`,
  CHECK_TABLES,
  JOB_TABLES,
  ALARM_TABLES,
  LATENCIES_COLUMN,
  SESSION_TABLES,
  USER_SESSION_TABLES,
  ASKED_BY_COLUMN,
  USER_ID_COLUMN,
  INVITATION_TABLES,
  PERSONAL_ACTS_INDEX,
];

/**
 * Opens and migrates the history file. A damaged file is renamed and replaced, and `onDamaged` is called with a sentence about
 * it. `now` returns milliseconds since 1970.
 */
export function openHistory(
  path: string,
  now: () => number = Date.now,
  onDamaged: (sentence: string) => void = () => {},
): History {
  let db: DatabaseSync;
  let damaged: string | undefined;
  try {
    db = openCurrent(path);
  } catch (error) {
    if (!(error instanceof DamagedFile)) {
      throw error;
    }
    damaged = `${path} was damaged (${error.message}): moved to ${moveAside(path, now())} and replaced by a new file`;
    db = openCurrent(path);
  }
  const add = db.prepare(
    "INSERT INTO events (at, kind, name, from_state, to_state, reason) VALUES (?, ?, ?, ?, ?, ?)",
  );
  const actsSinceStart = db.prepare(
    `SELECT at FROM events WHERE kind = 'act' AND name = ?1 AND to_state = ?2 AND id > coalesce(
       (SELECT max(id) FROM events WHERE kind = 'act' AND name = ?1 AND to_state IN ('start', 'restart-asked')), 0)
     ORDER BY id`,
  );
  const latest = db.prepare(
    "SELECT * FROM events WHERE ?1 IS NULL OR name = ?1 ORDER BY id DESC LIMIT ?2",
  );
  if (damaged !== undefined) {
    onDamaged(damaged);
  }
  const timesOf = (name: string, act: Act) =>
    actsSinceStart.all(name, act).map((row) => Number(row["at"]));
  return {
    serviceChanged: (name, from, to, reason) => {
      add.run(now(), "service", name, from, to, reason);
    },
    checkChanged: (name, from, to, reason) => {
      add.run(now(), "check", name, from, to, reason);
    },
    act: (name, act, reason) => {
      add.run(now(), "act", name, null, act, reason);
    },
    restartsOf: (name) => timesOf(name, "restart"),
    healsOf: (name) => timesOf(name, "heal"),
    latest: (limit, name) => latest.all(name ?? null, limit).map(entryOf),
    db,
    close: () => db.close(),
  };
}

/** Opens the file. Throws a {@link DamagedFile} if it is damaged or lacks tables. */
function openCurrent(path: string): DatabaseSync {
  const db = openVerified(path);
  try {
    db.exec(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 2000",
    );
    migrate(db);
    const missing = missingTables(db);
    if (missing.length > 0) {
      throw new DamagedFile(`without ${missing.join(", ")}`);
    }
    return db;
  } catch (error) {
    db.close();
    throw isOfAnotherShape(error) ? new DamagedFile(textOf(error)) : error;
  }
}

/** SQLITE_ERROR: an unexpected table, or a missing column. */
function isOfAnotherShape(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && error.errcode === 1;
}

/** The missing tables of a history file. */
export function missingTables(db: DatabaseSync): readonly string[] {
  const tablesOf = (file: DatabaseSync) =>
    file
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
      .all()
      .map(({ name }) => String(name));
  const complete = new DatabaseSync(":memory:");
  try {
    // A file without a version is empty, which no start leaves behind.
    migrate(complete, versionOf(db) || STEPS.length);
    const there = tablesOf(db);
    return tablesOf(complete).filter((name) => !there.includes(name));
  } finally {
    complete.close();
  }
}

function versionOf(db: DatabaseSync): number {
  const row = db.prepare("PRAGMA user_version").get();
  return Number(row?.["user_version"] ?? 0);
}

function migrate(db: DatabaseSync, to: number = STEPS.length): void {
  const version = versionOf(db);
  for (const [index, step] of STEPS.slice(0, to).entries()) {
    if (index < version) {
      continue;
    }
    db.exec(`BEGIN; ${step}; PRAGMA user_version = ${index + 1}; COMMIT`);
  }
}

function entryOf(row: Record<string, unknown>): HistoryEntry {
  const kind = row["kind"];
  return {
    at: Number(row["at"]),
    kind: kind === "service" || kind === "check" ? kind : "act",
    name: String(row["name"]),
    from: row["from_state"] === null ? null : String(row["from_state"]),
    to: String(row["to_state"]),
    reason: row["reason"] === null ? null : String(row["reason"]),
  };
}

/** The same history with reserved disk space; once that is used up, errors are reported and ignored, and checks continue. */
export function tolerateFullDisk(
  history: History,
  say: (sentence: string) => void,
): History {
  keepHistoryReserve(history.db);
  const quiet =
    <Arguments extends readonly unknown[]>(
      write: (...args: Arguments) => void,
    ) =>
    (...args: Arguments): void => {
      try {
        write(...args);
      } catch (error) {
        say(`cannot write the history: ${textOf(error)}`);
      }
    };
  return {
    ...history,
    serviceChanged: quiet(history.serviceChanged),
    checkChanged: quiet(history.checkChanged),
    act: quiet(history.act),
  };
}
