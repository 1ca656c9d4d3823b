/** Time as the runner sees it, so that a test can pass a year in a second. */
export interface Clock {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /**
   * Calls once when the time has come, however it came (a machine that slept, a clock that was set), or earlier when the clock
   * was set back. Answers the way to call it off.
   */
  readonly wakeAt: (at: number, act: () => void) => () => void;
  /** Calls once after the machine was awake for so long, wherever its clock stands then. */
  readonly wakeAfter: (ms: number, act: () => void) => () => void;
}

const LOOK_EVERY_MS = 30_000;
const LEAST_SET_BACK_MS = 1000;

/** The machine's own clock. */
export const systemClock: Clock = {
  now: Date.now,
  wakeAt: (at, act) => {
    let timer: NodeJS.Timeout;
    let latest = Date.now();
    // One long timer would be late by all the time that the machine slept.
    const look = () => {
      const now = Date.now();
      const left = at - now;
      const isSetBack = now < latest - LEAST_SET_BACK_MS;
      latest = now;
      if (left <= 0 || isSetBack) {
        act();
      } else {
        timer = setTimeout(look, Math.min(left, LOOK_EVERY_MS));
      }
    };
    timer = setTimeout(look, Math.min(Math.max(0, at - Date.now()), 1));
    return () => clearTimeout(timer);
  },
  wakeAfter: (ms, act) => {
    const timer = setTimeout(act, ms);
    return () => clearTimeout(timer);
  },
};
