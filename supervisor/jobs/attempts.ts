import { inWords } from "../../core/duration.ts";
import { sentencesOf } from "../../core/failure.ts";
import type { Clock } from "./clock.ts";
import type { JobRun } from "./job-history.ts";
import type { Job, JobOutcome } from "./job.ts";

/** Why a run was aborted: the reason of its signal. */
export const STOPPED_BY_PERSON = "stopped by a person";
export const SUPERVISOR_ENDS = "the supervisor ended meanwhile";

/** How far a run is. */
export interface RunProgress {
  readonly text: string;
  /** From 0 to 1; null where it is not known. */
  readonly done: number | null;
  readonly attempt: number;
  /** When it is tried again after a failure; null while it works. Milliseconds since 1970. */
  readonly nextTryAt: number | null;
}

export type RunEnd = Pick<
  JobRun,
  "status" | "attempts" | "text" | "details"
> & {
  /** Set when the work did not stop when told: the job runs until this resolves, though nobody waits for it. */
  readonly leftBehind?: Promise<unknown>;
};

const FIRST_WAIT_MS = 60_000;
const LONGEST_WAIT_MS = 3_600_000;
const STOP_WITHIN_MS = 30_000;

/** Does a job with all its tries; never rejects. The wait before a further try grows fourfold, up to an hour. */
export async function performRun(parts: {
  readonly job: Job;
  readonly clock: Clock;
  readonly abort: AbortController;
  readonly asked: boolean;
  readonly jobOptions: Readonly<Record<string, unknown>>;
  readonly onProgress: (progress: RunProgress) => void;
}): Promise<RunEnd> {
  const { job, clock, abort, onProgress } = parts;
  // A person who asks sees the failure and decides.
  const retries = parts.asked ? 0 : job.schedule.retries;
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
    if (abort.signal.reason === STOPPED_BY_PERSON) {
      return { ...end, status: "stopped", text: STOPPED_BY_PERSON };
    }
    if (abort.signal.aborted) {
      return { ...end, status: "interrupted", text: SUPERVISOR_ENDS };
    }
    if (attempt > retries || leftBehind !== undefined) {
      return { ...end, status: "failed" };
    }
    const wait = Math.min(FIRST_WAIT_MS * 4 ** (attempt - 1), LONGEST_WAIT_MS);
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
    asked,
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
    `it took longer than ${inWords(timeoutMs)}, its timeout; give it more time in \`jobs:\` of the configuration, or see what holds it up`,
  );
  const callOff = clock.wakeAfter(timeoutMs, () => limit.abort(late));
  const signal = AbortSignal.any([abort.signal, limit.signal]);
  let over = false;
  const work = Promise.resolve()
    .then(() =>
      job.run({
        signal,
        asked,
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
  const tried = await Promise.race([work, unheard(clock, signal)]);
  over = true;
  callOff();
  if (tried === "unheard") {
    return { error: signal.reason, leftBehind: work };
  }
  // What an aborted job throws is an echo of the reason.
  return "error" in tried && signal.aborted ? { error: signal.reason } : tried;
}

/** Resolves when the work was told to stop, and had time to. */
function unheard(clock: Clock, signal: AbortSignal): Promise<"unheard"> {
  return new Promise((resolve) => {
    const wait = () =>
      clock.wakeAfter(STOP_WITHIN_MS, () => resolve("unheard"));
    signal.addEventListener("abort", wait, { once: true });
  });
}

function waitFor(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const callOff = clock.wakeAfter(ms, resolve);
    const stop = () => {
      callOff();
      resolve();
    };
    if (signal.aborted) {
      stop();
    } else {
      signal.addEventListener("abort", stop, { once: true });
    }
  });
}
