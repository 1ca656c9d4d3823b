import { join } from "node:path";
import { sentencesOf } from "../../../core/failure.ts";
import { sum } from "../../../core/sum.ts";
import { counted } from "../../../core/words.ts";
import {
  requireFiles,
  sizeOf,
} from "../../../supervisor/backup/backup-files.ts";
import { listBackups, momentOf } from "../../../supervisor/backup/manifest.ts";
import { readPostgresManifest } from "../../../supervisor/backup/postgres-manifest.ts";
import type { JobRunner, RunView } from "../../../supervisor/jobs/runner.ts";
import { readNotesManifest } from "../../../supervisor/vaults/backup-format.ts";

export const BACKUP_KINDS = ["postgres", "notes"] as const;
export type BackupKind = (typeof BACKUP_KINDS)[number];

/** The jobs of each kind. */
export const BACKUP_JOBS: Readonly<
  Record<BackupKind, { readonly backup: string; readonly drill: string }>
> = {
  postgres: { backup: "postgres-backup", drill: "restore-drill" },
  notes: { backup: "notes-backup", drill: "notes-drill" },
};

/** Reaches back about a year of weekly drills. */
const MAX_DRILLS = 60;

export interface FoundBackup {
  readonly kind: BackupKind;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly takenAt: number;
  readonly bytes: number;
  /** What is in it, in words; null if its manifest is invalid or a file is missing. */
  readonly contents: string | null;
  readonly problem: string | null;
  /** The last drill of this backup; null if there was none. */
  readonly drill: RunView | null;
}

/** The backups of this host, newest first. */
export function readBackups(
  directory: string,
  jobs: Pick<JobRunner, "list" | "runsOf">,
): readonly FoundBackup[] {
  return BACKUP_KINDS.flatMap((kind) => {
    const names = listBackups(join(directory, kind));
    const drills = drillsOf(kind, names, jobs);
    return names.map((name) => ({
      kind,
      name,
      takenAt: momentOf(name) ?? 0,
      bytes: sizeOf(join(directory, kind, name)),
      ...contentsOf(kind, join(directory, kind, name)),
      drill: drills.get(name) ?? null,
    }));
  });
}

function contentsOf(
  kind: BackupKind,
  path: string,
): Pick<FoundBackup, "contents" | "problem"> {
  try {
    return {
      contents: kind === "postgres" ? ledgerIn(path) : vaultsIn(path),
      problem: null,
    };
  } catch (error) {
    return { contents: null, problem: sentencesOf(error).join(" ") };
  }
}

function ledgerIn(path: string): string {
  const { files, tables, sums, serverVersion } = readPostgresManifest(path);
  requireFiles(path, files);
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  return [
    counted(Number(sums.keys), "key"),
    counted(Number(sums.calls), "call"),
    `${counted(rows, "row")} of ${counted(tables.length, "table")}`,
    `Postgres ${serverVersion}`,
  ].join(", ");
}

/** Of more, a row has the sum. */
const MAX_VAULTS = 4;

function vaultsIn(path: string): string {
  const { files, vaults } = readNotesManifest(path);
  requireFiles(path, files);
  if (vaults.length > MAX_VAULTS) {
    const documents = sum(vaults.map(({ documents }) => documents));
    return `${counted(vaults.length, "vault")} with ${counted(documents, "document")}`;
  }
  const words = vaults.map(
    ({ name, documents }) =>
      `vault ${name} with ${counted(documents, "document")}`,
  );
  return words.join(", ") || "no vaults";
}

/** The last drill of each backup. A failed one does not name its backup: it was the newest at that time. */
function drillsOf(
  kind: BackupKind,
  names: readonly string[],
  jobs: Pick<JobRunner, "list" | "runsOf">,
): ReadonlyMap<string, RunView> {
  const { drill } = BACKUP_JOBS[kind];
  if (!jobs.list().some(({ name }) => name === drill)) {
    return new Map();
  }
  const ended = jobs
    .runsOf(drill, MAX_DRILLS)
    .filter(({ status }) => status === "done" || status === "failed");
  const last = new Map<string, RunView>();
  for (const run of ended) {
    const named = run.details?.["backup"];
    const backup =
      typeof named === "string"
        ? named
        : names.find((name) => (momentOf(name) ?? 0) <= run.startedAt);
    if (backup !== undefined && !last.has(backup)) {
      last.set(backup, run);
    }
  }
  return last;
}
