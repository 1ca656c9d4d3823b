/** The clock of the runner; tests simulate a year in a second. */
export interface Clock {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /**
   * Calls once at this time, even after a sleep of the machine or a change of its clock, or earlier if the clock was set back.
   * Returns a function that cancels it.
   */
  readonly wakeAt: (at: number, act: () => void) => () => void;
  /** Calls once after the machine was awake for this long, whatever its clock. */
  readonly wakeAfter: (ms: number, act: () => void) => () => void;
}

const POLL_EVERY_MS = 30_000;
const MIN_SET_BACK_MS = 1000;

/** The clock of the machine. */
export const systemClock: Clock = {
  now: Date.now,
  wakeAt: (at, act) => {
    let timer: NodeJS.Timeout;
    let latest = Date.now();
    // A single long timer would be late by the time that the machine slept.
    const poll = () => {
      const now = Date.now();
      const left = at - now;
      const isSetBack = now < latest - MIN_SET_BACK_MS;
      latest = now;
      if (left <= 0 || isSetBack) {
        act();
      } else {
        timer = setTimeout(poll, Math.min(left, POLL_EVERY_MS));
      }
    };
    timer = setTimeout(poll, Math.min(Math.max(0, at - Date.now()), 1));
    return () => clearTimeout(timer);
  },
  wakeAfter: (ms, act) => {
    const timer = setTimeout(act, ms);
    return () => clearTimeout(timer);
  },
};
