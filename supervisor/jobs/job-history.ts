import type { DatabaseSync } from "node:sqlite";
import { textOf } from "../../core/failure.ts";

/** Tables of jobs in the history file. */
export const JOB_TABLES = `
  CREATE TABLE job_schedules (job TEXT PRIMARY KEY, cron TEXT NOT NULL, served INTEGER NOT NULL) STRICT;
  CREATE TABLE job_runs (
    id INTEGER PRIMARY KEY, job TEXT NOT NULL, due INTEGER, caught_up INTEGER NOT NULL, started_at INTEGER NOT NULL,
    ended_at INTEGER, status TEXT NOT NULL, attempts INTEGER NOT NULL, text TEXT NOT NULL, details TEXT
  ) STRICT;
  CREATE INDEX job_runs_by_job ON job_runs (job, id)`;

/** Who asked for a run on demand; null for the operator, and for scheduled runs. */
export const ASKED_BY_COLUMN = "ALTER TABLE job_runs ADD COLUMN asked_by TEXT";

/**
 * done, skipped: reported by the job; failed: after all attempts; stopped: by a person; interrupted: the supervisor ended
 * during the run, which is repeated once after the restart.
 */
type RunStatus =
  "running" | "done" | "skipped" | "failed" | "stopped" | "interrupted";

/** One run of a job with all its attempts. Times in milliseconds since 1970. */
export interface JobRun {
  readonly id: number;
  readonly job: string;
  /** The scheduled time; null for a run on demand. */
  readonly due: number | null;
  /** The user that asked for a run on demand; null for the operator. */
  readonly askedBy: string | null;
  /** Started late, because no supervisor was running. */
  readonly caughtUp: boolean;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly status: RunStatus;
  readonly attempts: number;
  /** The summary, or why it failed. */
  readonly text: string;
  readonly details: Readonly<Record<string, unknown>> | null;
}

export interface JobHistory {
  /** The last due time that was served under this schedule; undefined if the job or its schedule is new. */
  readonly servedUntil: (job: string, cron: string) => number | undefined;
  readonly serve: (job: string, cron: string, due: number) => void;
  readonly recordStart: (
    run: Pick<JobRun, "job" | "due" | "caughtUp" | "startedAt" | "askedBy">,
  ) => number;
  readonly end: (
    id: number,
    end: Pick<JobRun, "endedAt" | "status" | "attempts" | "text" | "details">,
  ) => void;
  /** Marks the unfinished runs of the previous process as interrupted. */
  readonly closeAbandoned: (now: number) => void;
  /** Newest first. */
  readonly runsOf: (job: string, limit: number) => readonly JobRun[];
  readonly run: (id: number) => JobRun | undefined;
  /** Deletes runs that ended before; the last hundred of each job are kept. */
  readonly forgetBefore: (at: number) => number;
}

/** Runs that could not be written and are remembered. */
const MAX_UNWRITTEN = 50;

/**
 * Reads and writes the tables above. If the disk is full, `onTrouble` is notified and jobs continue: a run that could not be
 * written has a negative id, and `run` returns it from memory.
 */
export function openJobHistory(
  db: DatabaseSync,
  onTrouble: (sentence: string) => void,
): JobHistory {
  const quietly: Quietly = (write) => {
    try {
      return write();
    } catch (error) {
      onTrouble(`cannot write the history of jobs: ${textOf(error)}`);
      return undefined;
    }
  };
  const unwritten = new Map<number, JobRun>();
  return {
    ...openServedTimes(db, quietly),
    ...openRunWriter(db, quietly, unwritten),
    ...openRunReader(db, unwritten),
  };
}

type Quietly = <T>(write: () => T) => T | undefined;

