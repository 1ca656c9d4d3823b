import type { Histogram } from "node:perf_hooks";

/** Delay of timers of an event loop, in ms. */
export interface LoopDelay {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** Delays of more than {@link PAUSE_MS}. */
  readonly pauses: number;
}

export const PAUSE_MS = 10;

type Delays = Pick<Histogram, "count" | "max" | "percentile">;

/** Reads a histogram of `monitorEventLoopDelay`, which counts whole intervals of its timer, in ns. */
export function readLoopDelay(delays: Delays, resolutionMs: number): LoopDelay {
  const lateness = (nanoseconds: number) =>
    Math.max(0, nanoseconds / 1e6 - resolutionMs);
  return {
    p50: lateness(delays.percentile(50)),
    p99: lateness(delays.percentile(99)),
    max: lateness(delays.max),
    pauses: countAbove(delays, (PAUSE_MS + resolutionMs) * 1e6),
  };
}

/** The histogram has no counts of its values: the number of values up to the limit is found by halving the percentiles. */
function countAbove(delays: Delays, limit: number): number {
  const total = Number(delays.count);
  let [within, beyond] = [0, total + 1];
  while (beyond - within > 1) {
    const middle = (within + beyond) >> 1;
    if (delays.percentile((100 * middle) / total) <= limit) {
      within = middle;
    } else {
      beyond = middle;
    }
  }
  return total - within;
}
