import { inWords } from "../../../core/duration.ts";
import type { RunView } from "../../../supervisor/jobs/runner.ts";
import type { Look } from "../../../core/shapes.ts";
import { moment, percent } from "../../../core/words.ts";

export function lookOfRun(run: Pick<RunView, "status"> | null): Look {
  switch (run?.status) {
    case undefined:
      return "none";
    case "done":
      return "ok";
    case "running":
    case "skipped":
      return "rest";
    case "stopped":
    case "interrupted":
      return "warn";
    case "failed":
      return "bad";
  }
}

/** The outcome of a run; completes a sentence that starts with the job's name. */
export function outcomeOf(run: Pick<RunView, "status"> | null): string {
  switch (run?.status) {
    case undefined:
      return "has not run yet";
    case "done":
      return "succeeded";
    case "running":
      return "is running";
    case "skipped":
      return "had nothing to do";
    case "stopped":
      return "was stopped";
    case "interrupted":
      return "was interrupted";
    case "failed":
      return "failed";
  }
}

/** Why a run started, and when it was due. */
export function causeOf(run: RunView, timeZone: string): string {
  if (run.due === null) {
    return run.askedBy === null ? "on demand" : `on demand, by ${run.askedBy}`;
  }
  const due = moment(run.due, timeZone);
  return run.caughtUp ? `caught up (due ${due})` : "scheduled";
}

/** Null while it runs. */
export function durationOf({ startedAt, endedAt }: RunView): string | null {
  return endedAt === null ? null : inWords(endedAt - startedAt);
}

/** The progress of a run, for its bar and the words next to it. */
export function viewProgress(run: RunView, now: number) {
  const { progress, startedAt } = run;
  const passed = now - startedAt;
  const done = progress?.done ?? null;
  const share = done === null ? null : Math.min(1, Math.max(0, done));
  const left =
    share !== null && share > 0.02 && share < 1
      ? [`about ${inWords((passed / share) * (1 - share))} left`]
      : [];
  const again =
    progress?.nextTryAt == null
      ? []
      : [
          `attempt ${progress.attempt} failed, retrying in ${inWords(progress.nextTryAt - now)}`,
        ];
  return {
    id: run.id,
    text: progress?.text ?? "starting",
    share: share === null ? null : Math.floor(share * 100),
    words: [
      ...(share === null ? [] : [percent(Math.floor(share * 100) / 100)]),
      `running for ${inWords(passed)}`,
      ...left,
      ...again,
    ].join(", "),
  };
}
