import { readdirSync } from "node:fs";
import { inProject } from "../project-files.ts";

/** Migrations of this checkout that a database does not have, in order; none for a database without tables. */
export function unappliedMigrations(
  applied: readonly string[],
): readonly string[] {
  if (applied.length === 0) {
    return [];
  }
  const known = new Set(applied);
  return readdirSync(inProject("gateway/database/migrations"))
    .filter((file) => file.endsWith(".sql"))
    .map((file) => file.slice(0, -".sql".length))
    .toSorted()
    .filter((migration) => !known.has(migration));
}

/** What the operator reads before the backup. */
export function backupNotice(missing: readonly string[]): string {
  return `The gateways will migrate the database (${missing.join(", ")}); backing up Postgres and the notes first …`;
}

/** What the operator reads in a preview. */
export function migrationNotice(missing: readonly string[]): string {
  return `The gateways will migrate the database (${missing.join(", ")}); up backs up Postgres and the notes first.`;
}
