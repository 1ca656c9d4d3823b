import { DatabaseSync } from "node:sqlite";
import { beforeEach, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../core/duration.ts";
import type { Alarm } from "../alerts/alarm.ts";
import { Failure } from "../../core/failure.ts";
import {
  passingClock,
  type PassingClock,
} from "../../test/supervisor/passing-clock.ts";
import {
  ASKED_BY_COLUMN,
  JOB_TABLES,
  openJobHistory,
  type JobHistory,
} from "./job-history.ts";
import type { Job, JobContext } from "./job.ts";
import { actAs } from "../history/author.ts";
import { JobRunner } from "./runner.ts";
import { alarmsIn } from "../../test/supervisor/raised-alarms.ts";

const start = Date.UTC(2026, 5, 1);

let clock: PassingClock;
let history: JobHistory;
let alarms: Map<string, Alarm>;

beforeEach(() => {
  const db = new DatabaseSync(":memory:");
  db.exec(`${JOB_TABLES}; ${ASKED_BY_COLUMN}`);
  clock = passingClock(start);
  history = openJobHistory(db, (sentence) => expect.fail(sentence));
  alarms = new Map();
});

function runnerWith(
  run: Job["run"],
  schedule: Partial<Job["schedule"]> = {},
  scheduled = true,
  cleanUp: () => Promise<void> = async () => {},
): JobRunner {
  const runner = new JobRunner({
    history,
    clock,
    timeZone: "UTC",
    scheduled,
    alarms: alarmsIn(alarms),
  });
  runner.add({
    name: "sweep",
    description: "Sweeps.",
    schedule: {
      cron: "0 1 * * *",
      timeoutMs: HOUR_MS,
      retries: 0,
      ...schedule,
    },
    run,
    cleanUp,
  });
  runner.start();
  return runner;
}

/** Work that ends on demand. */
function handWork() {
  const contexts: JobContext[] = [];
  const ends: PromiseWithResolvers<void>[] = [];
  return {
    contexts,
    end: () => ends.at(-1)?.resolve(),
    run: async (context: JobContext) => {
      contexts.push(context);
      const end = Promise.withResolvers<void>();
      ends.push(end);
      await end.promise;
      return { status: "done", summary: "swept" } as const;
    },
  };
}

test("a failed run is retried with growing delays, and only the last failure raises an alarm", async () => {
  const tries: number[] = [];
  const runner = runnerWith(
    async () => {
      tries.push(clock.now() - start - HOUR_MS);
      throw new Failure("the tool is missing: install it.");
    },
    { retries: 2 },
  );
  await clock.pass(start + HOUR_MS + 2 * MINUTE_MS);
  expect(runner.list()[0]?.running?.progress).toEqual({
    text: "the tool is missing: install it.",
    done: null,
    attempt: 2,
    nextTryAt: start + HOUR_MS + 5 * MINUTE_MS,
  });
  expect(alarms.size).toBe(0);
  await clock.pass(start + 2 * HOUR_MS);
  expect(tries).toEqual([0, MINUTE_MS, 5 * MINUTE_MS]);
  expect(runner.runsOf("sweep", 5)).toMatchObject([
    { status: "failed", attempts: 3, text: "the tool is missing: install it." },
  ]);
  expect(alarms.get("job:sweep")).toMatchObject({
    text: "sweep failed: the tool is missing: install it.",
    command: "hearth jobs run sweep",
  });
});

test("an alarm is raised again by the next supervisor, and cleared by a successful run", async () => {
  let works = false;
  const run = async () => {
    if (works) {
      return { status: "done", summary: "swept" } as const;
    }
    throw new Error("no");
  };
  await runnerWith(run).stop();
  const first = runnerWith(run);
  await clock.pass(start + 2 * HOUR_MS);
  await first.stop();
  alarms.clear();
  const second = runnerWith(run);
  expect([...alarms.keys()]).toEqual(["job:sweep"]);
  works = true;
  second.run("sweep");
  await clock.pass(clock.now() + MINUTE_MS);
  expect(alarms.size).toBe(0);
});

test("a run waits until what its interrupted predecessor left behind is removed", async () => {
  const steps: string[] = [];
  const cleaning = Promise.withResolvers<void>();
  const run = async () => {
    steps.push("run");
    return { status: "done", summary: "swept" } as const;
  };
  const cleanUp = () => {
    steps.push("clean up");
    return cleaning.promise;
  };
  runnerWith(run, {}, true, cleanUp);
  expect(steps).toEqual([]);
  history.recordStart({
    job: "sweep",
    due: null,
    caughtUp: false,
    startedAt: start,
    askedBy: null,
  });
  const runner = runnerWith(run, {}, true, cleanUp);
  runner.run("sweep");
  await clock.pass(start + MINUTE_MS);
  expect(steps).toEqual(["clean up"]);
  cleaning.reject(new Error("Postgres cannot be reached"));
  await clock.pass(start + 2 * MINUTE_MS);
  expect(steps).toEqual(["clean up", "run"]);
});

test("the alarm about a scheduled run ends when the job is no longer scheduled, the one about a run on demand does not", async () => {
  const fails = async () => {
    throw new Failure("the tool is missing: install it.");
  };
  const scheduled = runnerWith(fails);
  await clock.pass(start + 2 * HOUR_MS);
  await scheduled.stop();
  expect([...alarms.keys()]).toEqual(["job:sweep"]);
  alarms.set("job:removed", alarms.get("job:sweep") ?? expect.fail());
  const onDemand = runnerWith(fails, { cron: null });
  expect([...alarms.keys()]).toEqual([]);
  onDemand.run("sweep");
  await clock.pass(clock.now() + MINUTE_MS);
  await onDemand.stop();
  runnerWith(fails, {}, false);
  expect([...alarms.keys()]).toEqual(["job:sweep"]);
});

test("a failed restore raises no alarm, which only another restore would end", async () => {
  const runner = runnerWith(handWork().run);
  runner.add({
    name: "restore",
    description: "Restores.",
    schedule: { cron: null, timeoutMs: HOUR_MS, retries: 0 },
    purpose: "restore",
    run: () => Promise.reject(new Failure("the database is not empty.")),
  });
  runner.run("restore");
  await clock.pass(start + MINUTE_MS);
  expect(runner.runsOf("restore", 1)).toMatchObject([{ status: "failed" }]);
  expect(alarms.size).toBe(0);
});

test("a request that no run can fulfil starts none, and raises no alarm", async () => {
  const work = handWork();
  const runner = runnerWith(work.run);
  runner.add({
    name: "verify",
    description: "Verifies.",
    schedule: { cron: null, timeoutMs: HOUR_MS, retries: 0 },
    check: ({ backup }) => {
      if (backup === "nosuch") {
        throw new Failure('backup "nosuch" not found.');
      }
    },
    run: work.run,
  });
  expect(() => runner.run("verify", { backup: "nosuch" })).toThrow(
    'backup "nosuch" not found.',
  );
  expect(runner.runsOf("verify", 5)).toEqual([]);
  expect(alarms.size).toBe(0);
  expect(runner.run("verify", { backup: "a" }).status).toBe("running");
  work.end();
  await clock.pass(start + MINUTE_MS);
});

test("two runs of a job never overlap: a request is rejected, and a due time is skipped", async () => {
  const work = handWork();
  const runner = runnerWith(work.run, { timeoutMs: 100 * HOUR_MS });
  const requested = runner.run("sweep", { gently: true });
  await clock.pass(start + 30 * MINUTE_MS);
  expect(work.contexts[0]).toMatchObject({
    onDemand: true,
    options: { gently: true },
  });
  expect(() => runner.run("sweep")).toThrow(
    "sweep has been running for 30 min: wait for it, or run `hearth jobs stop sweep`.",
  );
  await clock.pass(start + 2 * HOUR_MS);
  expect(work.contexts).toHaveLength(1);
  work.contexts[0]?.progress("sweeping the hall", 0.5);
  expect(runner.view(requested.id)?.progress).toMatchObject({
    text: "sweeping the hall",
    done: 0.5,
  });
  work.end();
  await clock.pass(start + 26 * HOUR_MS);
  expect(work.contexts).toHaveLength(2);
  work.end();
  await clock.pass(start + 27 * HOUR_MS);
  expect(runner.runsOf("sweep", 5)).toMatchObject([
    { status: "done", text: "swept", due: start + 25 * HOUR_MS },
    { status: "done", text: "swept", due: null, progress: null },
  ]);
});

test("a run that exceeds its timeout is aborted and fails", async () => {
  const runner = runnerWith(async ({ signal }) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    throw new Error("aborted");
  });
  await clock.pass(start + 3 * HOUR_MS);
  expect(runner.runsOf("sweep", 1)[0]).toMatchObject({
    status: "failed",
    text: expect.stringMatching(/^it exceeded its timeout of 1 h/),
    endedAt: start + 2 * HOUR_MS,
  });
});

