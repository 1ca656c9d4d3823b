import { hkdfSync } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { openBytes, sealBytes } from "../../core/sealed.ts";
import { ROLES, type Role } from "../sign-in/roles.ts";
import { keyedHash, MAX_SESSIONS, newToken } from "./sessions.ts";

const MAX_SESSIONS_OF_PERSON = 100;

/** A browser session of a user that signed in at a provider. Times in milliseconds since 1970. */
export interface UserSession {
  /** Name of the provider, and a hash of its settings: a session does not outlive a change of them. */
  readonly provider: string;
  readonly settings: string;
  /** The provider's id of the user, and of the user's session there, if it tells. */
  readonly subject: string;
  readonly sid: string | null;
  /** As the audit log names the user. */
  readonly name: string;
  readonly role: Role;
  /** Of the gateway; null where users have none, or the gateway has not been asked yet. */
  readonly userId: string | null;
  /** When the provider last confirmed user and role. */
  readonly confirmedAt: number;
  readonly endsAt: number;
}

/**
 * user_sessions: `hash` as in sessions, a table apart so that an earlier release never takes a viewer for the operator. `secrets`
 * are the provider's tokens, encrypted with a key that only the browser's cookie gives.
 */
export const USER_SESSION_TABLES = `
  CREATE TABLE user_sessions (
    hash TEXT PRIMARY KEY, provider TEXT NOT NULL, settings TEXT NOT NULL, subject TEXT NOT NULL, sid TEXT, name TEXT NOT NULL,
    role TEXT NOT NULL, confirmed_at INTEGER NOT NULL, ends_at INTEGER NOT NULL, secrets BLOB NOT NULL
  ) STRICT, WITHOUT ROWID;`;

/** user_id: of the gateway. */
export const USER_ID_COLUMN =
  "ALTER TABLE user_sessions ADD COLUMN user_id TEXT";

interface Stored {
  readonly session: UserSession;
  readonly secrets: Uint8Array;
}

/**
 * Stores sessions of users in the history file and in memory. `key` is the operator password: another one ends all of them.
 * `now` returns milliseconds since 1970.
 */
export class UserSessions {
  readonly #db: DatabaseSync;
  readonly #key: () => string;
  readonly #now: () => number;
  readonly #open: Map<string, Stored>;

  constructor(db: DatabaseSync, key: () => string, now: () => number) {
    this.#db = db;
    this.#key = key;
    this.#now = now;
    this.#open = new Map(
      db
        .prepare("SELECT * FROM user_sessions ORDER BY ends_at")
        .all()
        .map((row) => [String(row["hash"]), storedOf(row)]),
    );
  }

  /** Returns the token of a new session. */
  start(session: UserSession, secrets: string): string {
    const token = newToken();
    this.#prune(session);
    this.#store(this.#hashOf(token), {
      session,
      secrets: sealBytes(secrets, sealingKey(token)),
    });
    return token;
  }

  find(token: string): UserSession | undefined {
    const session = this.#open.get(this.#hashOf(token))?.session;
    return session !== undefined && session.endsAt > this.#now()
      ? session
      : undefined;
  }

  secretsOf(token: string): string | undefined {
    const stored = this.#open.get(this.#hashOf(token));
    // Of a damaged row nothing is left: the user signs in again.
    return stored && openBytes(stored.secrets, sealingKey(token));
  }

  /** Replaces name, role, user and secrets; nothing if the session has ended meanwhile. */
  confirm(
    token: string,
    change: Pick<UserSession, "name" | "role" | "userId" | "confirmedAt">,
    secrets: string,
  ): void {
    const hash = this.#hashOf(token);
    const stored = this.#open.get(hash);
    if (stored !== undefined) {
      this.#store(hash, {
        session: { ...stored.session, ...change },
        secrets: sealBytes(secrets, sealingKey(token)),
      });
    }
  }

  end(token: string): void {
    this.#drop(this.#hashOf(token));
  }

  /** Ends the sessions that match; returns their number. */
  endWhere(matches: (session: UserSession) => boolean): number {
    const ended = [...this.#open].filter(([, { session }]) => matches(session));
    for (const [hash] of ended) {
      this.#drop(hash);
    }
    return ended.length;
  }

  /** Returns how many there were. */
  endAll(): number {
    return this.endWhere(({ endsAt }) => endsAt > this.#now());
  }

  #hashOf(token: string): string {
    return keyedHash(this.#key(), token);
  }

  /** Makes room for a session. A person who signs in again and again ends none of another. */
  #prune({ provider, subject }: UserSession): void {
    const own = [...this.#open].filter(
      ([, { session }]) =>
        session.provider === provider && session.subject === subject,
    );
    for (const [hash] of own.slice(0, -(MAX_SESSIONS_OF_PERSON - 1))) {
      this.#drop(hash);
    }
    for (const [hash, { session }] of this.#open) {
      if (session.endsAt <= this.#now() || this.#open.size >= MAX_SESSIONS) {
        this.#drop(hash);
      }
    }
  }

  #store(hash: string, stored: Stored): void {
    this.#open.set(hash, stored);
    const { session, secrets } = stored;
    this.#quietly(() =>
      this.#db
        .prepare(
          `INSERT OR REPLACE INTO user_sessions
             (hash, provider, settings, subject, sid, name, role, user_id, confirmed_at, ends_at, secrets)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        )
        .run(
          hash,
          session.provider,
          session.settings,
          session.subject,
          session.sid,
          session.name,
          session.role,
          session.userId,
          session.confirmedAt,
          session.endsAt,
          secrets,
        ),
    );
  }

  #drop(hash: string): void {
    if (this.#open.delete(hash)) {
      this.#quietly(() =>
        this.#db.prepare("DELETE FROM user_sessions WHERE hash = ?").run(hash),
      );
    }
  }

  /** On a full disk, sessions are kept in memory only. */
  #quietly(write: () => unknown): void {
    try {
      write();
    } catch {
      // The map above is what counts while this supervisor runs.
    }
  }
}

function storedOf(row: Readonly<Record<string, unknown>>): Stored {
  const role = String(row["role"]);
  return {
    session: {
      provider: String(row["provider"]),
      settings: String(row["settings"]),
      subject: String(row["subject"]),
      sid: row["sid"] === null ? null : String(row["sid"]),
      name: String(row["name"]),
      role: ROLES.find((each) => each === role) ?? "user",
      userId: row["user_id"] === null ? null : String(row["user_id"]),
      confirmedAt: Number(row["confirmed_at"]),
      endsAt: Number(row["ends_at"]),
    },
    secrets: row["secrets"] as Uint8Array,
  };
}

function sealingKey(token: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", token, "", "hearth tokens", 32));
}
