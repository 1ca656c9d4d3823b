import type { Alarms } from "../alerts/alarm.ts";
import { inWords } from "../../core/duration.ts";
import { Failure } from "../../core/failure.ts";
import {
  performRun,
  STOPPED_BY_PERSON,
  SUPERVISOR_ENDS,
  type RunProgress,
} from "./attempts.ts";
import type { Clock } from "./clock.ts";
import type { JobHistory, JobRun } from "./job-history.ts";
import type { Job, JobOption } from "./job.ts";
import { openSchedule, type Schedule } from "./schedule.ts";

export interface JobRunnerOptions {
  readonly history: JobHistory;
  readonly alarms: Alarms;
  readonly clock: Clock;
  /** IANA name of the operator's time zone. */
  readonly timeZone: string;
  /** False: nothing runs by itself on this host, only when asked. */
  readonly scheduled: boolean;
}

export interface JobRunner {
  /** Jobs are added before `begin`; a name is used once. */
  readonly add: (job: Job) => void;
  readonly begin: () => void;
  /** Aborts what runs and waits for it, at most a few seconds. */
  readonly stop: () => Promise<void>;
  readonly list: () => readonly JobView[];
  /** What a person may say with a run. Throws a Failure when there is no such job. */
  readonly optionsOf: (name: string) => readonly JobOption[];
  /** Begins a run that a person asked for. Throws a Failure when there is no such job, or it runs already. */
  readonly run: (
    name: string,
    options?: Readonly<Record<string, unknown>>,
  ) => RunView;
  /** A run that goes on or is over. */
  readonly view: (id: number) => RunView | undefined;
  /** Newest first. Throws a Failure when there is no such job. */
  readonly runsOf: (name: string, limit: number) => readonly RunView[];
  /** False when it does not run. Throws a Failure when there is no such job. */
  readonly stopRun: (name: string) => boolean;
}

export type RunView = JobRun & {
  /** Of a run that goes on. */
  readonly progress: RunProgress | null;
};

/** What `hearth jobs list` shows. Times in milliseconds since 1970. */
export interface JobView {
  readonly name: string;
  readonly description: string;
  readonly cron: string | null;
  readonly timeZone: string;
  /** Null when it runs only when asked. */
  readonly nextAt: number | null;
  readonly running: RunView | null;
  readonly last: RunView | null;
}

interface Entry {
  readonly job: Job;
  readonly schedule: Schedule | null;
  nextAt: number | null;
  callOff: () => void;
  running: Running | null;
}

interface Running {
  readonly run: JobRun;
  readonly abort: AbortController;
  readonly ended: Promise<void>;
  progress: RunProgress;
}

/** What was missed begins this long after the start, one job after the other. */
const CATCH_UP_AFTER_MS = 60_000;
const STOP_WITHIN_MS = 8000;
/** A clock that is set back a little must not make a run come twice; one that was a year ahead must not stop all. */
const LONGEST_SET_BACK_MS = 86_400_000;

