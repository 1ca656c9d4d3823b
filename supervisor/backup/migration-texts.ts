import { text } from "node:stream/consumers";
import { readCompressed } from "./backup-files.ts";
import type { PostgresManifest } from "./postgres-manifest.ts";

/** The gateway's table of the SQL of its migrations (0014_migration_texts.sql). */
const TABLE = "migration_texts";

/** The SQL of migrations by name, from the rows of a backup; empty if the backup predates the table. */
export async function readMigrationTexts(
  backup: string,
  { tables }: PostgresManifest,
): Promise<ReadonlyMap<string, string>> {
  const found = tables.find(({ name }) => name === TABLE);
  if (found === undefined) {
    return new Map();
  }
  const [name, sql] = ["name", "sql"].map((each) =>
    found.columns.indexOf(each),
  ) as [number, number];
  const content = await text(readCompressed(backup, found.file));
  return new Map(
    content
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => line.split("\t").map(plain))
      .map((fields) => [fields[name] ?? "", fields[sql] ?? ""]),
  );
}

const escapes: Readonly<Record<string, string>> = {
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

/** A field of COPY's text format (https://www.postgresql.org/docs/current/sql-copy.html). */
function plain(field: string): string {
  return field.replace(
    /\\(.)/g,
    (_, letter: string) => escapes[letter] ?? letter,
  );
}
