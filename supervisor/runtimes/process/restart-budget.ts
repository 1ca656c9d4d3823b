import { isWithin } from "../../moments.ts";

/** How a service that ended by itself is started again. Times in milliseconds. */
export interface RestartPolicy {
  /** Wait before the first restart; doubles with each one that follows within `per`. */
  readonly firstWaitMs: number;
  readonly longestWaitMs: number;
  /** At most this many restarts within `perMs`, then it is given up. */
  readonly max: number;
  readonly perMs: number;
}

/**
 * Given the times of earlier restarts (milliseconds since 1970), how long to wait for the next one,
 * or "used-up".
 */
export function nextRestart(
  policy: RestartPolicy,
  earlier: readonly number[],
  now: number,
): number | "used-up" {
  const recent = earlier.filter((at) => isWithin(at, policy.perMs, now)).length;
  if (recent >= policy.max) {
    return "used-up";
  }
  return Math.min(policy.firstWaitMs * 2 ** recent, policy.longestWaitMs);
}
