import { inWords } from "../core/duration.ts";
import type { JobView, RunView } from "../supervisor/jobs/runner.ts";
import { forceWords } from "../supervisor/vaults/compaction-words.ts";
import { runJob, toneOf } from "./job-run.ts";
import { inZone } from "./local-time.ts";
import { addressArg, findStack } from "./stack-client.ts";
import {
  printAnswer,
  printJson,
  printList,
  printTable,
  type Cell,
} from "./terminal.ts";
import { defineVerb, jsonArg, type Verb } from "./verb.ts";

const jobName = {
  type: "positional",
  required: true,
  description: "A job from `hearth jobs list`",
} as const;

const list = defineVerb({
  name: "jobs list",
  description: "List all jobs with their next run and last result.",
  example: "hearth jobs list",
  args: { ...jsonArg, ...addressArg },
  run: async ({ json, url }) => {
    const { jobs } = (await findStack(url).ask("GET", "/api/jobs")) as {
      readonly jobs: readonly JobView[];
    };
    if (json) {
      printJson(jobs);
    } else {
      printTable(["job", "next", "last", "result"], jobs.map(jobRow));
    }
    return jobs.some(({ last }) => last?.status === "failed") ? 1 : 0;
  },
});

function jobRow(job: JobView): readonly Cell[] {
  const now = Date.now();
  const { last, running, nextAt } = job;
  const next =
    nextAt === null ? "on demand" : `in ${inWords(Math.max(0, nextAt - now))}`;
  if (running !== null) {
    return [
      { text: job.name, tone: "strong" },
      { text: next },
      { text: "running", tone: "ember" },
      { text: running.progress?.text ?? "" },
    ];
  }
  return [
    { text: job.name, tone: "strong" },
    { text: next },
    last === null
      ? { text: "never", tone: "soft" }
      : { text: last.status, tone: toneOf(last) },
    {
      text:
        last === null
          ? job.description
          : `${inWords(now - last.startedAt)} ago: ${last.text}`,
    },
  ];
}

const run = defineVerb({
  name: "jobs run",
  description: "Run one job now and show its progress.",
  example: "hearth jobs run ledger-check",
  args: { name: jobName, ...jsonArg, ...addressArg },
  run: async ({ name, json, url }) =>
    (await runJob(findStack(url), name, {}, json)).code,
});

const history = defineVerb({
  name: "jobs history",
  description: "Show the last runs of one job.",
  example: "hearth jobs history postgres-backup",
  args: { name: jobName, ...jsonArg, ...addressArg },
  run: async ({ name, json, url }) => {
    const path = `/api/jobs/${encodeURIComponent(name)}/runs`;
    const { runs } = (await findStack(url).ask("GET", path)) as {
      readonly runs: readonly RunView[];
    };
    printList(json, runs, {
      empty: `${name} has not run yet.`,
      headings: ["started", "took", "status", "result"],
      rowOf: runRow,
    });
    return 0;
  },
});

function runRow(run: RunView): readonly Cell[] {
  return [
    { text: inZone(run.startedAt) },
    { text: inWords((run.endedAt ?? Date.now()) - run.startedAt), right: true },
    { text: run.status, tone: toneOf(run) },
    { text: `${run.caughtUp ? "(caught up) " : ""}${run.text}` },
  ];
}

const stop = defineVerb({
  name: "jobs stop",
  description: "Stop a running job; partial results are removed.",
  example: "hearth jobs stop postgres-backup",
  args: { name: jobName, ...jsonArg, ...addressArg },
  run: async ({ name, json, url }) => {
    const path = `/api/jobs/${encodeURIComponent(name)}/stop`;
    const { stopped } = (await findStack(url).ask("POST", path)) as {
      readonly stopped: boolean;
    };
    printAnswer(
      json,
      { job: name, stopped },
      stopped ? `Stopping ${name}.` : `${name} is not running.`,
    );
    return 0;
  },
});

export const jobs: Verb = {
  name: "jobs",
  description: "Scheduled jobs: list them, run one now, show results.",
  example: "hearth jobs list",
  verbs: {
    list: async () => list,
    run: async () => run,
    history: async () => history,
    stop: async () => stop,
  },
};

/** The same as `jobs run compaction`, under a name that is easy to find. */
export const compact = defineVerb({
  name: "compact",
  description: "Compact the notes now, freeing the space of old revisions.",
  example: "hearth compact",
  args: {
    vault: {
      type: "positional",
      required: false,
      description: "One vault (default: all)",
    },
    force: {
      type: "boolean",
      description: `${forceWords.label}. ${forceWords.note}`,
    },
    ...jsonArg,
    ...addressArg,
  },
  run: async ({ vault, force, json, url }) =>
    (
      await runJob(
        findStack(url),
        "compaction",
        {
          ...(vault === undefined ? {} : { vault }),
          ...(force === true ? { force } : {}),
        },
        json,
      )
    ).code,
});
