import type { JobOption } from "../../../supervisor/jobs/job.ts";
import type { JobView, RunView } from "../../../supervisor/jobs/runner.ts";
import type { Field } from "../field.ts";
import type { Look } from "../../../core/shapes.ts";
import { ago, ahead, moment } from "../../../core/words.ts";
import {
  causeOf,
  outcomeOf,
  lookOfRun,
  durationOf,
  viewProgress,
} from "./run-words.ts";
import { scheduleInWords } from "./schedule-words.ts";

interface Verdict {
  readonly title: string;
  readonly look: Look;
}

/** The heading above all jobs. */
export function jobsHeading(jobs: readonly JobView[]): Verdict {
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
          ? `${busy.name} is running.`
          : `${running.length} jobs are running.`,
    };
  }
  if (ran.length === 0) {
    return { look: "none", title: "No job has run yet." };
  }
  const cutOff = ran.some(({ last }) => lookOfRun(last) === "warn");
  return {
    look: "ok",
    title: cutOff ? "No job failed." : "All jobs succeeded.",
  };
}

/** Failed, and not running again. */
function hasFailed({ last, running }: JobView): boolean {
  return running === null && last?.status === "failed";
}

/** All jobs, routine work apart from restores: failed ones first, then running ones, then by their next run. */
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
  const rows = (purpose: JobView["purpose"]) =>
    sorted
      .filter((job) => job.purpose === purpose)
      .map((job) => viewJob(job, optionsOf(job.name), now));
  return {
    failed: sorted.filter(hasFailed).map(({ name, last }) => ({
      name,
      text: last?.text ?? "",
      tries: last?.attempts ?? 1,
      since: last === null ? "" : ago(last.endedAt ?? last.startedAt, now),
      command: `hearth jobs run ${name}`,
    })),
    groups: [
      { title: "Routine", jobs: rows(undefined) },
      { title: "Restore after a loss", jobs: rows("restore") },
    ].filter((group) => group.jobs.length > 0),
    count: jobs.length,
    noSchedules: jobs.every(({ cron }) => cron === null),
  };
}

function viewJob(job: JobView, options: readonly JobOption[], now: number) {
  const { name, description, cron, last, running, nextAt } = job;
  const took = last === null ? null : durationOf(last);
  return {
    name,
    description,
    look: lookOfRun(running ?? last),
    last:
      last === null
        ? "never"
        : `${last.status} ${ago(last.endedAt ?? last.startedAt, now)}${took === null ? "" : `, took ${took}`}`,
    text: last?.text ?? "",
    next: nextAt === null ? "on demand" : ahead(nextAt, now),
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

interface JobPageFacts {
  readonly job: JobView;
  readonly options: readonly JobOption[];
  /** Newest first. */
  readonly runs: readonly RunView[];
  /** Number of newer runs. */
  readonly from: number;
  /** Whether there are older runs. */
  readonly more: boolean;
  readonly now: number;
}

/** One job and its runs. */
export function viewJobPage(facts: JobPageFacts) {
  const { job, options, runs, from, more, now } = facts;
  const { timeZone, nextAt } = job;
  const run = job.running ?? job.last;
  return {
    ...viewJob(job, options, now),
    title: `${job.name} ${outcomeOf(run)}.`,
    nextAt: nextAt === null ? null : moment(nextAt, timeZone),
    timeZone,
    runs: runs.map((each) => ({
      id: each.id,
      look: lookOfRun(each),
      status: each.status,
      started: moment(each.startedAt, timeZone),
      cause: causeOf(each, timeZone),
      took: durationOf(each) ?? "–",
      tries: each.attempts > 1 ? `${each.attempts} attempts` : "",
      text: each.text,
    })),
    newer: from === 0 ? null : Math.max(0, from - runs.length),
    older: more ? from + runs.length : null,
  };
}

const MAX_OUTPUT = 60_000;

/** One run with its output. */
export function viewRunPage(run: RunView, timeZone: string, now: number) {
  const output =
    run.details === null ? null : JSON.stringify(run.details, null, 2);
  return {
    title: `${run.job} ${outcomeOf(run)}.`,
    look: lookOfRun(run),
    name: run.job,
    id: run.id,
    text: run.text,
    progress: run.status === "running" ? viewProgress(run, now) : null,
    figures: [
      {
        name: "Started",
        value: moment(run.startedAt, timeZone),
        note: causeOf(run, timeZone),
      },
      {
        name: "Duration",
        value: durationOf(run) ?? "–",
        note:
          run.endedAt === null
            ? "still running"
            : `ended ${moment(run.endedAt, timeZone)}`,
      },
      {
        name: "Attempts",
        value: run.attempts === 0 ? "–" : String(run.attempts),
        note:
          run.attempts > 1 ? "failed attempts are retried after a delay" : "",
      },
    ],
    report: reportOf(run),
    output: output?.slice(0, MAX_OUTPUT) ?? null,
    cut: (output?.length ?? 0) > MAX_OUTPUT,
  };
}

/** The address of the report that the run created. */
function reportOf({ details }: RunView): string | null {
  const path = details?.["report"];
  return typeof path === "string" && /^\/reports\/[\w.-]+$/.test(path)
    ? path
    : null;
}
