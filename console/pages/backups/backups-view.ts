import { sizeWords } from "../../../core/size.ts";
import type { Look } from "../../../core/shapes.ts";
import { ago, momentFrom } from "../../../core/words.ts";
import { compareAges } from "../../../supervisor/backup/manifest.ts";
import type { JobView, RunView } from "../../../supervisor/jobs/runner.ts";
import type { OffsiteWarning } from "../../../supervisor/offsite/warning.ts";
import {
  BACKUP_JOBS,
  BACKUP_KINDS,
  type BackupKind,
  type FoundBackup,
} from "./backup-reader.ts";

export interface BackupsFacts {
  readonly backups: readonly FoundBackup[];
  readonly jobs: readonly JobView[];
  /** Location of off-site backups without credentials; null if none is configured. */
  readonly offsiteTarget: string | null;
  /** Shown while no backup leaves this machine. */
  readonly offsiteWarning: OffsiteWarning | undefined;
  /** Whether another host gets copies. */
  readonly hasPeer: boolean;
  /** How commands are typed here, such as `npx hearth`. */
  readonly hearth: string;
  readonly now: number;
  /** IANA name. */
  readonly timeZone: string;
}

const TITLES: Readonly<Record<BackupKind, string>> = {
  postgres: "Keys and spend (Postgres)",
  notes: "Notes",
};

/** All jobs that take, check or send backups. */
const JOB_NAMES = [
  ...Object.values(BACKUP_JOBS).flatMap(({ backup, drill }) => [backup, drill]),
  "backup-copy",
  "offsite-copy",
  "offsite-drill",
  "notes-offsite-drill",
];

/** Heading and shape of the page: what is wrong first, else the age of the newest backup. */
export function backupsHeading(facts: BackupsFacts): {
  readonly title: string;
  readonly look: Look;
} {
  const { backups, jobs, now } = facts;
  const broken = backups.filter(({ problem }) => problem !== null);
  if (broken.length > 0) {
    return {
      look: "bad",
      title:
        broken.length === 1
          ? "One backup is unusable."
          : `${broken.length} backups are unusable.`,
    };
  }
  const failed = jobs.find(
    ({ name, last, running }) =>
      JOB_NAMES.includes(name) && running === null && last?.status === "failed",
  );
  if (failed !== undefined) {
    return { look: "warn", title: `${failed.name} failed.` };
  }
  if (backups.length === 0) {
    return { look: "none", title: "No backups yet." };
  }
  return { look: "ok", title: newestWords(backups, now) };
}

function newestWords(backups: readonly FoundBackup[], now: number): string {
  const [newest = 0] = backups
    .map(({ takenAt }) => takenAt)
    .toSorted(compareAges(now));
  return `The newest backup was taken ${ago(newest, now)}.`;
}

export function viewBackups(facts: BackupsFacts) {
  const { backups, jobs, now } = facts;
  const jobOf = (name: string) => jobs.find((job) => job.name === name);
  return {
    newest: backups.length === 0 ? null : newestWords(backups, now),
    size: sizeWords(backups.reduce((sum, { bytes }) => sum + bytes, 0)),
    kinds: BACKUP_KINDS.map((kind) => {
      const { backup, drill } = BACKUP_JOBS[kind];
      return {
        kind,
        title: TITLES[kind],
        backups: backups
          .filter((each) => each.kind === kind)
          .map((each) => viewBackup(each, facts)),
        actions: [
          actionOf(jobOf(backup), "Back up now"),
          actionOf(jobOf(drill), "Run drill now"),
        ].flatMap((action) => action ?? []),
      };
    }).filter(
      ({ backups, actions }) => backups.length > 0 || actions.length > 0,
    ),
    elsewhere: viewElsewhere(facts, jobOf),
    offsiteWarning: facts.offsiteWarning ?? null,
  };
}

function viewBackup(
  backup: FoundBackup,
  { now, timeZone, hearth }: BackupsFacts,
) {
  const { kind, name, takenAt, bytes, contents, problem, drill } = backup;
  return {
    name,
    taken: momentFrom(now, takenAt, timeZone),
    age: ago(takenAt, now),
    size: sizeWords(bytes),
    contents,
    problem,
    drill: viewDrill(drill, now),
    restore:
      kind === "postgres"
        ? `${hearth} restore ${name}`
        : `${hearth} notes restore ${name}`,
  };
}

function viewDrill(drill: RunView | null, now: number) {
  if (drill === null) {
    return { look: "none" as Look, words: "no drill", text: "", href: null };
  }
  const done = drill.status === "done";
  return {
    look: (done ? "ok" : "bad") as Look,
    words: `${done ? "restored in a drill" : "drill failed"} ${ago(drill.endedAt ?? drill.startedAt, now)}`,
    text: done ? "" : drill.text,
    href: `/jobs/${drill.job}/${drill.id}`,
  };
}

function actionOf(job: JobView | undefined, verb: string) {
  return job === undefined || job.running !== null
    ? undefined
    : { verb, action: `/jobs/${job.name}/run`, question: job.description };
}

/** Where copies of the backups are, with the last run of what sends or checks them. */
function viewElsewhere(
  { offsiteTarget, hasPeer, now }: BackupsFacts,
  jobOf: (name: string) => JobView | undefined,
) {
  const rows = [
    ...(hasPeer ? [["Copies on the other host", "backup-copy"] as const] : []),
    ...(offsiteTarget === null
      ? []
      : ([
          [`Off-site copies at ${offsiteTarget}`, "offsite-copy"],
          ["Off-site drill of keys and spend", "offsite-drill"],
          ["Off-site drill of the notes", "notes-offsite-drill"],
        ] as const)),
  ];
  return rows.flatMap(([title, name]) => {
    const job = jobOf(name);
    return job === undefined ? [] : [{ title, ...viewLast(job, now) }];
  });
}

function viewLast(job: JobView, now: number) {
  const { name, last, running } = job;
  const look: Look =
    running !== null
      ? "rest"
      : last === null
        ? "none"
        : last.status === "failed"
          ? "bad"
          : ["done", "skipped"].includes(last.status)
            ? "ok"
            : "warn";
  return {
    name,
    look,
    words:
      running !== null
        ? "running"
        : last === null
          ? "has not run yet"
          : `${last.status} ${ago(last.endedAt ?? last.startedAt, now)}`,
    text: last?.text ?? "",
    actions: [actionOf(job, "Run now")].flatMap((action) => action ?? []),
  };
}
