import { isWithin } from "../../core/clock-jumps.ts";
import { MINUTE_MS } from "../../core/duration.ts";

/** Calls of one minute; `rejections` were not sent because of a cooldown. */
export interface RecentCalls {
  readonly calls: number;
  readonly failures: number;
  readonly rejections: number;
}

type Counts = { -readonly [Name in keyof RecentCalls]: number };

/** Counts by name; each restarts a minute after its first call. */
export interface RecentCallCounts {
  of(id: string): Counts;
  sumOf(included: (id: string) => boolean): RecentCalls;
  size(): number;
}

export function createRecentCalls(now: () => number): RecentCallCounts {
  const minutes = new Map<string, Counts & { readonly since: number }>();

  /**
   * Entries are ordered by their start: the first that has not ended ends the loop. After the clock was set back by more
   * than a minute, those that started before are over.
   */
  function dropEnded(): void {
    const at = now();
    for (const [id, { since }] of minutes) {
      if (isWithin(since, MINUTE_MS, at)) {
        return;
      }
      minutes.delete(id);
    }
  }

  function of(id: string): Counts {
    dropEnded();
    const known = minutes.get(id);
    if (known !== undefined) {
      return known;
    }
    const fresh = { since: now(), calls: 0, failures: 0, rejections: 0 };
    minutes.set(id, fresh);
    return fresh;
  }

  return {
    of,
    sumOf(included) {
      dropEnded();
      const sum = { calls: 0, failures: 0, rejections: 0 };
      for (const [id, { calls, failures, rejections }] of minutes) {
        if (!included(id)) {
          continue;
        }
        sum.calls += calls;
        sum.failures += failures;
        sum.rejections += rejections;
      }
      return sum;
    },
    size: () => minutes.size,
  };
}
