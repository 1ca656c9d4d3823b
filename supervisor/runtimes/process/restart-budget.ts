import { isWithin } from "../../../core/clock-jumps.ts";

/** Policy for restarts of a service that ended unexpectedly. Times in milliseconds. */
export interface RestartPolicy {
  /** Delay before the first restart; doubles with each further one within `per`. */
  readonly firstWaitMs: number;
  readonly longestWaitMs: number;
  /** Maximum of restarts within `perMs`. */
  readonly max: number;
  readonly perMs: number;
}

/**
 * The delay before the next restart, by the times of earlier ones (milliseconds since 1970), or "used-up".
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
