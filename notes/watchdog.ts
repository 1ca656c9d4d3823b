/** Unanswered pings until a thread counts as hung, and until it is given up. */
const HUNG_AFTER = 2;
const EXPIRED_AFTER = 6;

/** Watches that a thread answers while something waits for it. Counts pings, not time: a machine that slept, or a main thread that was busy, has missed none. */
export interface Watchdog {
  /** Something waits for the thread. */
  readonly start: () => void;
  /** The thread answered a ping. */
  readonly answered: () => void;
  readonly stop: () => void;
  readonly isHung: () => boolean;
}

export interface WatchdogOptions {
  readonly deadlineMs: number;
  /** Whether anything still waits. */
  readonly isBusy: () => boolean;
  readonly ping: () => void;
  /** Nothing was answered for the deadline. */
  readonly expired: () => void;
}

export function openWatchdog(options: WatchdogOptions): Watchdog {
  let timer: NodeJS.Timeout | undefined;
  let isAwaited = false;
  let missed = 0;

  const stop = (): void => {
    clearInterval(timer);
    timer = undefined;
  };
  const look = (): void => {
    if (isAwaited) {
      missed += 1;
      if (missed < EXPIRED_AFTER) {
        return;
      }
      stop();
      options.expired();
    } else if (options.isBusy()) {
      isAwaited = true;
      options.ping();
    } else {
      stop();
    }
  };

  return {
    start: () => {
      timer ??= setInterval(look, options.deadlineMs / (EXPIRED_AFTER + 1));
    },
    answered: () => {
      isAwaited = false;
      missed = 0;
    },
    stop,
    isHung: () => missed >= HUNG_AFTER,
  };
}
