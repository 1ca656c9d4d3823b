import { dirname, join } from "node:path";
import { z } from "zod";
import { counted } from "../../core/words.ts";
import { raiseWhile } from "../alerts/alarm.ts";
import { newestBackup } from "../backup/manifest.ts";
import { pruneBackups } from "../backup/prune-backups.ts";
import { makeRoom, watchLocalSize } from "../backup/size-cap.ts";
import { chooseBackup } from "../backup/which-backup.ts";
import { Failure } from "../../core/failure.ts";
import type { JobContext, JobOutcome } from "../jobs/job.ts";
import { backupNotes, describeBackup } from "./backup.ts";
import { optionsOf, type NotesJobParts } from "./job-parts.ts";
import { drillRestore, type DrilledVault } from "./restore-drill.ts";
import { repairVaults, type RepairedVault } from "./repair.ts";
import { restoreNotes, type RestoredVault } from "./restore.ts";

/** Creates a backup and removes those beyond the configured retention. */
export async function backup(
  parts: NotesJobParts,
  { now, signal, progress }: JobContext,
): Promise<JobOutcome> {
  const { at_most: most } = parts.config.backups;
  const root = dirname(parts.backups);
  const early = makeRoom(root, "notes", most, now());
  const taken = await backupNotes({
    ...parts,
    directory: parts.backups,
    now,
    signal,
    progress,
  });
  const missing = taken.manifest.vaults.filter(
    (vault) => vault.missing.length > 0,
  );
  raiseWhile(missing.length > 0, parts.alarms, {
    fingerprint: "notes-backup-missing",
    level: "warning",
    subject: "notes-backup",
    text: `the notes store did not return ${missing.flatMap((vault) => vault.missing).length} documents for the backup ${taken.name}: keep the previous backups.`,
    output: missing
      .map((vault) => `${vault.name}: ${vault.missing.join(", ")}`)
      .join("\n"),
    command: "hearth notes backup --list",
  });
  raiseWhile(taken.damaged.length > 0, parts.alarms, {
    fingerprint: "notes-backup-damaged",
    level: "warning",
    subject: "notes-backup",
    text: `a file of the previous backup is damaged, and other backups may share it. ${taken.name} is a full backup. Check the disk.`,
    output: taken.damaged.join("\n"),
    command: "hearth notes backup --list",
  });
  const { notes_backup, time_zone } = parts.config.jobs;
  const removed =
    early + pruneBackups(parts.backups, notes_backup.keep, time_zone, now());
  watchLocalSize(parts.alarms, root, most);
  return {
    status: "done",
    summary: `${describeBackup(taken)}${removed === 0 ? "" : `; ${counted(removed, "old backup")} removed`}.`,
    details: {
      name: taken.name,
      bytes: taken.bytes,
      vaults: taken.manifest.vaults,
      users: taken.manifest.users,
    },
  };
}

/** Restores the newest backup to a scratch vault and compares it; then reads all vaults, and repairs damaged documents from it. */
export async function drill(
  parts: NotesJobParts,
  context: JobContext,
): Promise<JobOutcome> {
  const latest = newestBackup(parts.backups, context.now());
  if (latest === undefined) {
    throw new Failure(
      "there is no backup of the notes to test. Run `hearth notes backup` to create one.",
    );
  }
  const options = {
    couch: parts.couch,
    backup: join(parts.backups, latest),
    signal: context.signal,
    progress: context.progress,
  };
  const { busy, freeBytes } = parts;
  const drilled = await drillRestore({ ...options, busy, freeBytes });
  const repaired = await repairVaults(options);
  return {
    status: "done",
    summary: `the backup ${latest} restores: ${describeDrilled(drilled)}.${repaired.map(describeRepaired).join("")}`,
    details: { backup: latest, vaults: drilled, repaired },
  };
}

function describeRepaired({ vault, repaired }: RepairedVault): string {
  return ` ${counted(repaired.length, "damaged document")} of vault ${vault} repaired from it; check the disk (\`dmesg\`).`;
}

export function describeDrilled(drilled: readonly DrilledVault[]): string {
  const words = drilled.map(
    ({ vault, documents, leaves, compared }) =>
      `${vault} with ${documents} documents, ${leaves} revisions (${compared} compared)`,
  );
  return words.join("; ") || "it contains no vault";
}

const restoreOptions = z.strictObject({
  backup: z.string().optional(),
  vault: z.string().optional(),
  as: z.string().optional(),
});

/** The backup that a request for a restore names. Throws a Failure. */
export function chosenBackup(
  { backups }: NotesJobParts,
  options: JobContext["options"],
  now: number,
): string {
  const { backup } = optionsOf(restoreOptions, options);
  return chooseBackup("notes", backups, backup, now);
}

/** Restores a backup on request. */
export async function restore(
  parts: NotesJobParts,
  context: JobContext,
): Promise<JobOutcome> {
  const { vault, as } = optionsOf(restoreOptions, context.options);
  const name = chosenBackup(parts, context.options, context.now());
  const restored = await restoreNotes({
    couch: parts.couch,
    backup: join(parts.backups, name),
    vault,
    as,
    state: parts.state,
    escrow: parts.escrow,
    files: parts.files,
    busy: parts.busy,
    now: context.now,
    signal: context.signal,
    progress: context.progress,
  });
  const isOver =
    restored.length > 0 && restored.every(({ already }) => already);
  return {
    status: isOver ? "skipped" : "done",
    summary: `restored from ${name}: ${restored.map(describeRestored).join("; ") || "no vault"}.`,
    details: { backup: name, vaults: restored },
  };
}

function describeRestored({
  vault,
  documents,
  leftOut,
  already,
}: RestoredVault): string {
  if (already) {
    return `vault ${vault} already before, and left as it is (\`--vault ${vault} --as NAME\` restores it again)`;
  }
  const without =
    leftOut === 0
      ? ""
      : ` (without ${counted(leftOut, "design document")}, which this store does not support)`;
  return `vault ${vault} with ${documents} documents${without}`;
}
