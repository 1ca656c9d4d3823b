import type { JobOption } from "../../../supervisor/jobs/job.ts";
import type { JobView, RunView } from "../../../supervisor/jobs/runner.ts";
import type { Field } from "../field.ts";
import type { Look } from "../../../core/shapes.ts";
import { ago, ahead, moment } from "../../../core/words.ts";
import {
  causeOf,
  fateOf,
  lookOfRun,
  tookOf,
  viewProgress,
} from "./run-words.ts";
import { scheduleInWords } from "./schedule-words.ts";

export interface Verdict {
  readonly title: string;
  readonly look: Look;
}

/** The heading above all jobs. */
export function judgeJobs(jobs: readonly JobView[]): Verdict {
  const failed = jobs.filter(hasFailed);
  const running = jobs.filter(({ running }) => running !== null);
  const ran = jobs.filter(({ last }) => last !== null);
  const [first] = failed;
  if (first !== undefined) {
    return {
      look: "warn",
      title:
        failed.length === 1
          ? `${first.name} failed.`
          : `${failed.length} jobs failed.`,
    };
  }
  const [busy] = running;
  if (busy !== undefined) {
    return {
      look: "rest",
      title:
        running.length === 1
          ? `${busy.name} is at work.`
          : `${running.length} jobs are at work.`,
    };
  }
  if (ran.length === 0) {
    return { look: "none", title: "No job has run yet." };
  }
  const cutOff = ran.some(({ last }) => lookOfRun(last) === "warn");
  return {
    look: "ok",
    title: cutOff ? "No job failed." : "All jobs did their work.",
  };
}

/** Failed, and not at it again. */
function hasFailed({ last, running }: JobView): boolean {
  return running === null && last?.status === "failed";
}

/** All jobs: those that failed first, then those at work, then by what comes next. */
export function viewJobs(
  jobs: readonly JobView[],
  optionsOf: (name: string) => readonly JobOption[],
  now: number,
) {
  const rank = (job: JobView) =>
    hasFailed(job) ? 0 : job.running !== null ? 1 : 2;
  const sorted = jobs.toSorted(
    (a, b) =>
      rank(a) - rank(b) ||
      (a.nextAt ?? Infinity) - (b.nextAt ?? Infinity) ||
      (a.name < b.name ? -1 : 1),
  );
  return {
    timeZone: jobs[0]?.timeZone ?? "",
    failed: sorted.filter(hasFailed).map(({ name, last }) => ({
      name,
      text: last?.text ?? "",
      tries: last?.attempts ?? 1,
      since: last === null ? "" : ago(last.endedAt ?? last.startedAt, now),
      command: `hearth jobs run ${name}`,
    })),
    jobs: sorted.map((job) => ({
      ...viewJob(job, optionsOf(job.name), now),
      idle: job.running === null && job.last === null && job.nextAt === null,
    })),
    nothingByItself: jobs.every(({ cron }) => cron === null),
  };
}

function viewJob(job: JobView, options: readonly JobOption[], now: number) {
  const { name, description, cron, last, running, nextAt } = job;
  const took = last === null ? null : tookOf(last);
  return {
    name,
    description,
    look: lookOfRun(running ?? last),
    last:
      last === null
        ? "never yet"
        : `${last.status} ${ago(last.endedAt ?? last.startedAt, now)}${took === null ? "" : `, took ${took}`}`,
    text: last?.text ?? "",
    next: nextAt === null ? "when asked" : ahead(nextAt, now),
    cron,
    schedule: cron === null ? null : scheduleInWords(cron),
    progress: running === null ? null : viewProgress(running, now),
    fields: options.map(fieldOf),
  };
}

function fieldOf(option: JobOption): Field {
  const { name, label, note } = option;
  const field = { name, label, ...(note === undefined ? {} : { note }) };
  return option.kind === "choice"
    ? {
        ...field,
        kind: "choice",
        values: [
          ["", option.otherwise],
          ...option.values().map((value) => [value, value] as const),
        ],
      }
    : { ...field, kind: option.kind };
}

export interface JobPageFacts {
  readonly job: JobView;
  readonly options: readonly JobOption[];
  /** Newest first. */
  readonly runs: readonly RunView[];
  /** How many newer ones there are. */
  readonly from: number;
  /** There are older ones. */
  readonly more: boolean;
  readonly now: number;
}

/** One job and its runs so far. */
export function viewJobPage(facts: JobPageFacts) {
  const { job, options, runs, from, more, now } = facts;
  const { timeZone, nextAt } = job;
  const run = job.running ?? job.last;
  return {
    ...viewJob(job, options, now),
    title: `${job.name} ${fateOf(run)}.`,
    nextAt: nextAt === null ? null : moment(nextAt, timeZone),
    timeZone,
    runs: runs.map((each) => ({
      id: each.id,
      look: lookOfRun(each),
      status: each.status,
      began: moment(each.startedAt, timeZone),
      cause: causeOf(each, timeZone),
      took: tookOf(each) ?? "–",
      tries: each.attempts > 1 ? `${each.attempts} tries` : "",
      text: each.text,
    })),
    newer: from === 0 ? null : Math.max(0, from - runs.length),
    older: more ? from + runs.length : null,
  };
}

const MOST_OUTPUT = 60_000;

/** One run with all that it left. */
export function viewRunPage(run: RunView, timeZone: string, now: number) {
  const output =
    run.details === null ? null : JSON.stringify(run.details, null, 2);
  return {
    title: `${run.job} ${fateOf(run)}.`,
    look: lookOfRun(run),
    name: run.job,
    id: run.id,
    text: run.text,
    progress: run.status === "running" ? viewProgress(run, now) : null,
    figures: [
      {
        name: "Began",
        value: moment(run.startedAt, timeZone),
        note: causeOf(run, timeZone),
      },
      {
        name: "Took",
        value: tookOf(run) ?? "–",
        note:
          run.endedAt === null
            ? "not over yet"
            : `until ${moment(run.endedAt, timeZone)}`,
      },
      {
        name: "Tries",
        value: run.attempts === 0 ? "–" : String(run.attempts),
        note:
          run.attempts > 1
            ? "a failed try is followed by another, after a wait"
            : "",
      },
    ],
    report: reportOf(run),
    output: output?.slice(0, MOST_OUTPUT) ?? null,
    cut: (output?.length ?? 0) > MOST_OUTPUT,
  };
}

/** Where the report lies that the run made. */
function reportOf({ details }: RunView): string | null {
  const path = details?.["report"];
  return typeof path === "string" && /^\/reports\/[\w.-]+$/.test(path)
    ? path
    : null;
}