function openServedTimes(
  db: DatabaseSync,
  quietly: Quietly,
): Pick<JobHistory, "servedUntil" | "serve"> {
  const served = db.prepare(
    "SELECT served FROM job_schedules WHERE job = ? AND cron = ?",
  );
  const serve = db.prepare(
    "INSERT OR REPLACE INTO job_schedules (job, cron, served) VALUES (?, ?, ?)",
  );
  return {
    servedUntil: (job, cron) => {
      const row = served.get(job, cron);
      return row === undefined ? undefined : Number(row["served"]);
    },
    serve: (job, cron, due) => void quietly(() => serve.run(job, cron, due)),
  };
}

function openRunWriter(
  db: DatabaseSync,
  quietly: Quietly,
  unwritten: Map<number, JobRun>,
): Pick<JobHistory, "recordStart" | "end" | "closeAbandoned" | "forgetBefore"> {
  const begin = db.prepare(
    "INSERT INTO job_runs (job, due, caught_up, started_at, asked_by, status, attempts, text) VALUES (?, ?, ?, ?, ?, 'running', 0, '')",
  );
  const end = db.prepare(
    "UPDATE job_runs SET ended_at = ?, status = ?, attempts = ?, text = ?, details = ? WHERE id = ?",
  );
  const abandon = db.prepare(
    `UPDATE job_runs SET status = 'interrupted', ended_at = ?, text = 'the supervisor ended during the run'
       WHERE status = 'running'`,
  );
  const forget = db.prepare(
    `DELETE FROM job_runs WHERE ended_at < ?1 AND id NOT IN (
       SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY job ORDER BY id DESC) AS place FROM job_runs)
         WHERE place <= 100)`,
  );
  let lastUnwritten = 0;
  const remember = (run: JobRun): number => {
    unwritten.set(run.id, run);
    unwritten.delete(run.id + MAX_UNWRITTEN);
    return run.id;
  };
  return {
    recordStart: (run) => {
      const { job, due, caughtUp, startedAt, askedBy } = run;
      const written = quietly(() =>
        begin.run(job, due, caughtUp ? 1 : 0, startedAt, askedBy),
      );
      return written === undefined
        ? remember({ ...run, ...STARTED, id: (lastUnwritten -= 1) })
        : Number(written.lastInsertRowid);
    },
    end: (id, ended) => {
      const run = unwritten.get(id);
      if (run !== undefined) {
        remember({ ...run, ...ended });
        return;
      }
      const { endedAt, status, attempts, text, details } = ended;
      const json = details === null ? null : JSON.stringify(details);
      quietly(() => end.run(endedAt, status, attempts, text, json, id));
    },
    closeAbandoned: (now) => void quietly(() => abandon.run(now)),
    forgetBefore: (at) => Number(quietly(() => forget.run(at))?.changes ?? 0),
  };
}

const STARTED = {
  endedAt: null,
  status: "running",
  attempts: 0,
  text: "",
  details: null,
} as const;

function openRunReader(
  db: DatabaseSync,
  unwritten: ReadonlyMap<number, JobRun>,
): Pick<JobHistory, "runsOf" | "run"> {
  const latest = db.prepare(
    "SELECT * FROM job_runs WHERE job = ? ORDER BY id DESC LIMIT ?",
  );
  const one = db.prepare("SELECT * FROM job_runs WHERE id = ?");
  return {
    runsOf: (job, limit) => latest.all(job, limit).map(runOf),
    run: (id) => unwritten.get(id) ?? one.all(id).map(runOf)[0],
  };
}

type Row = Readonly<Record<string, unknown>>;

function runOf(row: Row): JobRun {
  const numberOrNull = (value: unknown) =>
    value === null ? null : Number(value);
  return {
    id: Number(row["id"]),
    job: String(row["job"]),
    due: numberOrNull(row["due"]),
    caughtUp: row["caught_up"] === 1,
    askedBy: row["asked_by"] === null ? null : String(row["asked_by"]),
    startedAt: Number(row["started_at"]),
    endedAt: numberOrNull(row["ended_at"]),
    status: String(row["status"]) as RunStatus,
    attempts: Number(row["attempts"]),
    text: String(row["text"]),
    details:
      row["details"] === null
        ? null
        : (JSON.parse(String(row["details"])) as Record<string, unknown>),
  };
}
