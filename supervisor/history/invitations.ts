import { hash, randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { DAY_MS } from "../../core/duration.ts";
import { currentAuthor } from "./author.ts";
import { newToken } from "./sessions.ts";

/** What somebody who is invited gets at the gateway. */
interface InvitationOffer {
  /** For whom, as its author writes it. */
  readonly note: string;
  readonly userRole: "internal_user" | "internal_user_viewer";
  readonly teamId: string | null;
  /** As its author wrote it. */
  readonly teamName: string | null;
  readonly teamRole: "user" | "admin";
  /** Dollars; null: unlimited. */
  readonly maxBudget: number | null;
}

/** Times in milliseconds since 1970. */
export interface Invitation extends InvitationOffer {
  readonly id: number;
  /** Of the user that accepting it creates: the same one, however often that is tried. */
  readonly userId: string;
  readonly createdBy: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly usedAt: number | null;
  readonly revokedAt: number | null;
}

/** invitations: `hash` of the token in the link. */
export const INVITATION_TABLES = `
  CREATE TABLE invitations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT NOT NULL UNIQUE, user_id TEXT NOT NULL, note TEXT NOT NULL, user_role TEXT NOT NULL,
    team_id TEXT, team_name TEXT, team_role TEXT NOT NULL, max_budget REAL, created_by TEXT NOT NULL, created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, used_at INTEGER, revoked_at INTEGER
  ) STRICT;`;

const KEPT_MS = 90 * DAY_MS;
const SHOWN = 200;

/** Links by which people without an account of a provider become users. Each is valid once, until it expires or is revoked. */
export class Invitations {
  readonly #db: DatabaseSync;
  readonly #now: () => number;

  /** `now` returns milliseconds since 1970. */
  constructor(db: DatabaseSync, now: () => number) {
    this.#db = db;
    this.#now = now;
  }

  /** Returns the token for the link, which is not stored. */
  create(
    offer: InvitationOffer,
    lifetimeMs: number,
  ): { readonly token: string; readonly invitation: Invitation } {
    const now = this.#now();
    this.#db
      .prepare("DELETE FROM invitations WHERE expires_at < ?")
      .run(now - KEPT_MS);
    const token = newToken();
    this.#db
      .prepare(
        `INSERT INTO invitations (hash, user_id, note, user_role, team_id, team_name, team_role, max_budget, created_by, created_at, expires_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(
        hashOf(token),
        randomUUID(),
        offer.note,
        offer.userRole,
        offer.teamId,
        offer.teamName,
        offer.teamRole,
        offer.maxBudget,
        currentAuthor(),
        now,
        now + lifetimeMs,
      );
    const invitation = this.find(token);
    if (invitation === undefined) {
      throw new Error("a new invitation was not found");
    }
    return { token, invitation };
  }

  /** The newest first. */
  list(): readonly Invitation[] {
    return this.#db
      .prepare("SELECT * FROM invitations ORDER BY id DESC LIMIT ?")
      .all(SHOWN)
      .map(invitationOf);
  }

  /** One that can still be accepted. */
  find(token: string): Invitation | undefined {
    const row = this.#db
      .prepare(`SELECT * FROM invitations WHERE hash = ? AND ${OPEN}`)
      .get(hashOf(token), this.#now());
    return row === undefined ? undefined : invitationOf(row);
  }

  /** Takes an invitation, once: undefined for everybody else. */
  take(token: string): Invitation | undefined {
    const now = this.#now();
    const row = this.#db
      .prepare(
        `UPDATE invitations SET used_at = ? WHERE hash = ? AND ${OPEN} RETURNING *`,
      )
      .get(now, hashOf(token), now);
    return row === undefined ? undefined : invitationOf(row);
  }

  /** Gives a taken invitation back, because accepting it failed. */
  giveBack({ id }: Invitation): void {
    this.#db
      .prepare("UPDATE invitations SET used_at = NULL WHERE id = ?")
      .run(id);
  }

  /** Returns it; undefined if it is not open. */
  revoke(id: number): Invitation | undefined {
    const now = this.#now();
    const row = this.#db
      .prepare(
        `UPDATE invitations SET revoked_at = ? WHERE id = ? AND ${OPEN} RETURNING *`,
      )
      .get(now, id, now);
    return row === undefined ? undefined : invitationOf(row);
  }
}

/** The time is bound last. */
const OPEN = "used_at IS NULL AND revoked_at IS NULL AND expires_at > ?";

/** Tokens have 192 random bits: a hash without a key cannot be reversed. */
function hashOf(token: string): string {
  return hash("sha256", token, "base64url");
}

function invitationOf(row: Readonly<Record<string, unknown>>): Invitation {
  const timeOf = (name: string) =>
    row[name] === null ? null : Number(row[name]);
  return {
    id: Number(row["id"]),
    userId: String(row["user_id"]),
    note: String(row["note"]),
    userRole:
      row["user_role"] === "internal_user_viewer"
        ? "internal_user_viewer"
        : "internal_user",
    teamId: row["team_id"] === null ? null : String(row["team_id"]),
    teamName: row["team_name"] === null ? null : String(row["team_name"]),
    teamRole: row["team_role"] === "admin" ? "admin" : "user",
    maxBudget: timeOf("max_budget"),
    createdBy: String(row["created_by"]),
    createdAt: Number(row["created_at"]),
    expiresAt: Number(row["expires_at"]),
    usedAt: timeOf("used_at"),
    revokedAt: timeOf("revoked_at"),
  };
}
