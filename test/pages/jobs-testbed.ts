import { openHistory, type History } from "../../supervisor/history/history.ts";
import { systemClock } from "../../supervisor/jobs/clock.ts";
import { openJobHistory } from "../../supervisor/jobs/job-history.ts";
import type { JobContext } from "../../supervisor/jobs/job.ts";
import { JobRunner } from "../../supervisor/jobs/runner.ts";
import { createHome } from "../../supervisor/home/home.ts";
import { registerJobsPage } from "../../console/pages/jobs/jobs-page.ts";
import { buildTestApi } from "../supervisor/console-api.ts";
import { testCredentials } from "../supervisor/operator.ts";
import { temporaryHome } from "../supervisor/temporary-home.ts";
import { waitFor } from "../wait-for.ts";
import { signInAt } from "./browser.ts";
import { alarmsIn } from "../supervisor/raised-alarms.ts";

export interface JobsTestbed {
  readonly address: string;
  /** The current run of `slow-sweep`, to report progress and end it. */
  readonly slowRun: () => Promise<JobContext & { readonly end: () => void }>;
  readonly stop: () => Promise<void>;
}

/** The runner behind the real API, with a job that waits, one that fails and one that succeeds. */
export async function startJobsTestbed(
  past: (history: History, now: number) => void = () => {},
): Promise<JobsTestbed> {
  const place = temporaryHome();
  createHome(place.home);
  const history = openHistory(place.home.history);
  past(history, Date.now());
  const jobs = new JobRunner({
    history: openJobHistory(history.db, (sentence) => {
      throw new Error(sentence);
    }),
    alarms: alarmsIn(new Map()),
    clock: systemClock,
    timeZone: "UTC",
    scheduled: true,
  });
  let slow: (JobContext & { readonly end: () => void }) | undefined;
  const hourly = { cron: "0 * * * *", timeoutMs: 600_000, retries: 0 };
  jobs.add({
    name: "slow-sweep",
    description: "Sweeps one room after the other.",
    schedule: { cron: null, timeoutMs: 600_000, retries: 0 },
    options: [
      {
        name: "room",
        kind: "choice",
        label: "Room",
        values: () => ["hall", "attic"],
        otherwise: "all",
      },
      {
        name: "wet",
        kind: "tick",
        label: "With water",
        note: "Takes longer.",
      },
      { name: "broom", kind: "text", label: "Broom" },
    ],
    run: (context) =>
      new Promise((resolve, reject) => {
        context.signal.addEventListener("abort", () =>
          reject(context.signal.reason as Error),
        );
        slow = {
          ...context,
          end: () =>
            resolve({
              status: "done",
              summary: `swept ${JSON.stringify(context.options)}.`,
              details: { rooms: [{ name: "hall", dust: 12 }] },
            }),
        };
      }),
  });
  jobs.add({
    name: "steady",
    description: "Always succeeds.",
    schedule: hourly,
    run: async () => ({ status: "done", summary: "all steady." }),
  });
  const api = buildTestApi({ history });
  registerJobsPage(api, jobs);
  const address = await api.listen({ host: "127.0.0.1", port: 0 });
  const signOut = await signInAt(address, testCredentials.operatorPassword);
  jobs.start();
  return {
    address,
    slowRun: () => waitFor("slow-sweep to start", () => slow),
    stop: async () => {
      signOut();
      await jobs.stop();
      await api.close();
      history.close();
      place.remove();
    },
  };
}

/** Writes a run of an earlier supervisor into the history. */
export function pastRun(
  history: History,
  run: {
    readonly job: string;
    readonly startedAt: number;
    readonly endedAt: number;
    readonly status: string;
    readonly text: string;
    readonly details?: object;
    readonly asked?: boolean;
  },
): void {
  history.db
    .prepare(
      `INSERT INTO job_runs (job, due, caught_up, started_at, ended_at, status, attempts, text, details)
       VALUES (?, ?, 0, ?, ?, ?, 1, ?, ?)`,
    )
    .run(
      run.job,
      run.asked === true ? null : run.startedAt,
      run.startedAt,
      run.endedAt,
      run.status,
      run.text,
      run.details === undefined ? null : JSON.stringify(run.details),
    );
}
