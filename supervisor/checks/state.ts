import { isWithin } from "../../core/clock-jumps.ts";

/**
 * new: not probed yet, or not since a maintenance or a pause; pending: failed, but less than `fail_after` times; up, down:
 * known; maintenance: probed, but not judged; paused: not probed.
 */
export type CheckState =
  "new" | "up" | "pending" | "down" | "maintenance" | "paused";

/** All times in milliseconds since 1970. */
export interface CheckMemory {
  readonly state: CheckState;
  readonly since: number;
  /** Failures, or successes, in a row. */
  readonly failures: number;
  readonly successes: number;
  /** When it went down or recovered, in the last ten minutes. */
  readonly changes: readonly number[];
  /** Frequent changes are one alarm, until the state is stable for ten minutes. */
  readonly flapping: boolean;
}

interface Thresholds {
  /** Failures in a row before down. */
  readonly failAfter: number;
  /** Successes in a row before up again. */
  readonly recoverAfter: number;
}

/** Changes that are not further apart belong together. */
export const FLAPPING_OVER_MS = 600_000;
const FLAPPING_ABOVE = 4;

export function newMemory(now: number): CheckMemory {
  return {
    state: "new",
    since: now,
    failures: 0,
    successes: 0,
    changes: [],
    flapping: false,
  };
}

/**
 * The next state after a probe. A failure that is `excused` (just started, waiting for a dependency) makes it pending and does
 * not count.
 */
export function advance(
  memory: CheckMemory,
  look: "ok" | "failed" | "excused",
  { failAfter, recoverAfter }: Thresholds,
  now: number,
): CheckMemory {
  const failures = look === "failed" ? memory.failures + 1 : 0;
  const successes = look === "ok" ? memory.successes + 1 : 0;
  const state = nextState(
    memory.state,
    look === "ok",
    failures >= failAfter,
    successes >= recoverAfter,
  );
  const moved = enter(memory, state, now);
  return { ...moved, failures, successes };
}

/** States without judgement: earlier counts no longer apply. */
export function isUnjudged(state: CheckState): boolean {
  return state === "paused" || state === "maintenance" || state === "new";
}

/** Enters another state; resets the counts. */
export function enter(
  memory: CheckMemory,
  state: CheckState,
  now: number,
): CheckMemory {
  if (isUnjudged(state)) {
    return {
      ...newMemory(now),
      state,
      since: state === memory.state ? memory.since : now,
    };
  }
  const turned =
    (state === "down") !== (memory.state === "down") &&
    (state === "down" || state === "up");
  const changes = [...memory.changes, ...(turned ? [now] : [])].filter((at) =>
    isWithin(at, FLAPPING_OVER_MS, now),
  );
  return {
    state,
    since: state === memory.state ? memory.since : now,
    failures: 0,
    successes: 0,
    changes,
    flapping:
      changes.length > FLAPPING_ABOVE ||
      (memory.flapping && changes.length > 0),
  };
}

function nextState(
  state: CheckState,
  ok: boolean,
  failedEnough: boolean,
  recoveredEnough: boolean,
): CheckState {
  switch (state) {
    case "new":
    case "up":
    case "pending":
    case "maintenance":
    case "paused":
      if (ok) {
        return "up";
      }
      return failedEnough ? "down" : "pending";
    case "down":
      return ok && recoveredEnough ? "up" : "down";
  }
}
