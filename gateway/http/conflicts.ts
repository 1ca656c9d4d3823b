import pg from "pg";
import { CallError } from "./errors.ts";

const UNIQUE_VIOLATION = "23505";
const FOREIGN_KEY_VIOLATION = "23503";
/** Characters that Postgres holds in no text: NUL, broken UTF-8. */
const UNHOLDABLE_TEXT = new Set(["22021", "22P05"]);

/** What the database refused because of other rows, as a sentence that names the field; null for anything else. */
export function conflictOf(error: unknown): CallError | null {
  if (!(error instanceof pg.DatabaseError)) return null;
  const { code = "", constraint = "", table = "" } = error;
  if (UNHOLDABLE_TEXT.has(code))
    return new CallError(
      "invalid_request",
      "A text has characters that cannot be stored (NUL or half a character).",
    );
  if (code === UNIQUE_VIOLATION) {
    if (constraint.endsWith("_pkey"))
      return new CallError(
        "already_exists",
        `There is such an entry in ${table} already. Update it instead.`,
      );
    const field = fieldOf(constraint, table, "_key");
    return new CallError(
      "invalid_request",
      `\`${field}\` is taken already: choose another one.`,
      { param: field },
    );
  }
  if (code === FOREIGN_KEY_VIOLATION) {
    const field = fieldOf(constraint, table, "_fkey");
    return new CallError(
      "invalid_request",
      `\`${field}\` names nothing that exists: make it first.`,
      { param: field },
    );
  }
  return null;
}

/** What one of several changes was refused for; anything that is no refusal is thrown on. */
export function refusalOf(error: unknown): CallError {
  if (error instanceof CallError) return error;
  const conflict = conflictOf(error);
  if (conflict === null) throw error;
  return conflict;
}

/** Postgres names constraints `<table>_<column>_key` and `<table>_<column>_fkey`. */
function fieldOf(constraint: string, table: string, ending: string): string {
  return constraint.slice(table.length + 1, -ending.length);
}
