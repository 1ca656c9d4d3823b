import { Cron } from "croner";
import { textOf } from "./failure.ts";

/**
 * When something is due. Daylight saving time as in croner and Vixie cron: a job with one hour and one minute (`30 2 * * *`) whose
 * time is skipped runs right after the gap, one whose time occurs twice runs only the first time; a job with several hours or
 * minutes runs at each time that really passes.
 */
export interface Schedule {
  /** The first due time after `at`; undefined if there is none (31 February). Milliseconds since 1970. */
  readonly next: (at: number) => number | undefined;
  /** The last due time up to and including `at`. */
  readonly latest: (at: number) => number | undefined;
}

export function openSchedule(cron: string, timeZone: string): Schedule {
  const pattern = new Cron(cron, {
    timezone: timeZone,
    paused: true,
    mode: "5-part",
  });
  return {
    next: (at) => pattern.nextRun(new Date(at))?.getTime(),
    // croner searches before the given time, by whole seconds.
    latest: (at) => pattern.previousRuns(1, new Date(at + 1000))[0]?.getTime(),
  };
}

/** Why a text is not a schedule of five fields; undefined if it is one. */
export function mistakeInCron(cron: string): string | undefined {
  if (cron.trim().split(/\s+/).length !== 5) {
    return 'must have five fields: minute, hour, day of month, month, day of week, such as "0 4 1 * *"';
  }
  try {
    const next = openSchedule(cron, "UTC").next(Date.UTC(2024, 0, 1));
    return next === undefined ? "never occurs" : undefined;
  } catch (error) {
    return `is not a valid schedule (${textOf(error).replace(/^CronPattern: /, "")})`;
  }
}

export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
