import { join } from "node:path";
import { Failure } from "../../core/failure.ts";
import type { JobContext, JobOutcome } from "../jobs/job.ts";
import { verifyFiles } from "./backup-files.ts";
import { rowsOf, withDatabase } from "./database.ts";
import { needDrillRoom } from "./drill-room.ts";
import { loadBackup } from "./load-backup.ts";
import { newestBackup } from "./manifest.ts";
import { withScratchDatabase } from "./scratch-database.ts";

/** Restores the newest backup into a scratch database, compares rows and sums with the manifest, and drops the database. */
export async function drillRestore(
  parts: {
    readonly databaseUrl: string;
    readonly directory: string;
    readonly migrations: string;
    /** Suffix of the scratch database. Drills that may run at the same time need different ones. */
    readonly scratch: string;
    /** Bytes that are free where Postgres keeps its files; undefined if its disk is not known. */
    readonly freeBytes: () => number | undefined;
  },
  { signal, progress, now }: JobContext,
): Promise<JobOutcome> {
  const newest = newestBackup(parts.directory, now());
  if (newest === undefined) {
    throw new Failure("no backup to restore: run `hearth backup run`.");
  }
  const free = parts.freeBytes();
  if (free !== undefined) {
    const bytes = await databaseBytes(parts.databaseUrl, signal);
    needDrillRoom(`backup ${newest}`, bytes, free);
  }
  const backup = join(parts.directory, newest);
  await verifyFiles(backup, signal, (text, done) => progress(text, done * 0.2));
  const manifest = await withScratchDatabase(
    parts.databaseUrl,
    parts.scratch,
    signal,
    (databaseUrl) =>
      loadBackup({
        backup,
        databaseUrl,
        migrations: parts.migrations,
        signal,
        owner: undefined,
        progress: (text, done) => progress(text, 0.2 + (done ?? 0) * 0.8),
      }),
  );
  const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
  return {
    status: "done",
    summary: `${newest} restores: ${rows} rows of ${manifest.tables.length} tables, and the ledger adds up to the same sums.`,
    details: { backup: newest, rows, sums: manifest.sums },
  };
}

/** Of the database that was backed up: a manifest has only the sizes of compressed files, without indexes. */
async function databaseBytes(
  databaseUrl: string,
  signal: AbortSignal,
): Promise<number> {
  const [row] = await withDatabase(databaseUrl, signal, (client) =>
    rowsOf<{ bytes: string }>(
      client,
      "SELECT pg_database_size(current_database())::text AS bytes",
    ),
  );
  return Number(row?.bytes ?? 0);
}
