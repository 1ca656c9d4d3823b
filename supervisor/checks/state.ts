/**
 * new: not looked at yet; pending: failed, but not often enough to be believed; up, down: known.
 */
export type CheckState = "new" | "up" | "pending" | "down";

export type CheckMemory = {
  readonly state: CheckState;
  /** Milliseconds since 1970. */
  readonly since: number;
  /** Failures, or successes, in a row. */
  readonly failures: number;
  readonly successes: number;
};

export type Thresholds = {
  /** Failures in a row before down. */
  readonly failAfter: number;
  /** Successes in a row before up again. */
  readonly recoverAfter: number;
};

export function newMemory(now: number): CheckMemory {
  return { state: "new", since: now, failures: 0, successes: 0 };
}

/** The next state after one result. */
export function advance(
  memory: CheckMemory,
  ok: boolean,
  { failAfter, recoverAfter }: Thresholds,
  now: number,
): CheckMemory {
  const failures = ok ? 0 : memory.failures + 1;
  const successes = ok ? memory.successes + 1 : 0;
  const state = nextState(
    memory.state,
    ok,
    failures >= failAfter,
    successes >= recoverAfter,
  );
  const since = state === memory.state ? memory.since : now;
  return { state, since, failures, successes };
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
      if (ok) return "up";
      return failedEnough ? "down" : "pending";
    case "down":
      return ok && recoveredEnough ? "up" : "down";
  }
}
