/** Unanswered pings until a thread counts as hung, and until it is terminated. */
const HUNG_AFTER = 2;
const EXPIRED_AFTER = 6;

/** Detects a thread that stops answering while requests wait for it. Counts pings, not time: a suspended machine or a busy main thread misses none. */
export interface Watchdog {
  /** Starts pinging, when a request waits for the thread. */
  readonly start: () => void;
  /** Records an answer to a ping. */
  readonly answered: () => void;
  readonly stop: () => void;
  readonly isHung: () => boolean;
}

interface WatchdogOptions {
  readonly deadlineMs: number;
  /** Whether any request still waits. */
  readonly isBusy: () => boolean;
  readonly ping: () => void;
  /** Called when no ping was answered within the deadline. */
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
