import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../../supervisor/jobs/clock.ts";

/** A clock that only moves when a test moves it. */
export type PassingClock = Clock & {
  /** Advances to `until` (milliseconds since 1970), stopping at each wake-up on the way to let its tasks run. */
  readonly pass: (until: number) => Promise<void>;
  /** Jumps without firing wake-ups: the machine slept, was off, or its clock was set. */
  readonly jump: (to: number) => void;
  /** Drops all wake-ups, as the end of the program does. */
  readonly forget: () => void;
};

export function passingClock(start: number): PassingClock {
  let now = start;
  const wakes = new Set<{
    at: number;
    readonly act: () => void;
    readonly awake: boolean;
  }>();
  const wakeAt = (at: number, act: () => void, awake: boolean) => {
    const wake = { at, act, awake };
    wakes.add(wake);
    return () => void wakes.delete(wake);
  };
  return {
    now: () => now,
    wakeAt: (at, act) => wakeAt(at, act, false),
    wakeAfter: (ms, act) => wakeAt(now + ms, act, true),
    pass: async (until) => {
      for (;;) {
        await nextTurn();
        const [first] = [...wakes].toSorted((a, b) => a.at - b.at);
        if (first === undefined || first.at > until) {
          break;
        }
        now = Math.max(now, first.at);
        wakes.delete(first);
        first.act();
      }
      now = until;
    },
    jump: (to) => {
      for (const wake of wakes) {
        if (wake.awake) {
          wake.at += to - now;
        } else if (to < now) {
          wake.at = to;
        }
      }
      now = to;
    },
    forget: () => wakes.clear(),
  };
}
