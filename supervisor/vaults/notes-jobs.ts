import { z } from "zod";
import { HOUR_MS } from "../../core/duration.ts";
import { Failure } from "../../core/failure.ts";
import { scheduleOf } from "../jobs/config.ts";
import { whichBackup } from "../backup/which-backup.ts";
import type { Job, JobContext, JobOption, JobOutcome } from "../jobs/job.ts";
import { backup, chosenBackup, drill, restore } from "./backup-jobs.ts";
import { compact } from "./compaction-job.ts";
import { forceWords } from "./compaction-words.ts";
import { Database } from "./database.ts";
import { examine } from "./vault-doctor.ts";
import { optionsOf, type NotesJobParts } from "./job-parts.ts";
import { publicAddress } from "./plugin-settings.ts";
import { conflicts, devices } from "./report-jobs.ts";
import { checkVaultName, NoSuchVault } from "./vault-names.ts";

/** The jobs of the notes store, scheduled and on demand. */
export function notesJobs(parts: NotesJobParts): readonly Job[] {
  return [...scheduledJobs(parts), ...jobsOnDemand(parts)];
}

function scheduledJobs(parts: NotesJobParts): readonly Job[] {
  const { jobs } = parts.config;
  return [
    {
      name: "compaction",
      description:
        "Free the space of superseded revisions; current and conflicting versions stay.",
      schedule: scheduleOf(jobs.compaction),
      options: [
        whichVault(parts, "all"),
        {
          name: "force",
          kind: "tick",
          ...forceWords,
        },
      ],
      check: (options) => rejectUnknownVault(parts, options),
      run: (context) => compact(parts, context),
    },
    {
      name: "notes-backup",
      description:
        "Copy every vault: all versions of its notes, seeds, rules, users and settings.",
      schedule: scheduleOf(jobs.notes_backup),
      run: (context) => backup(parts, context),
    },
    {
      name: "notes-drill",
      description:
        "Restore the newest backup into scratch databases and compare; repair damaged notes from it.",
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
      description:
        "Report devices that are outdated, locked out or set up differently.",
      schedule: scheduleOf(jobs.notes_devices),
      run: () => devices(parts),
    },
  ];
}

function jobsOnDemand(parts: NotesJobParts): readonly Job[] {
  const onDemand = (timeoutMs: number) => ({
    cron: null,
    timeoutMs,
    retries: 0,
  });
  return [
    {
      name: "notes-restore",
      description: "Restore vaults from a backup.",
      purpose: "restore",
      schedule: onDemand(4 * HOUR_MS),
      options: [
        whichBackup(parts.backups),
        {
          name: "vault",
          kind: "text",
          label: "Vault",
          note: "Defaults to all of the backup.",
        },
        {
          name: "as",
          kind: "text",
          label: "Under another name",
          note: "Leaves an existing vault untouched: a restore never overwrites.",
        },
      ],
      check: (options) => void chosenBackup(parts, options, Date.now()),
      run: (context) => restore(parts, context),
    },
    {
      name: "notes-doctor",
      description: "Check the notes store as a device uses it.",
      schedule: onDemand(600_000),
      options: [
        whichVault(parts, "the first"),
        {
          name: "url",
          kind: "text",
          label: "Address",
          note: "Where devices reach it; defaults to the vault's own address.",
        },
      ],
      check: (options) => rejectUnknownVault(parts, options),
      run: (context) => doctor(parts, context),
    },
  ];
}

function whichVault({ state }: NotesJobParts, otherwise: string): JobOption {
  return {
    name: "vault",
    kind: "choice",
    label: "Vault",
    otherwise,
    values: () => state.known().toSorted(),
  };
}

/** Databases that are not vaults of this supervisor are known from its regular checks. */
function rejectUnknownVault(
  { state, files }: NotesJobParts,
  { vault }: JobContext["options"],
): void {
  const known = [...state.known(), ...files.names()];
  if (typeof vault === "string" && !known.includes(vault)) {
    throw new NoSuchVault(vault, known);
  }
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
  if (vault === undefined) {
    throw new Failure(
      "there is no vault to check. Run `hearth notes add notes` to create one.",
    );
  }
  const database = new Database(parts.couch, checkVaultName(vault));
  if ((await database.info()) === undefined) {
    throw new NoSuchVault(vault, parts.files.names());
  }
  const file = parts.files.read(vault);
  const url = publicAddress(options.url ?? file?.url ?? parts.address());
  context.progress(`checking ${url}, which takes 30 s`);
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
        : `${bad.length} of ${findings.length} checks failed: ${bad.map(({ name }) => name).join(", ")}.`,
    details: { vault, url, findings },
  };
}