/** Runs jobs when they are due, never two of a kind at once, and catches up once what was missed. */
export function openJobRunner(options: JobRunnerOptions): JobRunner {
  const { history, alarms, clock, timeZone } = options;
  const entries = new Map<string, Entry>();
  const calledOff: (() => void)[] = [];
  let stopping = false;

  function start(
    entry: Entry,
    due: number | null,
    caughtUp: boolean,
    jobOptions: Readonly<Record<string, unknown>>,
  ): JobRun {
    const { job } = entry;
    const startedAt = clock.now();
    const id = history.begin({ job: job.name, due, caughtUp, startedAt });
    const run: JobRun = {
      id,
      job: job.name,
      due,
      caughtUp,
      startedAt,
      endedAt: null,
      status: "running",
      attempts: 0,
      text: "",
      details: null,
    };
    const abort = new AbortController();
    const ended = Promise.withResolvers<void>();
    const running: Running = {
      run,
      abort,
      ended: ended.promise,
      progress: { text: "beginning", done: null, attempt: 1, nextTryAt: null },
    };
    entry.running = running;
    void performRun({
      job,
      clock,
      abort,
      jobOptions,
      asked: due === null,
      onProgress: (progress) => (running.progress = progress),
    }).then(async (end) => {
      history.end(id, { ...end, endedAt: clock.now() });
      tell(alarms, job, end);
      ended.resolve();
      await end.leftBehind;
      entry.running = null;
    });
    return run;
  }

  function arm(entry: Entry, after: number): void {
    const { job, schedule } = entry;
    const next = schedule?.next(after);
    entry.nextAt = next ?? null;
    if (next === undefined || stopping) {
      return;
    }
    entry.callOff = clock.wakeAt(next, () => {
      const now = clock.now();
      if (now < next) {
        return arm(entry, afterSetBack(entry, now));
      }
      // After a sleep of the machine several times may have passed: they are one run.
      const due = Math.max(next, schedule?.latest(now) ?? next);
      history.serve(job.name, cronOf(job), due);
      // Still at the run before: this time is let go.
      if (entry.running === null) {
        start(entry, due, now - due > CATCH_UP_AFTER_MS, {});
      }
      arm(entry, due);
    });
  }

  /** From when on a job is due again once the clock was set back: what it ran for already does not come twice. */
  function afterSetBack({ job }: Entry, now: number): number {
    const served = history.servedUntil(job.name, cronOf(job)) ?? now;
    return served > now + LONGEST_SET_BACK_MS ? now : Math.max(now, served);
  }

  /** What was due while nobody was there: the last missed time, or a run that was cut off. */
  function missedBy(entry: Entry, now: number): number | undefined {
    const { job, schedule } = entry;
    const served = history.servedUntil(job.name, cronOf(job));
    if (served === undefined || served > now + LONGEST_SET_BACK_MS) {
      history.serve(job.name, cronOf(job), now);
      return undefined;
    }
    const latest = schedule?.latest(now);
    if (latest !== undefined && latest > served) {
      return latest;
    }
    const [last] = history.runsOf(job.name, 1);
    // Once: a run that takes the supervisor down with it must not do so for ever.
    const cutOff = last?.status === "interrupted" && !last.caughtUp;
    return cutOff && last.due !== null ? last.due : undefined;
  }

  function catchUp(entry: Entry, due: number, afterMs: number): void {
    calledOff.push(
      clock.wakeAfter(afterMs, () => {
        if (stopping || entry.running !== null) {
          return;
        }
        history.serve(entry.job.name, cronOf(entry.job), due);
        start(entry, due, true, {});
      }),
    );
  }

  function entryOf(name: string): Entry {
    // Settings spell it with `_`.
    const entry = entries.get(name.replaceAll("_", "-"));
    if (entry !== undefined) {
      return entry;
    }
    throw new NoSuchJob(
      `there is no job "${name}"; there are ${[...entries.keys()].join(", ")}.`,
    );
  }

  function viewOf(run: JobRun | undefined): RunView | null {
    if (run === undefined) {
      return null;
    }
    const running = entries.get(run.job)?.running;
    return {
      ...run,
      progress: running?.run.id === run.id ? running.progress : null,
    };
  }

  return {
    add: (job) => {
      if (entries.has(job.name)) {
        throw new Error(`there are two jobs "${job.name}"`);
      }
      const { cron } = job.schedule;
      const schedule = cron === null ? null : openSchedule(cron, timeZone);
      entries.set(job.name, {
        job,
        schedule,
        nextAt: null,
        running: null,
        callOff: () => {},
      });
    },
    begin: () => {
      const now = clock.now();
      history.closeAbandoned(now);
      let late = 0;
      for (const entry of entries.values()) {
        const [last] = history.runsOf(entry.job.name, 1);
        if (last?.status === "failed") {
          tell(alarms, entry.job, last);
        }
        if (!options.scheduled || entry.schedule === null) {
          continue;
        }
        const due = missedBy(entry, now);
        if (due !== undefined) {
          catchUp(entry, due, (late += CATCH_UP_AFTER_MS));
        }
        arm(entry, now);
      }
    },
    stop: async () => {
      stopping = true;
      for (const callOff of calledOff) {
        callOff();
      }
      const running = [...entries.values()].flatMap((entry) => {
        entry.callOff();
        entry.running?.abort.abort(SUPERVISOR_ENDS);
        return entry.running?.ended ?? [];
      });
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, STOP_WITHIN_MS);
      await Promise.race([Promise.all(running), late.promise]);
      clearTimeout(timer);
    },
    list: () =>
      [...entries.values()].map(({ job, nextAt, running }) => {
        const runs = history.runsOf(job.name, 2);
        return {
          name: job.name,
          description: job.description,
          cron: options.scheduled ? job.schedule.cron : null,
          timeZone,
          nextAt,
          running: viewOf(running?.run),
          last: viewOf(runs.find(({ id }) => id !== running?.run.id)),
        };
      }),
    optionsOf: (name) => entryOf(name).job.options ?? [],
    run: (name, jobOptions = {}) => {
      const entry = entryOf(name);
      const { running } = entry;
      if (stopping) {
        throw new Failure(
          `${name} does not begin: the supervisor is stopping.`,
        );
      }
      if (running !== null) {
        throw new AlreadyRuns(
          `${name} runs already, for ${inWords(clock.now() - running.run.startedAt)}: wait for it, or stop it with \`hearth jobs stop ${name}\`.`,
        );
      }
      const run = start(entry, null, false, jobOptions);
      return { ...run, progress: entry.running?.progress ?? null };
    },
    view: (id) => {
      const running = [...entries.values()].find(
        (entry) => entry.running?.run.id === id,
      )?.running;
      return viewOf(history.run(id) ?? running?.run) ?? undefined;
    },
    runsOf: (name, limit) =>
      history
        .runsOf(entryOf(name).job.name, limit)
        .flatMap((run) => viewOf(run) ?? []),
    stopRun: (name) => {
      const { running } = entryOf(name);
      running?.abort.abort(STOPPED_BY_PERSON);
      return running !== null;
    },
  };
}

export class NoSuchJob extends Failure {}
export class AlreadyRuns extends Failure {}

/** A schedule that was changed begins anew: its past times were nobody's to keep. */
function cronOf(job: Job): string {
  return job.schedule.cron ?? "";
}

function tell(
  alarms: Alarms,
  job: Job,
  end: Pick<JobRun, "status" | "attempts" | "text">,
): void {
  const fingerprint = `job:${job.name}`;
  if (end.status === "failed") {
    alarms.raise({
      fingerprint,
      level: "warning",
      subject: `job ${job.name}`,
      text: `${job.name} failed: ${end.text}`,
      tried: end.attempts > 1 ? [`tried ${end.attempts} times`] : [],
      command: `hearth jobs run ${job.name}`,
    });
  } else if (end.status === "done" || end.status === "skipped") {
    alarms.clear(fingerprint);
  }
}
