import { resolveWithin } from "../../core/resolve-within.ts";
import type { Alarms, ReplacedAlarms } from "../alerts/alarm.ts";
import { MINUTE_MS, inWords } from "../../core/duration.ts";
import { Failure } from "../../core/failure.ts";
import { notFound } from "../../core/nearest.ts";
import {
  performRun,
  StoppedByPerson,
  SUPERVISOR_ENDS,
  type RunProgress,
} from "./attempts.ts";
import { byAuthor, currentAuthor, OPERATOR } from "../history/author.ts";
import type { Clock } from "./clock.ts";
import type { JobHistory, JobRun } from "./job-history.ts";
import type { Job, JobOption } from "./job.ts";
import { cronOf, missedRun, resumeAfterSetBack } from "./missed-run.ts";
import { openSchedule, type Schedule } from "../../core/schedule.ts";

interface JobRunnerOptions {
  readonly history: JobHistory;
  readonly alarms: ReplacedAlarms;
  readonly clock: Clock;
  /** IANA name of the operator's time zone. */
  readonly timeZone: string;
  /** False: jobs run on this host only on demand. */
  readonly scheduled: boolean;
  /** Called when a run has ended. */
  readonly onEnd?: () => void;
}

export type RunView = JobRun & {
  /** Of a run in progress. */
  readonly progress: RunProgress | null;
};

/** An entry of `hearth jobs list`. Times in milliseconds since 1970. */
export interface JobView extends Pick<Job, "purpose"> {
  readonly name: string;
  readonly description: string;
  readonly cron: string | null;
  readonly timeZone: string;
  /** Null if it runs only on demand. */
  readonly nextAt: number | null;
  readonly running: RunView | null;
  readonly last: RunView | null;
}

interface Entry {
  readonly job: Job;
  readonly schedule: Schedule | null;
  nextAt: number | null;
  cancel: () => void;
  /** Resolves when nothing of an interrupted run is left. */
  cleaned: Promise<void>;
  running: Running | null;
}

interface Running {
  readonly run: JobRun;
  readonly abort: AbortController;
  readonly ended: Promise<void>;
  progress: RunProgress;
}

export class NoSuchJob extends Failure {}
export class AlreadyRuns extends Failure {}
/** No run can fulfil the request. */
export class UnfulfillableRequest extends Failure {}

/** Missed runs start this long after the supervisor, one job after the other. */
const CATCH_UP_AFTER_MS = MINUTE_MS;
const STOP_TIMEOUT_MS = 8000;
const CLEAN_UP_WITHIN_MS = MINUTE_MS;

/**
 * Runs jobs when they are due, never two of the same name at once, and catches up once on missed runs. Methods that name a job
 * throw NoSuchJob if it does not exist.
 */