test("work that ignores the abort fails without a retry, and blocks the next run until it ends", async () => {
  const work = handWork();
  const runner = runnerWith(work.run, { retries: 3 });
  await clock.pass(start + 30 * HOUR_MS);
  expect(runner.runsOf("sweep", 5)).toMatchObject([{ status: "failed" }]);
  expect(work.contexts).toHaveLength(1);
  expect(() => runner.run("sweep")).toThrow("sweep has been running");
  work.end();
  await clock.pass(start + 50 * HOUR_MS);
  expect(work.contexts).toHaveLength(2);
});

test("a run stopped by a person is neither a failure nor an alarm", async () => {
  const runner = runnerWith(
    async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      throw new Error("aborted");
    },
    { retries: 3 },
  );
  await clock.pass(start + HOUR_MS + MINUTE_MS);
  expect(runner.stopRun("sweep")).toBe(true);
  await clock.pass(start + HOUR_MS + 2 * MINUTE_MS);
  expect(runner.runsOf("sweep", 5)).toMatchObject([
    { status: "stopped", text: "stopped by the operator", askedBy: null },
  ]);
  const anna = "anna@example.org (home)";
  actAs(anna, () => runner.run("sweep"));
  await clock.pass(start + HOUR_MS + 3 * MINUTE_MS);
  actAs(anna, () => runner.stopRun("sweep"));
  await clock.pass(start + HOUR_MS + 4 * MINUTE_MS);
  expect(runner.runsOf("sweep", 1)).toMatchObject([
    {
      status: "stopped",
      text: `stopped by ${anna}`,
      askedBy: anna,
    },
  ]);
  expect(runner.stopRun("sweep")).toBe(false);
  expect(alarms.size).toBe(0);
});

