import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS } from "../../core/duration.ts";
import { listDirectory } from "../../core/list-directory.ts";
import { retainChecks } from "../checks/check-reports.ts";
import { keepHistoryReserve } from "../history/reserve.ts";
import type { Context } from "../context.ts";
import { scheduleOf } from "./config.ts";
import { openJobHistory, type JobHistory } from "./job-history.ts";
import type { Job } from "./job.ts";

const NAME = "retention";
const RUNS_KEPT_MS = 400 * DAY_MS;
/** Two runs that confirm each other's clock are at least this far apart; a clock that is set causes two within hours. */
const MIN_APART_MS = DAY_MS / 2;
const RUNS_CONSIDERED = 10;

/** Deletes old history and reports; transitions are kept forever, and the gateway deletes its own rows. */
export function retentionJob({
  config,
  history,
  home,
  onNotice,
}: Pick<Context, "config" | "history" | "home" | "onNotice">): Job {
  const settings = config.jobs.retention;
  const runs = openJobHistory(history.db, onNotice);
  return {
    name: NAME,
    description: "Delete old check results, runs and reports.",
    schedule: scheduleOf(settings),
    run: async ({ now }) => {
      const at = confirmedTime(runs, now());
      keepHistoryReserve(history.db);
      const checks = retainChecks(history.db, at, {
        rawSince: at - settings.raw,
        hoursSince: at - settings.hourly,
      });
      const removed = {
        results: checks.results,
        hours: checks.hours,
        runs: runs.forgetBefore(at - RUNS_KEPT_MS),
        reports: removeReports(home.reports, at - settings.reports),
      };
      const counts = Object.entries(removed).filter(([, count]) => count > 0);
      return {
        status: counts.length === 0 ? "skipped" : "done",
        summary:
          counts.length === 0
            ? "nothing to delete."
            : `removed ${counts.map(([what, count]) => `${count} ${what}`).join(", ")}.`,
        details: removed,
      };
    },
  };
}

/** The time of the run before: a clock that is a year ahead for one run must not delete a year. */
function confirmedTime(runs: JobHistory, now: number): number {
  const before = runs
    .runsOf(NAME, RUNS_CONSIDERED)
    .find(({ startedAt }) => startedAt <= now - MIN_APART_MS);
  return before?.startedAt ?? 0;
}

/** Deletes reports written before `until` (milliseconds since 1970); returns the number of files. */
export function removeReports(directory: string, until: number): number {
  const old = listDirectory(directory)
    .map((name) => join(directory, name))
    .filter((path) => {
      const entry = statSync(path);
      return entry.isFile() && entry.mtimeMs < until;
    });
  for (const path of old) {
    rmSync(path, { force: true });
  }
  return old.length;
}