export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #cancelCatchUps: (() => void)[] = [];
  #stopping = false;

  constructor(options: JobRunnerOptions) {
    this.#options = options;
  }

  /** Adds a job before `start`. */
  add(job: Job): void {
    if (this.#entries.has(job.name)) {
      throw new Error(`job "${job.name}" already exists`);
    }
    const { cron } = job.schedule;
    this.#entries.set(job.name, {
      job,
      schedule:
        cron === null ? null : openSchedule(cron, this.#options.timeZone),
      nextAt: null,
      running: null,
      cancel: () => {},
      cleaned: Promise.resolve(),
    });
  }

  /** Starts the schedules. */
  start(): void {
    const { history, clock } = this.#options;
    const now = clock.now();
    history.closeAbandoned(now);
    this.#restoreAlarms();
    let delay = 0;
    for (const entry of this.#entries.values()) {
      const { job } = entry;
      this.#cleanUp(entry);
      const schedule = this.#scheduleOf(entry);
      if (schedule === null) {
        continue;
      }
      const due = missedRun(job, schedule, history, now);
      if (due !== undefined) {
        this.#catchUp(entry, due, (delay += CATCH_UP_AFTER_MS));
      }
      this.#arm(entry, schedule, now);
    }
  }

  /** Aborts the current runs and waits for them, at most a few seconds. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const cancel of this.#cancelCatchUps) {
      cancel();
    }
    const running = [...this.#entries.values()].flatMap((entry) => {
      entry.cancel();
      entry.running?.abort.abort(SUPERVISOR_ENDS);
      return entry.running?.ended ?? [];
    });
    await resolveWithin(Promise.all(running), STOP_TIMEOUT_MS);
  }

  list(): readonly JobView[] {
    const { history, scheduled, timeZone } = this.#options;
    return [...this.#entries.values()].map(({ job, nextAt, running }) => {
      const runs = history.runsOf(job.name, 2);
      return {
        name: job.name,
        description: job.description,
        ...(job.purpose === undefined ? {} : { purpose: job.purpose }),
        cron: scheduled ? job.schedule.cron : null,
        timeZone,
        nextAt,
        running: this.#viewOf(running?.run),
        last: this.#viewOf(runs.find(({ id }) => id !== running?.run.id)),
      };
    });
  }

  /** Options for a run on demand. */
  optionsOf(name: string): readonly JobOption[] {
    return this.#entryOf(name).job.options ?? [];
  }

  /** Starts a run on demand. Throws AlreadyRuns if the job is running, UnfulfillableRequest if its check fails. */
  run(
    name: string,
    jobOptions: Readonly<Record<string, unknown>> = {},
  ): RunView {
    const entry = this.#entryOf(name);
    const { running } = entry;
    if (this.#stopping) {
      throw new Failure(`${name} cannot start: the supervisor is stopping.`);
    }
    if (running !== null) {
      const since = this.#options.clock.now() - running.run.startedAt;
      throw new AlreadyRuns(
        `${name} has been running for ${inWords(since)}: wait for it, or run \`hearth jobs stop ${name}\`.`,
      );
    }
    checkRequest(entry.job, jobOptions);
    const run = this.#start(entry, null, false, jobOptions);
    return { ...run, progress: entry.running?.progress ?? null };
  }

  /** A run in progress or of the past. */
  view(id: number): RunView | undefined {
    const running = [...this.#entries.values()].find(
      (entry) => entry.running?.run.id === id,
    )?.running;
    const run = this.#options.history.run(id) ?? running?.run;
    return this.#viewOf(run) ?? undefined;
  }

  /** Newest first. */
  runsOf(name: string, limit: number): readonly RunView[] {
    return this.#options.history
      .runsOf(this.#entryOf(name).job.name, limit)
      .flatMap((run) => this.#viewOf(run) ?? []);
  }

  /** Stops the current run; false if there is none. */
  stopRun(name: string): boolean {
    const { running } = this.#entryOf(name);
    running?.abort.abort(new StoppedByPerson(byAuthor()));
    return running !== null;
  }

  /** The alarms of the previous process, except those about scheduled runs of jobs that are no longer scheduled here. */
  #restoreAlarms(): void {
    const { history, alarms } = this.#options;
    const present = [...this.#entries.values()].flatMap((entry) => {
      const [last] = history.runsOf(entry.job.name, 1);
      const isPresent = last?.due === null || this.#scheduleOf(entry) !== null;
      return isPresent ? { job: entry.job, last } : [];
    });
    alarms.retain(
      "job:",
      present.map(({ job }) => fingerprintOf(job)),
    );
    for (const { job, last } of present) {
      if (last?.status === "failed") {
        notifyEnd(alarms, job, last);
      }
    }
  }

  #cleanUp(entry: Entry): void {
    const { cleanUp, name } = entry.job;
    const [last] = this.#options.history.runsOf(name, 1);
    if (cleanUp !== undefined && last?.status === "interrupted") {
      // A failure is not reported: the next run begins with the same steps.
      entry.cleaned = cleanUp(AbortSignal.timeout(CLEAN_UP_WITHIN_MS)).catch(
        () => {},
      );
    }
  }

  /** Null if the job runs only on demand. */
  #scheduleOf({ schedule }: Entry): Schedule | null {
    return this.#options.scheduled ? schedule : null;
  }

  #start(
    entry: Entry,
    due: number | null,
    caughtUp: boolean,
    jobOptions: Readonly<Record<string, unknown>>,
  ): JobRun {
    const { history, alarms, clock, onEnd } = this.#options;
    const { job } = entry;
    const startedAt = clock.now();
    const askedBy = due === null ? askingUser() : null;
    const id = history.recordStart({
      job: job.name,
      due,
      caughtUp,
      startedAt,
      askedBy,
    });
    const run: JobRun = {
      id,
      job: job.name,
      due,
      askedBy,
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
      progress: { text: "starting", done: null, attempt: 1, nextTryAt: null },
    };
    entry.running = running;
    const perform = () =>
      performRun({
        job,
        clock,
        abort,
        jobOptions,
        onDemand: due === null,
        onProgress: (progress) => (running.progress = progress),
      });
    void entry.cleaned.then(perform).then(async (end) => {
      history.end(id, { ...end, endedAt: clock.now() });
      notifyEnd(alarms, job, end);
      onEnd?.();
      ended.resolve();
      await end.leftBehind;
      entry.running = null;
    });
    return run;
  }

  #arm(entry: Entry, schedule: Schedule, after: number): void {
    const { history, clock } = this.#options;
    const { job } = entry;
    const next = schedule.next(after);
    entry.nextAt = next ?? null;
    if (next === undefined || this.#stopping) {
      return;
    }
    entry.cancel = clock.wakeAt(next, () => {
      const now = clock.now();
      if (now < next) {
        const resumeAt = resumeAfterSetBack(job, history, now);
        return this.#arm(entry, schedule, resumeAt);
      }
      // After a sleep of the machine, several due times count as one.
      const due = Math.max(next, schedule.latest(now) ?? next);
      history.serve(job.name, cronOf(job), due);
      // While the previous run is still in progress, this one is skipped.
      if (entry.running === null) {
        this.#start(entry, due, now - due > CATCH_UP_AFTER_MS, {});
      }
      this.#arm(entry, schedule, due);
    });
  }

  #catchUp(entry: Entry, due: number, afterMs: number): void {
    const { history, clock } = this.#options;
    const cancel = clock.wakeAfter(afterMs, () => {
      if (this.#stopping || entry.running !== null) {
        return;
      }
      history.serve(entry.job.name, cronOf(entry.job), due);
      this.#start(entry, due, true, {});
    });
    this.#cancelCatchUps.push(cancel);
  }

  #entryOf(name: string): Entry {
    // Settings spell the names with `_`.
    const entry = this.#entries.get(name.replaceAll("_", "-"));
    if (entry !== undefined) {
      return entry;
    }
    throw new NoSuchJob(notFound("job", name, [...this.#entries.keys()]));
  }

  #viewOf(run: JobRun | undefined): RunView | null {
    if (run === undefined) {
      return null;
    }
    const running = this.#entries.get(run.job)?.running;
    return {
      ...run,
      progress: running?.run.id === run.id ? running.progress : null,
    };
  }
}

