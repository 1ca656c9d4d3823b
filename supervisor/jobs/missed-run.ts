import { DAY_MS } from "../../core/duration.ts";
import type { JobHistory } from "./job-history.ts";
import type { Job } from "./job.ts";
import type { Schedule } from "../../core/schedule.ts";

/** A clock that is set back a little must not repeat a run; one that was a year ahead must not stop all runs. */
const MAX_SET_BACK_MS = DAY_MS;

/** The key of a schedule in the history: a changed schedule starts afresh, without past times to catch up. */
export function cronOf(job: Job): string {
  return job.schedule.cron ?? "";
}

/** The time that a job missed while no supervisor ran: the latest due time, or an interrupted run. Milliseconds since 1970. */
export function missedRun(
  job: Job,
  schedule: Schedule,
  history: JobHistory,
  now: number,
): number | undefined {
  const served = history.servedUntil(job.name, cronOf(job));
  if (served === undefined || served > now + MAX_SET_BACK_MS) {
    history.serve(job.name, cronOf(job), now);
    return undefined;
  }
  const latest = schedule.latest(now);
  if (latest !== undefined && latest > served) {
    return latest;
  }
  const [last] = history.runsOf(job.name, 1);
  // Once only: a run that crashes the supervisor must not do so forever.
  const isInterrupted = last?.status === "interrupted" && !last.caughtUp;
  return isInterrupted && last.due !== null ? last.due : undefined;
}

/** From when on a job is due again after the clock was set back: served times are not repeated. */
export function resumeAfterSetBack(
  job: Job,
  history: JobHistory,
  now: number,
): number {
  const served = history.servedUntil(job.name, cronOf(job)) ?? now;
  return served > now + MAX_SET_BACK_MS ? now : Math.max(now, served);
}