test("where jobs are off they run only on demand", async () => {
  const runner = runnerWith(
    async () => ({ status: "skipped", summary: "clean already" }),
    {},
    false,
  );
  await clock.pass(start + 50 * HOUR_MS);
  expect(runner.list()[0]).toMatchObject({
    cron: null,
    nextAt: null,
    last: null,
  });
  runner.run("sweep");
  await clock.pass(start + 51 * HOUR_MS);
  expect(runner.list()[0]?.last).toMatchObject({
    status: "skipped",
    text: "clean already",
  });
});

test("a changed schedule starts without catching up", async () => {
  const run = async () => ({ status: "done", summary: "swept" }) as const;
  await runnerWith(run).stop();
  clock.jump(start + 100 * HOUR_MS);
  const changed = runnerWith(run, { cron: "0 2 * * *" });
  await clock.pass(start + 110 * HOUR_MS);
  expect(changed.runsOf("sweep", 5)).toEqual([]);
});

test("an unknown job is rejected with the names of all jobs", () => {
  const runner = runnerWith(async () => ({ status: "done", summary: "" }));
  expect(() => runner.run("swep")).toThrow(
    'job "swep" not found (did you mean "sweep"?).',
  );
});

test("a clock that was a year ahead and is set back does not delay a job for a year", async () => {
  const day = 24 * HOUR_MS;
  clock.jump(start + 365 * day);
  const run = async () => ({ status: "done", summary: "swept" }) as const;
  const runner = runnerWith(run);
  await clock.pass(start + 366 * day);
  expect(runner.runsOf("sweep", 5)).toHaveLength(1);
  clock.jump(start);
  await clock.pass(start + day);
  expect(runner.runsOf("sweep", 5).map(({ due }) => due)).toEqual([
    start + HOUR_MS,
    start + 365 * day + HOUR_MS,
  ]);
});

test("a clock that is set back a little does not run a job twice", async () => {
  const run = async () => ({ status: "done", summary: "swept" }) as const;
  const runner = runnerWith(run);
  await clock.pass(start + HOUR_MS + MINUTE_MS);
  clock.jump(start + HOUR_MS - 10 * MINUTE_MS);
  await clock.pass(start + 2 * HOUR_MS);
  expect(runner.runsOf("sweep", 5)).toHaveLength(1);
  await clock.pass(start + 26 * HOUR_MS);
  expect(runner.runsOf("sweep", 5)).toHaveLength(2);
});

test("a job that runs during a sleep of the machine or a clock change has its full time", async () => {
  const work = handWork();
  const runner = runnerWith(work.run);
  await clock.pass(start + HOUR_MS + MINUTE_MS);
  for (const to of [start + 9 * HOUR_MS, start + 2 * HOUR_MS]) {
    clock.jump(to);
    await clock.pass(to + 10 * MINUTE_MS);
    expect(runner.list()[0]?.running).not.toBeNull();
  }
  work.end();
  await clock.pass(clock.now() + MINUTE_MS);
  expect(runner.runsOf("sweep", 1)).toMatchObject([{ status: "done" }]);
});
