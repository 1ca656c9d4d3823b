import { DAY_MS, HOUR_MS, WEEK_MS } from "../../core/duration.ts";

/** 1 January 1970 was a Thursday; weeks start on Monday. */
const FIRST_MONDAY = 4 * DAY_MS;

/** How long every moment is kept, then every full hour, then every midnight; after that, every Monday's (all UTC). */
const EVERY_MOMENT_MS = DAY_MS;
const HOURLY_MS = WEEK_MS;
const DAILY_MS = 13 * WEEK_MS;

/**
 * The newest instant, at or before `at`, whose state is kept, in milliseconds since 1970. Every kept instant was kept at all
 * earlier times too, so history can be thinned at any time.
 */
export function keptInstant(at: number, now: number): number {
  let instant = at;
  for (;;) {
    const floored = floorFor(instant, now);
    if (floored === instant) {
      return instant;
    }
    instant = floored;
  }
}

/** Whether a version that was current from `since` to just before `until` is part of any kept state. */
export function isKept(since: number, until: number, now: number): boolean {
  if (until <= since) {
    return false;
  }
  return keptInstant(until - 1, now) >= since;
}

/** The oldest instant, not before `from`, whose state is kept. */
export function firstKeptInstant(from: number, now: number): number {
  const zones = [
    { end: now - DAILY_MS, unit: WEEK_MS, offset: FIRST_MONDAY },
    { end: now - HOURLY_MS, unit: DAY_MS, offset: 0 },
    { end: now - EVERY_MOMENT_MS, unit: HOUR_MS, offset: 0 },
  ];
  let start = from;
  for (const { end, unit, offset } of zones) {
    const first = -floorTo(-start, unit, -offset);
    if (first < end) {
      return first;
    }
    start = Math.max(start, end);
  }
  return start;
}

function floorFor(instant: number, now: number): number {
  const age = now - instant;
  if (age <= EVERY_MOMENT_MS) {
    return instant;
  }
  if (age <= HOURLY_MS) {
    return floorTo(instant, HOUR_MS, 0);
  }
  if (age <= DAILY_MS) {
    return floorTo(instant, DAY_MS, 0);
  }
  return floorTo(instant, WEEK_MS, FIRST_MONDAY);
}

function floorTo(instant: number, unit: number, offset: number): number {
  return Math.floor((instant - offset) / unit) * unit + offset;
}