function checkRequest(
  { check }: Job,
  jobOptions: Readonly<Record<string, unknown>>,
): void {
  try {
    check?.(jobOptions);
  } catch (error) {
    throw error instanceof Failure
      ? new UnfulfillableRequest(error.sentences, error)
      : error;
  }
}

/** The user that makes this request; null for the operator. */
function askingUser(): string | null {
  const author = currentAuthor();
  return author === OPERATOR ? null : author;
}

function fingerprintOf({ name }: Job): string {
  return `job:${name}`;
}

function notifyEnd(
  alarms: Alarms,
  job: Job,
  end: Pick<JobRun, "status" | "attempts" | "text">,
): void {
  const fingerprint = fingerprintOf(job);
  // The person who asked for a restore sees how it ends. An alarm would last until another one succeeds, and recommend to repeat it.
  const isAlarming = job.purpose !== "restore";
  if (end.status === "failed" && isAlarming) {
    alarms.raise({
      fingerprint,
      level: "warning",
      subject: `job ${job.name}`,
      text: `${job.name} failed: ${end.text}`,
      tried: end.attempts > 1 ? [`tried ${end.attempts} times`] : [],
      command: `hearth jobs run ${job.name}`,
    });
  } else if (["done", "skipped", "failed"].includes(end.status)) {
    alarms.clear(fingerprint);
  }
}
