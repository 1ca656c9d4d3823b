import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Alarms } from "../alerts/alarm.ts";
import { backupsToKeep } from "../backup/keep.ts";
import { listBackups, momentOf } from "../backup/manifest.ts";
import type { SupervisorConfig } from "../config/schema.ts";
import { inWords } from "../duration.ts";
import { Failure } from "../failure.ts";
import { scheduleOf } from "../jobs/config.ts";
import type { Job, JobContext, JobOutcome } from "../jobs/job.ts";
import { backupNotes, describeBackup } from "./backup.ts";
import {
  compactVault,
  inMegabytes,
  largeBytes,
  type Compaction,
} from "./compaction.ts";
import { findConflicts, type ConflictReport } from "./conflicts.ts";
import type { Couch } from "./couch.ts";
import { openDatabase, vaultNames } from "./database.ts";
import { examine } from "./doctor.ts";
import type { NotesState } from "./notes-state.ts";
import { publicAddress } from "./plugin-settings.ts";
import { drillRestore } from "./restore-drill.ts";
import { restoreNotes } from "./restore.ts";
import { readRoster } from "./roster.ts";
import type { EscrowFiles } from "./seed-escrow.ts";
import { fingerprints } from "./vault-alarms.ts";
import type { VaultFiles } from "./vault-file.ts";

export type NotesJobParts = {
  readonly couch: Couch;
  readonly state: NotesState;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
  readonly alarms: Alarms;
  readonly config: SupervisorConfig;
  /** `backups/notes`. */
  readonly backups: string;
  /** Bytes that are free where the store and the backups lie. */
  readonly freeBytes: () => number;
  /** Vaults that are being restored. */
  readonly busy: Set<string>;
  /** Where devices reach the store unless a vault's file says otherwise. */
  readonly address: () => string;
};

/** The most conflicts that a report holds. */
export const mostConflicts = 500;

/** What the supervisor does with the notes store by itself or when asked. */
export function notesJobs(parts: NotesJobParts): readonly Job[] {
  const { jobs } = parts.config;
  const asked = (timeoutMs: number) => ({ cron: null, timeoutMs, retries: 0 });
  return [
    {
      name: "compaction",
      description:
        "Give back the room of superseded revisions; no leaf is ever removed.",
      schedule: scheduleOf(jobs.compaction),
      run: (context) => compact(parts, context),
    },
    {
      name: "notes-backup",
      description:
        "Copy every leaf of every vault with its history, seeds, rules, users and settings.",
      schedule: scheduleOf(jobs.notes_backup),
      run: (context) => backup(parts, context),
    },
    {
      name: "notes-drill",
      description:
        "Restore the latest backup into scratch databases and compare.",
      schedule: scheduleOf(jobs.notes_drill),
      run: (context) => drill(parts, context),
    },
    {
      name: "notes-conflicts",
      description: "Report notes that were edited on two devices at once.",
      schedule: scheduleOf(jobs.notes_conflicts),
      run: (context) => conflicts(parts, context),
    },
    {
      name: "notes-devices",
      description: "Report devices that are behind, outdated or locked out.",
      schedule: scheduleOf(jobs.notes_devices),
      run: () => devices(parts),
    },
    {
      name: "notes-restore",
      description: "Put vaults of a backup back.",
      schedule: asked(4 * 3_600_000),
      run: (context) => restore(parts, context),
    },
    {
      name: "notes-doctor",
      description: "Look at the notes store as a device does.",
      schedule: asked(600_000),
      run: (context) => doctor(parts, context),
    },
  ];
}

/** Options as a person gave them with a job; throws a Failure that names the first mistake. */
function optionsOf<T extends z.ZodType>(
  schema: T,
  options: unknown,
): z.output<T> {
  const parsed = schema.safeParse(options);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new Failure(
    `${issue?.path.join(".") || "the options"}: ${issue?.message ?? "cannot be read"}.`,
  );
}

const compactOptions = z.strictObject({
  force: z.boolean().default(false),
  vault: z.string().optional(),
  /** The supervisor itself asks, because a database has grown large: all gates hold. */
  large: z.boolean().default(false),
});

