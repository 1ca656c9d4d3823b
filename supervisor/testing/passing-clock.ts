import { setImmediate as breathe } from "node:timers/promises";
import type { Clock } from "../jobs/clock.ts";

/** A clock that stands until it is moved. */
export type PassingClock = Clock & {
  /** Moves on to `until` (milliseconds since 1970), stopping at each wake on the way and letting what it began go on. */
  readonly pass: (until: number) => Promise<void>;
  /** Jumps without waking anybody: the machine slept, or was off. */
  readonly jump: (to: number) => void;
  /** Forgets all wakes: the program ended. */
  readonly forget: () => void;
};

export function passingClock(start: number): PassingClock {
  let now = start;
  const wakes = new Set<{ readonly at: number; readonly act: () => void }>();
  return {
    now: () => now,
    wakeAt: (at, act) => {
      const wake = { at, act };
      wakes.add(wake);
      return () => wakes.delete(wake);
    },
    pass: async (until) => {
      for (;;) {
        await breathe();
        const [first] = [...wakes].toSorted((a, b) => a.at - b.at);
        if (first === undefined || first.at > until) break;
        now = Math.max(now, first.at);
        wakes.delete(first);
        first.act();
      }
      now = until;
    },
    jump: (to) => {
      now = to;
    },
    forget: () => wakes.clear(),
  };
}
