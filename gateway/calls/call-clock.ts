/** When a call started: ms since the epoch, and by `performance.now()`, which continues where the clock is set. */
export interface CallClock {
  readonly startedAt: number;
  readonly startedTick: number;
}

export function startClock(): CallClock {
  return { startedAt: Date.now(), startedTick: performance.now() };
}

/**
 * Ms since the epoch by the clock as it was when the call started. Many small computers set theirs minutes after they have started:
 * calls under way then are not recorded as lasting for months, or as ended before they started.
 */
export function timeIn({ startedAt, startedTick }: CallClock): number {
  return startedAt + Math.round(performance.now() - startedTick);
}
