import type { Client } from "pg";
import { Failure } from "../../core/failure.ts";
import { versionWords } from "../release/version.ts";
import { beginBackup, writeCompressed } from "./backup-files.ts";
import { quoted, rowsOf, withDatabase } from "./database.ts";
import { sumLedger } from "./ledger-sums.ts";
import { backupName, writeManifest, type BackupFile } from "./manifest.ts";
import { dumpDatabase } from "./pg-dump.ts";
import type { BackupTable, PostgresManifest } from "./postgres-manifest.ts";

interface TakeBackup {
  /** As a role that reads all tables. */
  readonly databaseUrl: string;
  /** `backups/postgres` */
  readonly directory: string;
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly progress: (text: string, done?: number) => void;
  /** Adds a file that pg_restore reads. */
  readonly pgDump: boolean;
}

type FoundTable = Pick<BackupTable, "name" | "columns" | "partition"> & {
  readonly bytes: number;
};

/**
 * Copies a snapshot of every table into a directory that appears when it is complete on the disk. Returns its name and manifest;
 * leaves nothing behind if it fails or is aborted.
 */
export async function takeBackup(
  parts: TakeBackup,
): Promise<{ readonly name: string; readonly manifest: PostgresManifest }> {
  const { directory, signal } = parts;
  const takenAt = parts.now();
  const name = backupName(takenAt);
  const making = beginBackup(directory, name);
  try {
    const manifest = await withDatabase(parts.databaseUrl, signal, (client) =>
      copyAll(client, parts, making.directory, takenAt),
    );
    signal.throwIfAborted();
    writeManifest(making.directory, manifest);
    making.finish();
    return { name, manifest };
  } catch (error) {
    making.abandon();
    throw error;
  }
}

async function copyAll(
  client: Client,
  parts: TakeBackup,
  directory: string,
  takenAt: number,
): Promise<PostgresManifest> {
  // One snapshot for all tables, which are locked against being dropped.
  await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  const found = await findTables(client);
  if (found.length === 0) {
    throw new Failure(
      "the database has no tables to back up: a gateway creates them when it starts (`hearth status`); if one is running, BACKUP_DATABASE_URL is the address of another database.",
    );
  }
  await client.query(
    `LOCK TABLE ${found.map(({ name }) => quoted(name)).join(", ")} IN ACCESS SHARE MODE`,
  );
  const files: BackupFile[] = [];
  const tables: BackupTable[] = [];
  const all = found.reduce((sum, { bytes }) => sum + bytes, 0) || 1;
  let before = 0;
  for (const table of found) {
    const { name, columns, partition, bytes } = table;
    const copied = await copyTable(client, table, directory, parts, (part) =>
      parts.progress(`copying ${name}`, (before + bytes * part) / all),
    );
    before += bytes;
    files.push(copied.file);
    const { rows } = copied;
    tables.push({ name, columns, partition, rows, file: copied.file.name });
  }
  parts.progress("adding up the ledger", 0.99);
  const sums = await sumLedger(client);
  const sequences = await readSequences(client);
  const migrations = await rowsOf<{ name: string }>(
    client,
    "SELECT name FROM migrations ORDER BY id",
  );
  const [server] = await rowsOf<{ version: string }>(
    client,
    "SELECT current_setting('server_version') AS version",
  );
  await client.query("COMMIT");
  if (parts.pgDump) {
    files.push(await dumpDatabase(parts.databaseUrl, directory, parts.signal));
  }
  return {
    format: 1,
    kind: "postgres",
    takenAt,
    files,
    serverVersion: server?.version ?? "",
    madeBy: versionWords(),
    migrations: migrations.map((migration) => migration.name),
    tables,
    sequences,
    sums,
  };
}

/** Tables and partitions with rows; a partitioned table itself has none. */
async function findTables(client: Client): Promise<readonly FoundTable[]> {
  const rows = await rowsOf<{
    name: string;
    parent: string | null;
    bound: string | null;
    columns: string[];
    bytes: string;
  }>(
    client,
    `SELECT c.relname AS name, p.relname AS parent, pg_get_expr(c.relpartbound, c.oid) AS bound,
         pg_table_size(c.oid)::text AS bytes,
         ARRAY(SELECT a.attname::text FROM pg_attribute a
           WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum) AS columns
       FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent
       WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY c.relname`,
  );
  return rows.map(({ name, parent, bound, columns, bytes }) => ({
    name,
    columns,
    bytes: Number(bytes),
    partition: parent === null ? null : { of: parent, ...rangeOf(bound) },
  }));
}

function rangeOf(bound: string | null): {
  readonly from: string;
  readonly to: string;
} {
  const [, from, to] =
    /^FOR VALUES FROM \('([^']+)'\) TO \('([^']+)'\)$/.exec(bound ?? "") ?? [];
  if (from === undefined || to === undefined) {
    throw new Error(`unsupported bounds of a partition: ${bound}`);
  }
  return { from, to };
}

async function copyTable(
  client: Client,
  { name, columns, bytes }: FoundTable,
  directory: string,
  { signal }: TakeBackup,
  onPart: (part: number) => void,
): Promise<{ readonly file: BackupFile; readonly rows: number }> {
  const { to: copyTo } = await import("pg-copy-streams");
  const list = columns.map(quoted).join(", ");
  const content = client.query(
    copyTo(`COPY ${quoted(name)} (${list}) TO STDOUT`),
  );
  let bytesCopied = 0;
  let rows = 0;
  onPart(0);
  const file = await writeCompressed(
    directory,
    `${name}.copy.gz`,
    content,
    signal,
    (more) => {
      bytesCopied += more;
      onPart(Math.min(1, bytesCopied / (bytes || 1)));
    },
  );
  rows = content.rowCount;
  return { file, rows };
}

async function readSequences(
  client: Client,
): Promise<PostgresManifest["sequences"]> {
  const names = await rowsOf<{ name: string }>(
    client,
    "SELECT relname AS name FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace ORDER BY 1",
  );
  const sequences: PostgresManifest["sequences"][number][] = [];
  for (const { name } of names) {
    const [state] = await rowsOf<{ value: string; called: boolean }>(
      client,
      `SELECT last_value::text AS value, is_called AS called FROM ${quoted(name)}`,
    );
    if (state !== undefined) {
      sequences.push({ name, ...state });
    }
  }
  return sequences;
}
