/** Flushes what was written: some time after a write, or when asked for, many writes at once. */
export interface Syncer {
  /** Something was written: it is flushed within the syncer's delay. */
  touch(): void;
  /** Resolves when all that was written before the call is on the disk; rejects when flushing failed. */
  flushed(): Promise<void>;
  /** Flushes a last time; after that nothing is flushed any more. */
  stop(): Promise<void>;
}

/**
 * Calls `flush` at most once at a time, `delayMs` after the first `touch`, at once for `flushed`.
 * A failure is told to `failed` and to those who wait for it.
 */
export function createSyncer(
  delayMs: number,
  flush: () => Promise<void>,
  failed: (error: unknown) => void,
): Syncer {
  let dirty = false;
  let running = false;
  let stopped = false;
  let timer: NodeJS.Timeout | null = null;
  /** Those waiting for the next flush: the one that runs may have begun before their write. */
  let waiting: PromiseWithResolvers<void> | null = null;

  async function run(): Promise<void> {
    running = true;
    if (timer !== null) {
      clearTimeout(timer);
    }
    timer = null;
    dirty = false;
    const waiters = waiting;
    waiting = null;
    try {
      await flush();
      waiters?.resolve();
    } catch (error) {
      failed(error);
      waiters?.reject(error);
    }
    running = false;
    schedule();
  }

  function schedule(): void {
    if (running || stopped) {
      return;
    }
    // After this turn of the event loop, so that its writes share one flush.
    if (waiting !== null) {
      setImmediate(startOnce);
    } else if (dirty && timer === null) {
      timer = setTimeout(startOnce, delayMs);
      timer.unref();
    }
  }

  function startOnce(): void {
    if (!running && (dirty || waiting !== null)) {
      void run();
    }
  }

  function flushed(): Promise<void> {
    if (waiting === null) {
      waiting = Promise.withResolvers<void>();
      schedule();
    }
    return waiting.promise;
  }

  return {
    touch() {
      if (dirty) {
        return;
      }
      dirty = true;
      schedule();
    },
    flushed,
    async stop() {
      await flushed().catch(() => {
        // `failed` was told.
      });
      stopped = true;
      if (timer !== null) {
        clearTimeout(timer);
      }
    },
  };
}
