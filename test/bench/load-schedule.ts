/** The schedule of calls. */
export type Schedule =
  /** Each of `concurrency` connections sends its next call after the response to the last one. */
  | {
      readonly kind: "closed";
      readonly concurrency: number;
      readonly warmupMs: number;
      readonly durationMs: number;
    }
  /** A closed loop of a fixed number of calls, without a warm-up. */
  | {
      readonly kind: "count";
      readonly concurrency: number;
      readonly calls: number;
    }
  /** `rate` calls per second, sent when they are due regardless of pending responses; latency is measured from the due time. */
  | {
      readonly kind: "open";
      readonly rate: number;
      /** Opened first and used in turn; without it one is opened when no other is free. */
      readonly connections?: number;
      /** The run ends early once so many calls are in flight: the target does not keep up. Without it, further calls wait. */
      readonly giveUpAt?: number;
      readonly warmupMs: number;
      readonly durationMs: number;
    };

/** Limit of calls in flight; further ones wait, which counts as latency. */
export const MAX_CONNECTIONS = 1_000;

/** When a run starts and which part of it is measured, in ms of `performance.now()`. */
export interface Period {
  readonly startedAt: number;
  readonly measureFrom: number;
  readonly measureUntil: number;
}

export function startPeriod(schedule: Schedule): Period {
  const startedAt = performance.now();
  if (schedule.kind === "count") {
    return { startedAt, measureFrom: startedAt, measureUntil: Infinity };
  }
  const measureFrom = startedAt + schedule.warmupMs;
  const measureUntil = measureFrom + schedule.durationMs;
  return { startedAt, measureFrom, measureUntil };
}
