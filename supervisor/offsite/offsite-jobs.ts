import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { writeDurably } from "../../core/durable-file.ts";
import { Failure } from "../../core/failure.ts";
import { backupPlaces, databaseUrl } from "../backup/backup-jobs.ts";
import { drillRestore } from "../backup/drill.ts";
import { listBackups, newestBackup } from "../backup/manifest.ts";
import { dropScratch } from "../backup/scratch-database.ts";
import { watchSize } from "../backup/size-cap.ts";
import type { Environment } from "../../core/environment.ts";
import { freeBytesOf } from "../../core/free-bytes.ts";
import { sizeWords } from "../../core/size.ts";
import { operatorFile, type Home } from "../home/home.ts";
import { readSecretsFile } from "../home/secrets.ts";
import { scheduleOf } from "../jobs/config.ts";
import type { Job, JobContext, JobOutcome } from "../jobs/job.ts";
import type { Couch } from "../vaults/couch.ts";
import { SCRATCH_PREFIX } from "../vaults/database.ts";
import { optionsOf } from "../vaults/job-parts.ts";
import { describeDrilled } from "../vaults/backup-jobs.ts";
import { drillRestore as drillNotes } from "../vaults/restore-drill.ts";
import type { Context } from "../context.ts";
import { pruneOffsite } from "./prune.ts";
import { pullBackup } from "./pull.ts";
import { pushBackup } from "./push.ts";
import {
  findOffsite,
  needOffsite,
  noTarget,
  openOffsite,
  stagingOf,
  type OffsitePlace,
  type OffsiteSettings,
} from "./settings.ts";
import {
  backupsIn,
  chooseOffsite,
  OFFSITE_KINDS,
  type OffsiteExtra,
  type OffsiteKind,
} from "./store.ts";

type Parts = Pick<Context, "home" | "env" | "config" | "alarms">;

/** Configuration files of the operator, which a new machine needs as well. */
const OWN_FILES = ["gateway.local.yaml", "supervisor.local.yaml"] as const;

const DRILL_SUFFIX = "_offsite_drill";
export const OFFSITE_SIZE_FINGERPRINT = "offsite-size";

const fetchOptions = z.strictObject({
  kind: z.enum(OFFSITE_KINDS).default("postgres"),
  name: z.string().optional(),
});

/** Jobs for off-site backups: uploaded each night, fetched on demand, tested each month. */
export function offsiteJobs(parts: Parts): readonly Job[] {
  const { offsite_copy: copy, offsite_drill: drill } = parts.config.jobs;
  return [
    {
      name: "offsite-copy",
      description:
        "Upload the newest backups, encrypted, to the off-site target.",
      schedule: scheduleOf(copy),
      run: (context) => copyNewest(parts, context),
      cleanUp: async () => removeLocal(parts.home, "copy"),
    },
    {
      name: "offsite-fetch",
      description: "Download a backup from the off-site target.",
      purpose: "restore",
      schedule: { cron: null, timeoutMs: copy.timeout, retries: 0 },
      options: [
        {
          name: "kind",
          kind: "choice",
          label: "Backup of",
          values: () => OFFSITE_KINDS,
          otherwise: "postgres",
        },
        {
          name: "name",
          kind: "text",
          label: "Name of the backup",
          note: "Defaults to the newest.",
        },
      ],
      check: (options) => void checkFetch(parts, options),
      run: (context) => fetchAsked(parts, context),
      cleanUp: async () => removeLocal(parts.home, "fetch"),
    },
    {
      name: "offsite-drill",
      description:
        "Download the newest off-site backup of Postgres and restore it into a scratch database.",
      schedule: scheduleOf(drill),
      run: (context) =>
        withPulled(parts, "postgres", context, (directory) =>
          drillRestore(
            {
              ...backupPlaces(parts.home, parts.env),
              directory,
              databaseUrl: databaseUrl(parts.env),
              scratch: DRILL_SUFFIX,
            },
            context,
          ),
        ),
      cleanUp: async (signal) => {
        removeLocal(parts.home, drillUse("postgres"));
        await dropScratch(databaseUrl(parts.env), DRILL_SUFFIX, signal);
      },
    },
  ];
}

/** The same drill for the notes, if this supervisor has access to their store. */
export function notesOffsiteDrill(
  parts: Parts,
  couch: Couch,
  busy: Set<string>,
): Job {
  return {
    name: "notes-offsite-drill",
    description:
      "Download the newest off-site backup of the notes and restore it into scratch databases.",
    schedule: scheduleOf(parts.config.jobs.notes_offsite_drill),
    run: (context) =>
      withPulled(parts, "notes", context, async (directory) => {
        const [name = ""] = listBackups(directory);
        const { signal, progress } = context;
        const backup = join(directory, name);
        const vaults = await drillNotes({
          couch,
          backup,
          scratch: `${SCRATCH_PREFIX}offsite_`,
          busy,
          freeBytes: () => freeBytesOf(parts.home.root),
          signal,
          progress,
        });
        return {
          status: "done",
          summary: `the off-site backup ${name} restores: ${describeDrilled(vaults)}.`,
          details: { backup: name, vaults },
        };
      }),
    // Scratch databases are dropped when the maintenance of the vaults starts.
    cleanUp: async () => removeLocal(parts.home, drillUse("notes")),
  };
}

const notSetUp = (env: Environment): JobOutcome => ({
  status: "skipped",
  summary: noTarget(env),
});

