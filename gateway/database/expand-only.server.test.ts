import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { emptyDatabase } from "../../test/servers/database.ts";

/**
 * While gateways are replaced, and after `hearth upgrade --back`, the previous release works on the database of the new one.
 * So a migration only adds: what a release uses keeps its name, its type and its rules until a later generation of the
 * schema.
 */

const directory = fileURLToPath(new URL("./migrations", import.meta.url));
const files = readdirSync(directory)
  .filter((file) => file.endsWith(".sql"))
  .toSorted();

/** Removed by a migration although the previous release has it: only views used it, which are replaced with it. Restricted: only a new column. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  "0013_user_pays.sql": [
    "gone: function entities_of(text,text,text,text,text,text,text[],text)",
  ],
  "0031_sign_in_users.sql": [
    "stricter: rule users.users_sso_user_id_key UNIQUE (sso_user_id)",
    "stricter: unique users CREATE UNIQUE INDEX users_sso_user_id_key ON public.users USING btree (sso_user_id)",
  ],
};
/** Migrations from before there were releases. */
const FIRST = "0013_user_pays.sql";

let database: Awaited<ReturnType<typeof emptyDatabase>>;
let client: Client;

beforeAll(async () => {
  database = await emptyDatabase();
  client = new Client({ connectionString: database.url });
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

/** Everything that a program can rely on, each with what would break it if it changed. */
const CATALOGUE = `
  SELECT 'relation ' || c.relname AS name, c.relkind::text AS rules FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
  UNION ALL
  SELECT 'column ' || c.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod)
      || CASE WHEN a.attnotnull AND NOT (a.atthasdef OR a.attidentity <> '') THEN ', required' ELSE '' END
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT 'nulls in ' || c.relname || '.' || a.attname, CASE WHEN a.attnotnull THEN 'rejected' ELSE 'accepted' END
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT 'function ' || p.oid::regprocedure::text, pg_get_function_result(p.oid) FROM pg_proc p
    WHERE p.pronamespace = 'public'::regnamespace
  UNION ALL
  SELECT 'rule ' || conrelid::regclass::text || '.' || conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 AND contype IN ('c', 'f', 'p', 'u', 'x') AND conparentid = 0
  UNION ALL
  SELECT 'unique ' || indrelid::regclass::text || ' ' || pg_get_indexdef(indexrelid), '' FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace = 'public'::regnamespace AND i.indisunique
  UNION ALL
  SELECT 'right ' || c.relname || ' ' || coalesce(r.rolname, 'public') || ' ' || g.privilege_type, '' FROM pg_class c
    CROSS JOIN LATERAL aclexplode(c.relacl) g LEFT JOIN pg_roles r ON r.oid = g.grantee
    WHERE c.relnamespace = 'public'::regnamespace`;

type Catalogue = ReadonlyMap<string, string>;

async function readCatalogue(): Promise<Catalogue> {
  const { rows } = await client.query<{ name: string; rules: string }>(
    CATALOGUE,
  );
  return new Map(rows.map(({ name, rules }) => [name, rules]));
}

/** Changes in `after` that would break a program written for `before`. */
function contractions(before: Catalogue, after: Catalogue): readonly string[] {
  const had = (relation: string) => before.has(`relation ${relation}`);
  const relationOf = (name: string) => name.split(/[ .]/)[1] ?? "";
  const lost = [...before].flatMap(([name, rules]) => {
    const now = after.get(name);
    // A constraint may be dropped: what was accepted still is.
    if (/^(rule|unique) /.test(name)) {
      return [];
    }
    if (now === undefined) {
      return name.startsWith("nulls") ? [] : [`gone: ${name}`];
    }
    if (now === rules || (name.startsWith("nulls") && now === "accepted")) {
      return [];
    }
    return [`changed: ${name} (${rules} to ${now})`];
  });
  const added = [...after].flatMap(([name, rules]) => {
    if (before.get(name) === rules) {
      return [];
    }
    const isNew = !before.has(name);
    if (/^(rule|unique) /.test(name) && had(relationOf(name))) {
      return [`stricter: ${name} ${rules}`.trim()];
    }
    if (isNew && name.startsWith("column ") && rules.endsWith(", required")) {
      return had(relationOf(name)) ? [`stricter: ${name} (${rules})`] : [];
    }
    return [];
  });
  return [...lost, ...added];
}

test("the migrations of each release only add to what the previous release uses", async () => {
  for (const file of files) {
    const before = await readCatalogue();
    await client.query(readFileSync(`${directory}/${file}`, "utf8"));
    if (file < FIRST) {
      continue;
    }
    expect(
      contractions(before, await readCatalogue()),
      `${file} removes what the previous release uses: add the new one next to it, and remove the old one in a later generation (hearth.schemaGeneration in gateway/package.json, docs/upgrade.md)`,
    ).toEqual(allowed[file] ?? []);
  }
});

test.each([
  ["DROP TABLE prompts CASCADE", "gone: relation prompts"],
  [
    "ALTER TABLE users RENAME COLUMN user_id TO id",
    "gone: column users.user_id",
  ],
  [
    "ALTER TABLE team_members ALTER created_by TYPE varchar(9)",
    "changed: column team_members.created_by",
  ],
  [
    "ALTER TABLE teams ADD COLUMN owner text NOT NULL",
    "stricter: column teams.owner",
  ],
  ["ALTER TABLE teams ADD CHECK (team_id <> '')", "stricter: rule teams."],
  [
    "CREATE UNIQUE INDEX one_name ON teams (team_alias)",
    "stricter: unique teams ",
  ],
  [
    "ALTER TABLE teams ALTER team_alias SET NOT NULL",
    "nulls in teams.team_alias",
  ],
  ["DROP FUNCTION spend_of_windows", "gone: function spend_of_windows("],
  [
    "REVOKE SELECT ON teams FROM hearth_reader",
    "gone: right teams hearth_reader SELECT",
  ],
])("%s is found", async (statement, found) => {
  await client.query("BEGIN");
  try {
    const before = await readCatalogue();
    await client.query(statement);
    expect(contractions(before, await readCatalogue()).join("\n")).toContain(
      found,
    );
  } finally {
    await client.query("ROLLBACK");
  }
});

test.each([
  "CREATE TABLE later (id text PRIMARY KEY, name text NOT NULL CHECK (name <> ''))",
  "ALTER TABLE teams ADD COLUMN colour text",
  "ALTER TABLE teams ADD COLUMN colour text NOT NULL DEFAULT 'red'",
  "CREATE INDEX by_alias ON teams (team_alias)",
  "CREATE FUNCTION later(text) RETURNS text LANGUAGE sql AS 'SELECT $1'",
])("%s only adds", async (statement) => {
  await client.query("BEGIN");
  try {
    const before = await readCatalogue();
    await client.query(statement);
    expect(contractions(before, await readCatalogue())).toEqual([]);
  } finally {
    await client.query("ROLLBACK");
  }
});
