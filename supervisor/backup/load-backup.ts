import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Client } from "pg";
import { Failure } from "../../core/failure.ts";
import { readCompressed } from "./backup-files.ts";
import { versionWords } from "../release/version.ts";
import { readMigrationTexts } from "./migration-texts.ts";
import { quoted, rowsOf, withDatabase } from "./database.ts";
import { sumLedger } from "./ledger-sums.ts";
import {
  readPostgresManifest,
  type BackupTable,
  type PostgresManifest,
} from "./postgres-manifest.ts";

interface LoadBackup {
  /** The directory of the backup. */
  readonly backup: string;
  /** An empty database. */
  readonly databaseUrl: string;
  /** The gateway's SQL files. */
  readonly migrations: string;
  /** Owner of the restored objects; undefined: the role of the address. */
  readonly owner: string | undefined;
  readonly signal: AbortSignal;
  readonly progress: (text: string, done?: number) => void;
}

/**
 * Loads a backup into an empty database, in one transaction: the schema by the gateway's migrations, up to the last one of the
 * backup, then the rows. Throws a Failure and leaves the database empty if rows or sums differ from the manifest.
 */
export async function loadBackup(parts: LoadBackup): Promise<PostgresManifest> {
  const manifest = readPostgresManifest(parts.backup);
  const schema = await readMigrations(manifest, parts);
  await withDatabase(parts.databaseUrl, parts.signal, async (client) => {
    await client.query("BEGIN");
    if (parts.owner !== undefined) {
      await client.query(`SET LOCAL ROLE ${quoted(parts.owner)}`);
    }
    parts.progress("creating the tables", 0);
    await client.query(MIGRATIONS_TABLE);
    for (const sql of schema) {
      await client.query(sql);
    }
    await makePartitions(client, manifest);
    await loadTables(client, manifest, parts);
    for (const { name, value, called } of manifest.sequences) {
      await client.query("SELECT setval($1::regclass, $2, $3)", [
        quoted(name),
        value,
        called,
      ]);
    }
    parts.progress("adding up the ledger", 0.95);
    await compareSums(client, manifest);
    await client.query("COMMIT");
    parts.progress("gathering statistics", 0.98);
    await client.query("ANALYZE");
  });
  return manifest;
}

/** As created by the gateway's migration runner (node-pg-migrate). */
const MIGRATIONS_TABLE = `CREATE TABLE migrations (
  id SERIAL PRIMARY KEY, name varchar(255) NOT NULL, run_on timestamp NOT NULL)`;

/** SQL from files; migrations of a newer release, after going back to this one, from the backup. */
async function readMigrations(
  manifest: PostgresManifest,
  { backup, migrations }: LoadBackup,
): Promise<readonly string[]> {
  const files = new Set(readdirSync(migrations));
  const isKnown = (name: string) => files.has(`${name}.sql`);
  const texts = manifest.migrations.every(isKnown)
    ? new Map<string, string>()
    : await readMigrationTexts(backup, manifest);
  return manifest.migrations.map((name) => {
    if (isKnown(name)) {
      return readFileSync(join(migrations, `${name}.sql`), "utf8");
    }
    const text = texts.get(name);
    if (text !== undefined) {
      return text;
    }
    throw new Failure(
      `the backup was created by a newer version of Hearth (${manifest.madeBy ?? "version unknown"}; it has the migration ${name}, which is unknown to this one, ${versionWords()}): upgrade Hearth, then restore.`,
    );
  });
}

async function makePartitions(
  client: Client,
  { tables }: PostgresManifest,
): Promise<void> {
  for (const { name, partition } of tables) {
    if (partition !== null) {
      await client.query(
        `CREATE TABLE ${quoted(name)} PARTITION OF ${quoted(partition.of)}
           FOR VALUES FROM ('${partition.from}') TO ('${partition.to}')`,
      );
    }
  }
}

async function loadTables(
  client: Client,
  manifest: PostgresManifest,
  parts: LoadBackup,
): Promise<void> {
  const { tables } = manifest;
  const sizeOf = new Map(
    manifest.files.map(({ name, bytes }) => [name, bytes]),
  );
  const all = tables.reduce(
    (sum, { file }) => sum + (sizeOf.get(file) ?? 0),
    0,
  );
  let before = 0;
  // Triggers would send a notification per row, without any listener.
  for (const { name } of tables) {
    await client.query(`ALTER TABLE ${quoted(name)} DISABLE TRIGGER USER`);
  }
  for (const table of await inOrderOfReferences(client, tables)) {
    parts.progress(`filling ${table.name}`, (before / (all || 1)) * 0.95);
    await loadTable(client, table, parts);
    before += sizeOf.get(table.file) ?? 0;
  }
  for (const { name } of tables) {
    await client.query(`ALTER TABLE ${quoted(name)} ENABLE TRIGGER USER`);
  }
}

async function loadTable(
  client: Client,
  { name, columns, file, rows }: BackupTable,
  { backup, signal }: LoadBackup,
): Promise<void> {
  const { from: copyFrom } = await import("pg-copy-streams");
  const list = columns.map(quoted).join(", ");
  const into = client.query(
    copyFrom(`COPY ${quoted(name)} (${list}) FROM STDIN`),
  );
  await pipeline(readCompressed(backup, file), into, { signal });
  if (into.rowCount !== rows) {
    throw new Failure(
      `${name} has ${into.rowCount} rows instead of ${rows}: the backup is incomplete; restore another one.`,
    );
  }
}

/** Tables that others refer to come first. */
async function inOrderOfReferences(
  client: Client,
  tables: readonly BackupTable[],
): Promise<readonly BackupTable[]> {
  const references = await rowsOf<{ table: string; needs: string }>(
    client,
    `SELECT DISTINCT c.relname AS table, r.relname AS needs FROM pg_constraint f
       JOIN pg_class c ON c.oid = f.conrelid JOIN pg_class r ON r.oid = f.confrelid
       WHERE f.contype = 'f' AND f.connamespace = 'public'::regnamespace AND c.oid <> r.oid`,
  );
  const ordered: BackupTable[] = [];
  const left = new Set(tables);
  while (left.size > 0) {
    const waiting = new Set([...left].map(({ name }) => name));
    const ready = [...left].filter(({ name }) =>
      references.every(
        ({ table, needs }) => table !== name || !waiting.has(needs),
      ),
    );
    if (ready.length === 0) {
      throw new Error(`tables refer to each other: ${[...waiting].join(", ")}`);
    }
    for (const table of ready) {
      ordered.push(table);
      left.delete(table);
    }
  }
  return ordered;
}

async function compareSums(
  client: Client,
  { sums }: PostgresManifest,
): Promise<void> {
  const restored = await sumLedger(client);
  const differing = (Object.keys(sums) as (keyof typeof sums)[]).filter(
    (name) => sums[name] !== restored[name],
  );
  if (differing.length > 0) {
    throw new Failure(
      `the restored ledger does not add up (${differing.map((name) => `${name}: ${restored[name]} instead of ${sums[name]}`).join(", ")}): the backup is incomplete; restore another one.`,
    );
  }
}