async function copyNewest(
  { home, env, config, alarms }: Parts,
  { signal, progress, now }: JobContext,
): Promise<JobOutcome> {
  const settings = findOffsite(home, env);
  if (settings === undefined) {
    alarms.clear(OFFSITE_SIZE_FINGERPRINT);
    return notSetUp(env);
  }
  const place = await openOffsite(home, env, settings, "copy");
  const sent = await pushNewest(place, home, { signal, progress, now });
  progress("removing old backups from the target");
  const { postgres_backup, notes_backup, time_zone } = config.jobs;
  const most = config.backups.at_most;
  const { removed, bytes } = await pruneOffsite(
    place,
    {
      keep: { postgres: postgres_backup.keep, notes: notes_backup.keep },
      timeZone: time_zone,
      most,
      now: now(),
    },
    signal,
  );
  watchSize(
    alarms,
    OFFSITE_SIZE_FINGERPRINT,
    `at ${settings.target}`,
    bytes,
    most,
  );
  const old = removed === 0 ? "" : `; ${removed} old removed`;
  return sent.length === 0
    ? {
        status: "skipped",
        summary: `${settings.target} already has the newest backups${old}.`,
      }
    : {
        status: "done",
        summary: `uploaded ${sent.join(" and ")} to ${settings.target}, which has ${sizeWords(bytes)} now${old}.`,
        details: { sent, removed, bytes },
      };
}

/** Uploads the newest backups that are not at the target. Returns their names and sizes. */
async function pushNewest(
  place: OffsitePlace,
  home: Home,
  { signal, progress, now }: Pick<JobContext, "signal" | "progress" | "now">,
): Promise<readonly string[]> {
  const there = backupsIn(await place.remote.list(signal));
  const record = recordOfUploads(home);
  const where = `${place.settings.target} ${place.folder}\n`;
  const isKnown = existsSync(record) && readFileSync(record, "utf8") === where;
  if (isKnown && there.length === 0) {
    throw new Failure(
      `${place.settings.target} has none of the backups that were uploaded to it. If it is a disk that is not mounted, mount it; if the backups were removed on purpose, delete ${record}.`,
    );
  }
  const sent: string[] = [];
  for (const kind of OFFSITE_KINDS) {
    const name = newestBackup(join(home.backups, kind), now());
    if (
      name === undefined ||
      there.some((each) => each.kind === kind && each.name === name)
    ) {
      continue;
    }
    const bytes = await pushBackup(
      place,
      { kind, name },
      {
        signal,
        progress,
        backup: join(home.backups, kind, name),
        extra: kind === "postgres" ? extraOf(home) : undefined,
      },
    );
    sent.push(`${kind} ${name} (${sizeWords(bytes)})`);
  }
  if (!isKnown && there.length + sent.length > 0) {
    mkdirSync(dirname(record), { recursive: true, mode: 0o700 });
    writeDurably(record, where);
  }
  return sent;
}

/** Names the target and the folder that contain backups: the mount point of a missing disk is an empty target. */
function recordOfUploads(home: Home): string {
  return stagingOf(home, "uploaded-to");
}

/** Undefined if the secrets are stored elsewhere, in the configuration of a deployment. */
function extraOf(home: Home): OffsiteExtra {
  const { saltKey, masterKey } = readSecretsFile(home) ?? {};
  if (saltKey === undefined || masterKey === undefined) {
    return undefined;
  }
  const files = OWN_FILES.map((name) => ({
    name,
    path: operatorFile(home, name),
  }))
    .filter(({ path }) => existsSync(path))
    .map(({ name, path }) => [name, readFileSync(path, "utf8")]);
  return { saltKey, masterKey, files: Object.fromEntries(files) };
}

/** Throws a Failure for what cannot be fetched. */
function checkFetch(
  { home, env }: Parts,
  options: JobContext["options"],
): z.output<typeof fetchOptions> & { readonly settings: OffsiteSettings } {
  const asked = optionsOf(fetchOptions, options);
  return { ...asked, settings: needOffsite(home, env) };
}

async function fetchAsked(
  parts: Parts,
  { signal, progress, options, now }: JobContext,
): Promise<JobOutcome> {
  const { home, env } = parts;
  const { kind, name, settings } = checkFetch(parts, options);
  const place = await openOffsite(home, env, settings, "fetch");
  const backup = await chooseOffsite(place, kind, name, now(), signal);
  const details = { kind, backup: backup.name };
  const directory = join(home.backups, kind);
  if (listBackups(directory).includes(backup.name)) {
    return {
      status: "skipped",
      summary: `${backup.name} is already on this machine.`,
      details,
    };
  }
  await pullBackup(place, backup, directory, { signal, progress });
  return {
    status: "done",
    summary: `${backup.name} downloaded and verified: restore it with ${kind === "postgres" ? `\`hearth restore ${backup.name}\`` : `\`hearth notes restore ${backup.name}\``}.`,
    details,
  };
}

function drillUse(kind: OffsiteKind): string {
  return `drill-${kind}`;
}

function pulledTo(home: Home, use: string): string {
  return `${stagingOf(home, use)}-pulled`;
}

function removeLocal(home: Home, use: string): void {
  for (const path of [stagingOf(home, use), pulledTo(home, use)]) {
    rmSync(path, { recursive: true, force: true });
  }
}

/** Downloads the newest backup of a kind into a scratch directory, and removes it after the work. */
async function withPulled(
  { home, env }: Parts,
  kind: OffsiteKind,
  { signal, progress, now }: JobContext,
  work: (directory: string) => Promise<JobOutcome>,
): Promise<JobOutcome> {
  const settings = findOffsite(home, env);
  if (settings === undefined) {
    return notSetUp(env);
  }
  const use = drillUse(kind);
  const place: OffsitePlace = await openOffsite(home, env, settings, use);
  const directory = pulledTo(home, use);
  removeLocal(home, use);
  try {
    const newest = await chooseOffsite(place, kind, undefined, now(), signal);
    await pullBackup(place, newest, directory, { signal, progress });
    return await work(directory);
  } finally {
    removeLocal(home, use);
  }
}
