import { join } from "node:path";
import { DAY_MS } from "../../core/duration.ts";
import { counted } from "../../core/words.ts";
import type { Home } from "../home/home.ts";
import { readVariable, type Environment } from "../../core/environment.ts";
import { freeBytesOf } from "../../core/free-bytes.ts";
import { Failure } from "../../core/failure.ts";
import { scheduleOf } from "../jobs/config.ts";
import type { Job, JobContext, JobOutcome } from "../jobs/job.ts";
import type { Context } from "../context.ts";
import { sizeOf, verifyFiles } from "./backup-files.ts";
import { drillRestore } from "./drill.ts";
import { redisPlace } from "./forget-limits.ts";
import { peerOf } from "./peer.ts";
import { pruneBackups } from "./prune-backups.ts";
import { checkRestore, restore } from "./restore.ts";
import { restoreAddress } from "./restore-address.ts";
import { dropScratch } from "./scratch-database.ts";
import { makeRoom, watchLocalSize } from "./size-cap.ts";
import { sizeWords } from "../../core/size.ts";
import { takeBackup } from "./take-backup.ts";
import { chooseBackup, whichBackup } from "./which-backup.ts";

const DRILL_SUFFIX = "_drill";

interface BackupPlaces {
  /** `backups/postgres` */
  readonly directory: string;
  /** The gateway's SQL files: a restore starts with the tables they create. */
  readonly migrations: string;
  readonly env: Environment;
  /** Bytes that are free where Postgres keeps its files; undefined if its disk is not known. */
  readonly freeBytes: () => number | undefined;
}

export function backupPlaces(home: Home, env: Environment): BackupPlaces {
  return {
    directory: join(home.backups, "postgres"),
    migrations:
      readVariable("HEARTH_MIGRATIONS", env) ??
      join(home.project, "gateway", "database", "migrations"),
    env,
    freeBytes: () => (sharesDisk(env) ? freeBytesOf(home.root) : undefined),
  };
}

/** Whether Postgres is on the disk of the home: in a cluster and with a supervisor of checks only, it may be anywhere. */
function sharesDisk(env: Environment): boolean {
  return ["process", "docker"].includes(
    readVariable("HEARTH_RUNTIME", env) ?? "none",
  );
}

/** Jobs for backups of Postgres: take, drill, verify, restore. */
export function backupJobs(context: Context): readonly Job[] {
  const { home, env, config } = context;
  const places = backupPlaces(home, env);
  const own = readVariable("BACKUP_DATABASE_URL", env) !== undefined;
  const { postgres_backup: backup, restore_drill: drill } = config.jobs;
  return [
    {
      name: "postgres-backup",
      description: "Copy every table of Postgres, as of one moment.",
      schedule: { ...scheduleOf(backup), cron: own ? backup.cron : null },
      options: [
        {
          name: "pgDump",
          kind: "tick",
          label: "Include a pg_dump, if that tool is installed",
        },
      ],
      run: (job) => backUp(places, context, job),
    },
    {
      name: "restore-drill",
      description: "Restore the newest backup into a scratch database.",
      schedule: { ...scheduleOf(drill), cron: own ? drill.cron : null },
      run: (job) =>
        drillRestore(
          { ...places, databaseUrl: databaseUrl(env), scratch: DRILL_SUFFIX },
          job,
        ),
      cleanUp: async (signal) =>
        dropScratch(databaseUrl(env), DRILL_SUFFIX, signal),
    },
    {
      name: "backup-verify",
      description: "Verify the checksums of a backup.",
      schedule: { cron: null, timeoutMs: backup.timeout, retries: 0 },
      options: [whichBackup(places.directory)],
      check: (options) =>
        void requestedBackup(places.directory, options, Date.now()),
      run: (job) => verify(places.directory, job),
    },
    restoreJob(context, places),
  ];
}

function restoreJob(context: Context, places: BackupPlaces): Job {
  const { env } = context;
  const { directory } = places;
  const target = () => restoreAddress(env);
  return {
    name: "restore",
    description: "Restore a backup into an empty database.",
    purpose: "restore",
    schedule: { cron: null, timeoutMs: DAY_MS, retries: 0 },
    options: [
      whichBackup(directory),
      {
        name: "setAside",
        kind: "tick",
        label: "Keep a non-empty database under another name",
        note: "Otherwise a restore fails if the database is not empty.",
      },
    ],
    check: (options) =>
      void checkRestore(
        { directory, databaseUrl: target() },
        options,
        Date.now(),
      ),
    run: (job) =>
      restore(
        {
          ...places,
          databaseUrl: target(),
          restartGateway: restartOf(context),
          redis: redisPlace(env),
          peer: peerOf(env, context.credentials().operatorPassword),
        },
        job,
      ),
  };
}

/** Restarts the gateway of this host after a restore, if the supervisor can. */
function restartOf({ runtime }: Context): (() => Promise<void>) | undefined {
  const running = runtime();
  const gateway = running?.inspect("gateway");
  return running === undefined ||
    gateway === undefined ||
    gateway.pod !== undefined
    ? undefined
    : () => running.restart("gateway", "the database was restored", "operator");
}

async function backUp(
  { directory, env }: BackupPlaces,
  { home, config, alarms }: Context,
  { signal, now, progress, options }: JobContext,
): Promise<JobOutcome> {
  const { postgres_backup, time_zone } = config.jobs;
  const { at_most: most } = config.backups;
  const early = makeRoom(home.backups, "postgres", most, now());
  const { name, manifest } = await takeBackup({
    databaseUrl: databaseUrl(env),
    directory,
    now,
    signal,
    progress,
    pgDump: options["pgDump"] === true,
  });
  const removed =
    early + pruneBackups(directory, postgres_backup.keep, time_zone, now());
  watchLocalSize(alarms, home.backups, most);
  const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
  const bytes = sizeOf(join(directory, name));
  return {
    status: "done",
    summary: `${name}: ${rows} rows in ${sizeWords(bytes)}${removed === 0 ? "" : `; ${counted(removed, "old one")} removed`}.`,
    details: { backup: name, rows, bytes, removed, sums: manifest.sums },
  };
}

async function verify(
  directory: string,
  { signal, progress, options, now }: JobContext,
): Promise<JobOutcome> {
  const name = requestedBackup(directory, options, now());
  await verifyFiles(join(directory, name), signal, progress);
  return { status: "done", summary: `${name} is intact.` };
}

function requestedBackup(
  directory: string,
  { backup }: JobContext["options"],
  now: number,
): string {
  return chooseBackup(
    "postgres",
    directory,
    typeof backup === "string" ? backup : undefined,
    now,
  );
}

export function databaseUrl(env: Environment): string {
  const url = readVariable("BACKUP_DATABASE_URL", env);
  if (url !== undefined) {
    return url;
  }
  throw new Failure(
    "this supervisor cannot read Postgres: set BACKUP_DATABASE_URL to its address with the role backup.",
  );
}