async function compact(
  parts: NotesJobParts,
  context: JobContext,
): Promise<JobOutcome> {
  const options = optionsOf(compactOptions, context.options);
  const limits = parts.config.jobs.compaction;
  const names =
    options.vault === undefined
      ? await vaultNames(parts.couch)
      : [options.vault];
  const results: Compaction[] = [];
  for (const [index, name] of names.entries()) {
    context.progress(`vault ${name}`, index / names.length);
    results.push(
      await compactVault({
        database: openDatabase(parts.couch, name),
        state: parts.state,
        limits: {
          leastBytes: limits.least,
          leastPercent: limits.least_percent,
          mostConflicts: limits.most_conflicts,
          restFor: limits.rest,
        },
        freeBytes: parts.freeBytes,
        asked: context.asked && !options.large,
        force: options.force,
        now: context.now,
        signal: context.signal,
      }),
    );
  }
  const done = results.some(({ status }) => status === "done");
  return {
    status: done ? "done" : "skipped",
    summary:
      results.length === 0
        ? "there is no vault."
        : results.map(describeCompaction).join(" "),
    details: { vaults: results },
  };
}

function describeCompaction(compaction: Compaction): string {
  const { vault } = compaction;
  if (compaction.status === "skipped")
    return `Vault ${vault} (${inMegabytes(compaction.fileBytes)}) was left as it is: ${compaction.why}.`;
  const { beforeBytes, afterBytes, activeBytes } = compaction;
  const still =
    activeBytes > largeBytes
      ? ` Its notes themselves take ${inMegabytes(activeBytes)}: split the vault, leave large files out, or let a device rebuild it.`
      : "";
  return `Vault ${vault} went from ${inMegabytes(beforeBytes)} to ${inMegabytes(afterBytes)}.${still}`;
}

async function backup(
  parts: NotesJobParts,
  context: JobContext,
): Promise<JobOutcome> {
  const taken = await backupNotes({
    couch: parts.couch,
    directory: parts.backups,
    now: context.now,
    signal: context.signal,
    progress: context.progress,
  });
  const missing = taken.manifest.vaults.filter(
    (vault) => vault.missing.length > 0,
  );
  const fingerprint = "notes-backup-missing";
  if (missing.length === 0) parts.alarms.clear(fingerprint);
  else
    parts.alarms.raise({
      fingerprint,
      level: "warning",
      subject: "notes-backup",
      text: `the notes store could not give ${missing.flatMap((vault) => vault.missing).length} documents to the backup ${taken.name}: keep the backups before it.`,
      output: missing
        .map((vault) => `${vault.name}: ${vault.missing.join(", ")}`)
        .join("\n"),
      command: "hearth notes backup --list",
    });
  const pruned = prune(parts);
  return {
    status: "done",
    summary: `${describeBackup(taken)}${pruned === 0 ? "" : `; ${pruned} old ones were removed`}.`,
    details: {
      name: taken.name,
      bytes: taken.bytes,
      vaults: taken.manifest.vaults,
      users: taken.manifest.users,
    },
  };
}

/** Removes backups that are no longer to be kept; gives how many. */
function prune({ backups, config }: NotesJobParts): number {
  const { notes_backup, time_zone } = config.jobs;
  const names = listBackups(backups);
  const kept = backupsToKeep(names, notes_backup.keep, time_zone);
  const old = names.filter((name) => !kept.has(name));
  for (const name of old)
    rmSync(join(backups, name), { recursive: true, force: true });
  return old.length;
}

async function drill(
  parts: NotesJobParts,
  context: JobContext,
): Promise<JobOutcome> {
  const [latest] = listBackups(parts.backups);
  if (latest === undefined)
    throw new Failure(
      "there is no backup of the notes to try: `hearth notes backup` takes one.",
    );
  const drilled = await drillRestore({
    couch: parts.couch,
    backup: join(parts.backups, latest),
    signal: context.signal,
    progress: context.progress,
  });
  return {
    status: "done",
    summary: `the backup ${latest} restores: ${drilled.map(({ vault, documents, leaves, compared }) => `${vault} with ${documents} documents, ${leaves} revisions (${compared} compared)`).join("; ") || "it holds no vault"}.`,
    details: { backup: latest, vaults: drilled },
  };
}

async function conflicts(
  parts: NotesJobParts,
  context: JobContext,
): Promise<JobOutcome> {
  const reports: ConflictReport[] = [];
  for (const name of await vaultNames(parts.couch)) {
    const report = await findConflicts(
      openDatabase(parts.couch, name),
      parts.state,
      context.now(),
      mostConflicts,
      context.signal,
    );
    reports.push(report);
    alarmOfOldConflicts(parts, report, context.now());
  }
  const open = reports.filter((report) => report.conflicts.length > 0);
  return {
    status: "done",
    summary:
      open.length === 0
        ? "no note is conflicted."
        : `${open.map(({ vault, conflicts, more }) => `${vault}: ${more ? "more than " : ""}${conflicts.length} conflicted`).join("; ")}.`,
    details: { vaults: reports },
  };
}

