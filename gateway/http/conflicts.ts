import pg from "pg";
import { CallError, invalidParam } from "./errors.ts";

const UNIQUE_VIOLATION = "23505";
const FOREIGN_KEY_VIOLATION = "23503";
/** Messages for values that Postgres cannot store, by SQLSTATE. */
const UNSTORABLE: ReadonlyMap<string, string> = new Map([
  ["22021", "A text has a character that cannot be stored (NUL)."],
  ["22P05", "A text has a character that cannot be stored (NUL)."],
  // Only of JSON: numbers and times have passed the schemas.
  [
    "22P02",
    "A text has a character that cannot be stored (half a surrogate pair).",
  ],
  ["22003", "A number is too large to be stored."],
  ["22007", "A date or time is invalid: write 2026-11-21T12:00:00Z."],
  ["22008", "A date or time is not on the calendar."],
]);

/** An error of the database as a message that names the field where known; null for a bug of the gateway. */
export function conflictOf(error: unknown): CallError | null {
  if (!(error instanceof pg.DatabaseError)) {
    return null;
  }
  const { code = "", constraint = "", table = "" } = error;
  const unstorable = UNSTORABLE.get(code);
  if (unstorable !== undefined) {
    return new CallError("invalid_request", unstorable);
  }
  if (code === UNIQUE_VIOLATION) {
    if (constraint.endsWith("_pkey")) {
      return new CallError(
        "already_exists",
        `This ${singularOf(table)} already exists. Update it instead.`,
      );
    }
    const field = fieldOf(constraint, table, "_key");
    return invalidParam(field, "already exists: choose another one.");
  }
  if (code === FOREIGN_KEY_VIOLATION) {
    const field = fieldOf(constraint, table, "_fkey");
    return invalidParam(field, "does not exist: create it first.");
  }
  return null;
}

/** Why one of several changes was rejected; rethrows unexpected errors. */
export function rejectionOf(error: unknown): CallError {
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

/** "team_members" is "team member". */
function singularOf(table: string): string {
  return table.replace(/s$/, "").replaceAll("_", " ");
}
