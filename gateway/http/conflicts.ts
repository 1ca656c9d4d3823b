import pg from "pg";
import { CallError } from "./errors.ts";

const UNIQUE_VIOLATION = "23505";
const FOREIGN_KEY_VIOLATION = "23503";
/** What Postgres says of values that it cannot hold, as the caller is told; these are SQLSTATEs of what a caller can send. */
const UNHOLDABLE: ReadonlyMap<string, string> = new Map([
  ["22021", "A text has characters that cannot be stored (NUL)."],
  ["22P05", "A text has characters that cannot be stored (NUL)."],
  // Of JSON; other texts are numbers and times that our own schemas have read.
  ["22P02", "A text has characters that cannot be stored (half a character)."],
  ["22003", "A number is larger than can be stored: send a smaller one."],
  ["22007", "A date or time is not one: write 2026-11-21T12:00:00Z."],
  ["22008", "A date or time is not on the calendar: send another one."],
]);

/** What the database refused, as a sentence that names the field where it is known; null for a fault of ours. */
export function conflictOf(error: unknown): CallError | null {
  if (!(error instanceof pg.DatabaseError)) {
    return null;
  }
  const { code = "", constraint = "", table = "" } = error;
  const unholdable = UNHOLDABLE.get(code);
  if (unholdable !== undefined) {
    return new CallError("invalid_request", unholdable);
  }
  if (code === UNIQUE_VIOLATION) {
    if (constraint.endsWith("_pkey")) {
      return new CallError(
        "already_exists",
        `There is such an entry in ${table} already. Update it instead.`,
      );
    }
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
  if (error instanceof CallError) {
    return error;
  }
  const conflict = conflictOf(error);
  if (conflict === null) {
    throw error;
  }
  return conflict;
}

/** Postgres names constraints `<table>_<column>_key` and `<table>_<column>_fkey`. */
function fieldOf(constraint: string, table: string, ending: string): string {
  return constraint.slice(table.length + 1, -ending.length);
}
