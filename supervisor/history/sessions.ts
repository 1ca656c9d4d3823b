import { createHmac, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { openDatabaseFile } from "../../core/open-database.ts";

/**
 * Sessions of browsers, each with a token in a cookie. A session ends by signing out, after 30 days, by `hearth sign-out
 * --all`, and when the operator password changes.
 */
export interface Sessions {
  /** The token of a new session. */
  readonly start: () => string;
  readonly isOpen: (token: string) => boolean;
  readonly end: (token: string) => void;
  /** Returns how many there were. */
  readonly endAll: () => number;
}

export const SESSION_SECONDS = 30 * 86_400;
export const MAX_SESSIONS = 1000;

/** sessions: `hash` of a token under the operator password; `ends_at` in milliseconds since 1970. */
export const SESSION_TABLES = `
  CREATE TABLE sessions (hash TEXT PRIMARY KEY, ends_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;`;

/**
 * Stores only hashes, in the history file and in memory. Each is keyed with `key`, the operator password, so that another
 * password invalidates all sessions. `now` returns milliseconds since 1970.
 */
export function openSessions(
  db: DatabaseSync,
  key: () => string,
  now: () => number,
): Sessions {
  const remove = db.prepare("DELETE FROM sessions WHERE hash = ?");
  const add = db.prepare("INSERT INTO sessions (hash, ends_at) VALUES (?, ?)");
  const ends = new Map(
    db
      .prepare("SELECT hash, ends_at FROM sessions ORDER BY ends_at")
      .all()
      .map((row) => [String(row["hash"]), Number(row["ends_at"])] as const),
  );

  function drop(hash: string): void {
    if (ends.delete(hash)) {
      remove.run(hash);
    }
  }

  function remember(hash: string, end: number): void {
    ends.set(hash, end);
    try {
      for (const [known, knownEnd] of ends) {
        if (knownEnd <= now() || ends.size > MAX_SESSIONS) {
          drop(known);
        }
      }
      add.run(hash, end);
    } catch {
      // On a full disk, a session lasts until the supervisor ends: the operator must be able to sign in then.
    }
  }

  return {
    start: () => {
      const token = newToken();
      remember(keyedHash(key(), token), now() + SESSION_SECONDS * 1000);
      return token;
    },
    isOpen: (token) => (ends.get(keyedHash(key(), token)) ?? 0) > now(),
    end: (token) => drop(keyedHash(key(), token)),
    endAll: () => {
      const open = [...ends.values()].filter((end) => end > now()).length;
      ends.clear();
      db.exec("DELETE FROM sessions");
      return open;
    },
  };
}

/** Ends the sessions of a supervisor that is not running. */
export function endStoredSessions(historyFile: string): void {
  if (!existsSync(historyFile)) {
    return;
  }
  const db = openDatabaseFile(historyFile);
  try {
    const tables = db
      .prepare(
        "SELECT name FROM sqlite_master WHERE name IN ('sessions', 'user_sessions')",
      )
      .all();
    for (const { name } of tables) {
      db.exec(`DELETE FROM ${String(name)}`);
    }
  } finally {
    db.close();
  }
}

/** 192 random bits as 48 hex digits, safe in terminals and addresses. */
export function newToken(): string {
  return randomBytes(24).toString("hex");
}

/** The stored hash of a token. */
export function keyedHash(key: string, token: string): string {
  return createHmac("sha256", key).update(token).digest("base64url");
}
