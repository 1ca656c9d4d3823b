import { DAY_MS, HOUR_MS, WEEK_MS } from "../../core/duration.ts";
import { requireDuration, UNIT_MS, type Unit } from "./budget-durations.ts";
import { instantOf, wallTimeAt } from "./wall-time.ts";

/** A time between two resets of a budget. */
export interface Window {
  /** `1d@2026-11-21T00:00:00.000Z`: the duration and the start; `all` for a budget that never resets. */
  readonly name: string;
  /** Ms since the epoch; the first of the window. */
  readonly start: number;
  /** Ms since the epoch; the first after the window. */
  readonly end: number;
}

/** The window of budgets without `budget_duration`. */
export const LIFETIME: Window = {
  name: "all",
  start: -Infinity,
  end: Infinity,
};

/** Monday of the week of 1970-01-01, a Thursday. */
const FIRST_MONDAY = -3 * DAY_MS;
/**
 * The budget window that holds the moment `at` (ms since the epoch); `LIFETIME` for null and `-1`.
 *
 * Windows start at standard boundaries of the time zone (IANA name): days at midnight, `1w` and `7d` on Monday, `1mo`
 * and `30d` (as in LiteLLM) on the 1st. Shorter ones are counted from each midnight and end at the next; other
 * numbers of days, weeks and months from 1970-01-01 (weeks from its Monday). Throws for a malformed duration or an
 * unknown zone.
 */
export function windowAt(
  duration: string | null,
  at: number,
  timeZone: string,
): Window {
  if (duration === null) {
    return LIFETIME;
  }
  let ofZone = current.get(timeZone);
  if (ofZone === undefined) {
    current.set(timeZone, (ofZone = new Map()));
  }
  const known = ofZone.get(duration);
  if (known !== undefined && at >= known.start && at < known.end) {
    return known;
  }
  const window = findWindow(duration, at, timeZone);
  ofZone.set(duration, window);
  return window;
}

/** The last window by zone and duration: calls arrive in order of time. */
const current = new Map<string, Map<string, Window>>();

/** When a window of that name starts, ms since the epoch; `all` has no start. */
export function windowStart(name: string): number {
  const at = name.indexOf("@");
  return at < 0 ? -Infinity : Date.parse(name.slice(at + 1));
}

/** When a window of that name ends, ms since the epoch; `all` has no end. */
export function windowEnd(name: string, timeZone: string): number {
  const [duration = ""] = name.split("@");
  const start = windowStart(name);
  return start === -Infinity
    ? Infinity
    : windowAt(duration, start, timeZone).end;
}

/** The day that the moment belongs to in the zone, `2026-11-21`. */
export function dayOf(at: number, timeZone: string): string {
  const { start } = windowAt("1d", at, timeZone);
  return new Date(wallTimeAt(start, timeZone)).toISOString().slice(0, 10);
}

function findWindow(text: string, at: number, timeZone: string): Window {
  const duration = requireDuration(text);
  if (duration.kind === "never") {
    return LIFETIME;
  }
  const { start, end } = spanAt(duration.count, duration.unit, at, timeZone);
  return { name: `${text}@${new Date(start).toISOString()}`, start, end };
}

interface Span {
  readonly start: number;
  readonly end: number;
}

function spanAt(count: number, unit: Unit, at: number, timeZone: string): Span {
  switch (unit) {
    case "s":
    case "m":
    case "h":
      return clockSpan(count * UNIT_MS[unit], at, timeZone);
    case "d":
      if (count === 7) {
        return spanAt(1, "w", at, timeZone);
      }
      if (count === 30) {
        return spanAt(1, "mo", at, timeZone);
      }
      return between(at, timeZone, everyFrom(0, count * DAY_MS));
    case "w":
      return between(at, timeZone, everyFrom(FIRST_MONDAY, count * WEEK_MS));
    case "mo":
      return between(at, timeZone, everyMonths(count));
    default:
      return unit satisfies never;
  }
}

/** Boundaries in wall time: the last one not after `wall`, and the one after a boundary. */
interface Boundaries {
  last(wall: number): number;
  next(boundary: number): number;
}

/** The moments of the boundaries around `at`. */
function between(at: number, timeZone: string, boundaries: Boundaries): Span {
  let wall = boundaries.last(wallTimeAt(at, timeZone));
  let start = instantOf(wall, timeZone);
  for (;;) {
    wall = boundaries.next(wall);
    const end = instantOf(wall, timeZone);
    // In a repeated hour, a boundary may have passed that the wall clock shows as still ahead.
    if (end > at) {
      return { start, end };
    }
    start = end;
  }
}

function everyFrom(first: number, length: number): Boundaries {
  return {
    last: (wall) => first + Math.floor((wall - first) / length) * length,
    next: (boundary) => boundary + length,
  };
}

function everyMonths(count: number): Boundaries {
  return {
    last(wall) {
      const date = new Date(wall);
      const months = (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
      return Date.UTC(1970, Math.floor(months / count) * count);
    },
    next(boundary) {
      const date = new Date(boundary);
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + count);
    },
  };
}

/** Seconds, minutes and hours. */
function clockSpan(length: number, at: number, timeZone: string): Span {
  if (length > DAY_MS) {
    return between(at, timeZone, everyFrom(0, length));
  }
  if (length <= HOUR_MS) {
    // By elapsed time, so that the repeated hour does not lengthen a window.
    const day = between(at, timeZone, everyFrom(0, DAY_MS));
    const start = at - ((at - day.start) % length);
    return { start, end: Math.min(start + length, day.end) };
  }
  const midnights = everyFrom(0, DAY_MS);
  return between(at, timeZone, {
    last(wall) {
      const midnight = midnights.last(wall);
      return midnight + Math.floor((wall - midnight) / length) * length;
    },
    next: (boundary) =>
      Math.min(boundary + length, midnights.last(boundary) + DAY_MS),
  });
}