function alarmOfOldConflicts(
  { alarms, config }: NotesJobParts,
  { vault, conflicts }: ConflictReport,
  now: number,
): void {
  const fingerprint = fingerprints.conflicts(vault);
  const oldest = Math.min(...conflicts.map(({ firstSeen }) => firstSeen));
  if (now - oldest < config.notes.conflicts_alarm_after || oldest === Infinity)
    alarms.clear(fingerprint);
  else
    alarms.raise({
      fingerprint,
      level: "warning",
      subject: `vault ${vault}`,
      text: `${conflicts.length} ${conflicts.length === 1 ? "note" : "notes"} of vault ${vault} ${conflicts.length === 1 ? "is" : "are"} conflicted, the oldest for ${inWords(now - oldest)}: open them on a device and merge, or resolve them.`,
      command: `hearth notes conflicts ${vault}`,
    });
}

async function devices(parts: NotesJobParts): Promise<JobOutcome> {
  const rosters = [];
  for (const name of await vaultNames(parts.couch)) {
    const roster = await readRoster(openDatabase(parts.couch, name));
    rosters.push(roster);
    const fingerprint = fingerprints.locked(name);
    if (roster.locked)
      parts.alarms.raise({
        fingerprint,
        level: "warning",
        subject: `vault ${name}`,
        text: roster.remarks[0] ?? `vault ${name} is locked.`,
        command: `hearth notes devices ${name}`,
      });
    else parts.alarms.clear(fingerprint);
  }
  const remarks = rosters.flatMap((roster) => roster.remarks);
  const count = rosters.reduce((sum, roster) => sum + roster.devices.length, 0);
  return {
    status: "done",
    summary:
      remarks.length === 0
        ? `${count} devices, nothing to see to.`
        : remarks.join(" "),
    details: { vaults: rosters },
  };
}

const restoreOptions = z.strictObject({
  backup: z.string().optional(),
  vault: z.string().optional(),
  as: z.string().optional(),
});

async function restore(
  parts: NotesJobParts,
  context: JobContext,
): Promise<JobOutcome> {
  const { backup, vault, as } = optionsOf(restoreOptions, context.options);
  const name = chooseBackup(parts.backups, backup);
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
  return {
    status: "done",
    summary: `from ${name}: ${restored.map(({ vault, documents }) => `vault ${vault} with ${documents} documents`).join("; ") || "no vault"}.`,
    details: { backup: name, vaults: restored },
  };
}

function chooseBackup(directory: string, wanted: string | undefined): string {
  const names = listBackups(directory);
  const [latest] = names;
  if (latest === undefined)
    throw new Failure(`there is no backup of the notes in ${directory}.`);
  if (wanted === undefined) return latest;
  if (momentOf(wanted) !== undefined && existsSync(join(directory, wanted)))
    return wanted;
  throw new Failure(
    `there is no backup "${wanted}"; there are ${names.slice(0, 10).join(", ")}${names.length > 10 ? " …" : ""}.`,
  );
}

const doctorOptions = z.strictObject({
  vault: z.string().optional(),
  url: z.string().optional(),
});

async function doctor(
  parts: NotesJobParts,
  context: JobContext,
): Promise<JobOutcome> {
  const options = optionsOf(doctorOptions, context.options);
  const vault = options.vault ?? parts.files.names()[0];
  if (vault === undefined)
    throw new Failure(
      "there is no vault to look at: `hearth notes add notes` makes one.",
    );
  const file = parts.files.read(vault);
  const url = publicAddress(options.url ?? file?.url ?? parts.address());
  context.progress(`looking at ${url}, which takes half a minute`);
  const findings = await examine({
    url,
    vault,
    member: file,
    couch: parts.couch,
    now: context.now,
    signal: context.signal,
  });
  const bad = findings.filter(({ state }) => state === "bad");
  return {
    status: "done",
    summary:
      bad.length === 0
        ? `devices can sync vault ${vault} at ${url}.`
        : `${bad.length} of ${findings.length} looks went wrong: ${bad.map(({ name }) => name).join(", ")}.`,
    details: { vault, url, findings },
  };
}
