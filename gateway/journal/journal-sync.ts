/**
 * Flushes many writes at once: `delayMs` after the first `touch`, or at once for `flushed`. `flush` runs at most once at a
 * time; `failed` gets its failure, as do the callers of `flushed`.
 */
export class Syncer {
  readonly #delayMs: number;
  readonly #flush: () => Promise<void>;
  readonly #failed: (error: unknown) => void;
  #dirty = false;
  #running = false;
  #stopped = false;
  #timer: NodeJS.Timeout | null = null;
  /** For the next flush: the one that runs may have started before the write of a waiting caller. */
  #waiting: PromiseWithResolvers<void> | null = null;

  readonly #startOnce = (): void => {
    if (!this.#running && (this.#dirty || this.#waiting !== null)) {
      void this.#run();
    }
  };

  constructor(
    delayMs: number,
    flush: () => Promise<void>,
    failed: (error: unknown) => void,
  ) {
    this.#delayMs = delayMs;
    this.#flush = flush;
    this.#failed = failed;
  }

  /** Requests a flush within the syncer's delay, after a write. */
  touch(): void {
    if (this.#dirty) {
      return;
    }
    this.#dirty = true;
    this.#schedule();
  }

  /** Resolves when all that was written before the call is on the disk; rejects when flushing failed. */
  flushed(): Promise<void> {
    if (this.#waiting === null) {
      this.#waiting = Promise.withResolvers<void>();
      this.#schedule();
    }
    return this.#waiting.promise;
  }

  /** Flushes a last time. */
  async stop(): Promise<void> {
    await this.flushed().catch(() => {
      // `failed` has got the error.
    });
    this.#stopped = true;
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
    }
  }

  async #run(): Promise<void> {
    this.#running = true;
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
    }
    this.#timer = null;
    this.#dirty = false;
    const waiters = this.#waiting;
    this.#waiting = null;
    try {
      await this.#flush();
      waiters?.resolve();
    } catch (error) {
      this.#failed(error);
      waiters?.reject(error);
    }
    this.#running = false;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#running || this.#stopped) {
      return;
    }
    // After this turn of the event loop, so that its writes share one flush.
    if (this.#waiting !== null) {
      setImmediate(this.#startOnce);
    } else if (this.#dirty && this.#timer === null) {
      this.#timer = setTimeout(this.#startOnce, this.#delayMs);
      this.#timer.unref();
    }
  }
}
