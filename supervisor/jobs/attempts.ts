import { HOUR_MS, MINUTE_MS, inWords } from "../../core/duration.ts";
import { Failure, sentencesOf } from "../../core/failure.ts";
import type { Clock } from "./clock.ts";
import type { JobRun } from "./job-history.ts";
import type { Job, JobOutcome } from "./job.ts";

/** A person stopped the run: the reason of its signal. */
export class StoppedByPerson extends Failure {
  constructor(by: string) {
    super(`stopped ${by}`);
    this.name = "StoppedByPerson";
  }
}
/** The reason of its signal when the supervisor ends. */
export const SUPERVISOR_ENDS = "the supervisor ended during the run";

export interface RunProgress {
  readonly text: string;
  /** From 0 to 1; null if unknown. */
  readonly done: number | null;
  readonly attempt: number;
  /** Time of the next attempt after a failure; null during an attempt. Milliseconds since 1970. */
  readonly nextTryAt: number | null;
}

type RunEnd = Pick<JobRun, "status" | "attempts" | "text" | "details"> & {
  /** Set if the work ignored its signal: the job counts as running until this resolves. */
  readonly leftBehind?: Promise<unknown>;
};

const FIRST_WAIT_MS = MINUTE_MS;
const MAX_WAIT_MS = HOUR_MS;
const STOP_TIMEOUT_MS = 30_000;

/** Runs a job with all its attempts; never rejects. The delay before another attempt grows fourfold, up to an hour. */
export async function performRun(parts: {
  readonly job: Job;
  readonly clock: Clock;
  readonly abort: AbortController;
  readonly onDemand: boolean;
  readonly jobOptions: Readonly<Record<string, unknown>>;
  readonly onProgress: (progress: RunProgress) => void;
}): Promise<RunEnd> {
  const { job, clock, abort, onProgress } = parts;
  // A person sees the failure and decides.
  const retries = parts.onDemand ? 0 : job.schedule.retries;
  for (let attempt = 1; ; attempt += 1) {
    const tried = await tryOnce(parts, attempt);
    if (!("error" in tried)) {
      return {
        status: tried.status,
        attempts: attempt,
        text: tried.summary,
        details: tried.details ?? null,
      };
    }
    const text = sentencesOf(tried.error).join(" ");
    const { leftBehind } = tried;
    const end = {
      attempts: attempt,
      text,
      details: null,
      ...(leftBehind === undefined ? {} : { leftBehind }),
    };
    if (abort.signal.reason instanceof StoppedByPerson) {
      return { ...end, status: "stopped" };
    }
    if (abort.signal.aborted) {
      return { ...end, status: "interrupted", text: SUPERVISOR_ENDS };
    }
    if (attempt > retries || leftBehind !== undefined) {
      return { ...end, status: "failed" };
    }
    const wait = Math.min(FIRST_WAIT_MS * 4 ** (attempt - 1), MAX_WAIT_MS);
    const nextTryAt = clock.now() + wait;
    onProgress({ text, done: null, attempt, nextTryAt });
    await waitFor(clock, wait, abort.signal);
  }
}

type Tried =
  | JobOutcome
  | { readonly error: unknown; readonly leftBehind?: Promise<unknown> };

async function tryOnce(
  {
    job,
    clock,
    abort,
    onDemand,
    jobOptions,
    onProgress,
  }: Parameters<typeof performRun>[0],
  attempt: number,
): Promise<Tried> {
  if (abort.signal.aborted) {
    return { error: abort.signal.reason };
  }
  const { timeoutMs } = job.schedule;
  const limit = new AbortController();
  const late = new Error(
    `it exceeded its timeout of ${inWords(timeoutMs)}; find the cause, or raise the timeout in \`jobs:\` of the configuration`,
  );
  const cancel = clock.wakeAfter(timeoutMs, () => limit.abort(late));
  const signal = AbortSignal.any([abort.signal, limit.signal]);
  let over = false;
  const work = Promise.resolve()
    .then(() =>
      job.run({
        signal,
        onDemand,
        options: jobOptions,
        now: clock.now,
        progress: (text, done) => {
          if (!over) {
            onProgress({ text, done: done ?? null, attempt, nextTryAt: null });
          }
        },
      }),
    )
    .catch((error: unknown): Tried => ({ error }));
  const tried = await Promise.race([work, ignored(clock, signal)]);
  over = true;
  cancel();
  if (tried === "ignored") {
    return { error: signal.reason, leftBehind: work };
  }
  // The error of an aborted job only repeats the reason.
  return "error" in tried && signal.aborted ? { error: signal.reason } : tried;
}

/** Resolves when the work has ignored its aborted signal for too long. */
function ignored(clock: Clock, signal: AbortSignal): Promise<"ignored"> {
  return new Promise((resolve) => {
    const wait = () =>
      clock.wakeAfter(STOP_TIMEOUT_MS, () => resolve("ignored"));
    signal.addEventListener("abort", wait, { once: true });
  });
}

function waitFor(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.wakeAfter(ms, resolve);
    const stop = () => {
      cancel();
      resolve();
    };
    if (signal.aborted) {
      stop();
    } else {
      signal.addEventListener("abort", stop, { once: true });
    }
  });
}
