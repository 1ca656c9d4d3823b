import { describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../../core/duration.ts";
import type { JobView, RunView } from "../../../supervisor/jobs/runner.ts";
import {
  jobsHeading,
  viewJobPage,
  viewJobs,
  viewRunPage,
} from "./jobs-view.ts";
import { scheduleInWords } from "./schedule-words.ts";

const now = Date.UTC(2026, 10, 21, 10, 2);

function run(change: Partial<RunView> = {}): RunView {
  return {
    id: 7,
    job: "sweep",
    due: now - 5 * MINUTE_MS,
    askedBy: null,
    caughtUp: false,
    startedAt: now - 5 * MINUTE_MS,
    endedAt: now - 4 * MINUTE_MS,
    status: "done",
    attempts: 1,
    text: "swept.",
    details: null,
    progress: null,
    ...change,
  };
}

function job(change: Partial<JobView> = {}): JobView {
  return {
    name: "sweep",
    description: "Sweeps.",
    cron: "0 3 * * *",
    timeZone: "UTC",
    nextAt: now + 17 * 60 * MINUTE_MS,
    running: null,
    last: run(),
    ...change,
  };
}

const running = run({
  status: "running",
  endedAt: null,
  progress: { text: "the hall", done: 0.25, attempt: 1, nextTryAt: null },
});
const failed = run({ status: "failed", text: "the broom broke.", attempts: 3 });

describe("the heading above all jobs", () => {
  test.each([
    ["All jobs succeeded.", [job()]],
    ["No job has run yet.", [job({ last: null })]],
    ["No job failed.", [job({ last: run({ status: "interrupted" }) })]],
    ["sweep is running.", [job({ running })]],
    ["sweep failed.", [job({ last: failed }), job({ running })]],
    ["2 jobs failed.", [job({ last: failed }), job({ last: failed })]],
    // Running again: no action is needed.
    ["sweep is running.", [job({ last: failed, running })]],
  ])("%s", (title, jobs) => {
    expect(jobsHeading(jobs).title).toBe(title);
  });
});

function rowsOf(
  jobs: readonly JobView[],
  optionsOf: Parameters<typeof viewJobs>[1] = () => [],
) {
  return viewJobs(jobs, optionsOf, now).groups.flatMap((group) => group.jobs);
}

test("failed jobs come first, then running ones, then by next run", () => {
  const { groups, failed: needs } = viewJobs(
    [
      job({ name: "late", nextAt: now + 9 }),
      job({ name: "asked", nextAt: null, cron: null }),
      job({ name: "soon", nextAt: now + 8 }),
      job({ name: "busy", running }),
      job({ name: "broken", last: failed }),
    ],
    () => [],
    now,
  );
  expect(groups.map(({ title }) => title)).toEqual(["Routine"]);
  expect(groups[0]?.jobs.map(({ name }) => name)).toEqual([
    "broken",
    "busy",
    "soon",
    "late",
    "asked",
  ]);
  expect(needs).toEqual([
    {
      name: "broken",
      text: "the broom broke.",
      tries: 3,
      since: "4 min ago",
      command: "hearth jobs run broken",
    },
  ]);
  expect(groups[0]?.jobs.at(-1)).toMatchObject({
    next: "on demand",
    schedule: null,
  });
});

test("restores are separate from routine jobs", () => {
  const { groups } = viewJobs(
    [job({ name: "notes-restore", purpose: "restore" }), job()],
    () => [],
    now,
  );
  expect(
    groups.map(({ title, jobs }) => [title, jobs.map(({ name }) => name)]),
  ).toEqual([
    ["Routine", ["sweep"]],
    ["Restore after a loss", ["notes-restore"]],
  ]);
});

test("a running job shows progress and remaining time", () => {
  const jobs = rowsOf([job({ running })]);
  expect(jobs[0]?.progress).toEqual({
    id: 7,
    text: "the hall",
    share: 25,
    words: "25 %, running for 5 min, about 15 min left",
  });
});

test("a failed attempt shows when it is retried", () => {
  const waiting = run({
    status: "running",
    endedAt: null,
    progress: {
      text: "no answer",
      done: null,
      attempt: 2,
      nextTryAt: now + 4 * MINUTE_MS,
    },
  });
  const jobs = rowsOf([job({ running: waiting })]);
  expect(jobs[0]?.progress?.words).toBe(
    "running for 5 min, attempt 2 failed, retrying in 4 min",
  );
});

test("options are fields; a choice starts with its default", () => {
  const jobs = rowsOf([job()], () => [
    {
      name: "vault",
      kind: "choice",
      label: "Vault",
      values: () => ["notes"],
      otherwise: "all",
    },
    { name: "force", kind: "tick", label: "Anyway" },
  ]);
  expect(jobs[0]?.fields).toEqual([
    {
      name: "vault",
      kind: "choice",
      label: "Vault",
      values: [
        ["", "all"],
        ["notes", "notes"],
      ],
    },
    { name: "force", kind: "tick", label: "Anyway" },
  ]);
});

test("the page of a job links to newer and older runs", () => {
  const view = viewJobPage({
    job: job(),
    options: [],
    runs: [run(), run({ due: null }), run({ due: null, askedBy: "a (b)" })],
    from: 2,
    more: true,
    now,
  });
  expect(view).toMatchObject({
    title: "sweep succeeded.",
    newer: 0,
    older: 5,
    schedule: "Every day at 03:00",
    nextAt: "22 Nov, 03:02",
    runs: [
      { cause: "scheduled", took: "1 min" },
      { cause: "on demand" },
      { cause: "on demand, by a (b)" },
    ],
  });
});

test("long output of a run is truncated, and its report is linked", () => {
  const view = viewRunPage(
    run({
      details: {
        report: "/reports/spend-2026-10-01.html",
        much: "x".repeat(9e4),
      },
    }),
    "UTC",
    now,
  );
  expect(view).toMatchObject({
    cut: true,
    report: "/reports/spend-2026-10-01.html",
  });
  expect(view.output).toHaveLength(60_000);
  const hostile = run({ details: { report: "javascript:alert(1)" } });
  expect(viewRunPage(hostile, "UTC", now).report).toBe(null);
});

test.each([
  ["0 3 * * *", "Every day at 03:00"],
  ["0 4 1 * *", "At 04:00, on day 1 of the month"],
  ["*/15 * * * *", "Every 15 minutes"],
  ["30 6 * * 0", "At 06:30, only on Sunday"],
  ["no cron", null],
])("%s is %s", (cron, words) => {
  expect(scheduleInWords(cron)).toBe(words);
});
