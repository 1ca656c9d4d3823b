import type { JobView } from "../../../supervisor/jobs/runner.ts";
import { ago, ahead, percent } from "../../../core/words.ts";
import { lookOfRun } from "../jobs/run-words.ts";

/** Jobs that run on demand are shown once they have run. */
export function isOfInterest({ nextAt, last, running }: JobView): boolean {
  return nextAt !== null || last !== null || running !== null;
}

/** A job in one line. */
export function viewJob(job: JobView, now: number) {
  const { name, description, last, running, nextAt } = job;
  const next = nextAt === null ? "on demand" : ahead(nextAt, now);
  if (running !== null) {
    const done = running.progress?.done ?? null;
    return {
      name,
      description,
      look: "rest" as const,
      last: `running${done === null ? "" : `, ${percent(Math.floor(done * 100) / 100)}`}`,
      text: running.progress?.text ?? "",
      next,
    };
  }
  return {
    name,
    description,
    look: lookOfRun(last),
    last:
      last === null
        ? "not run yet"
        : `${last.status} ${ago(last.startedAt, now)}`,
    text: last?.text ?? description,
    next,
  };
}
