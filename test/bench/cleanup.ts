/** Stops everything that was started, in reverse order. */
export interface Cleanup {
  /** Waits for a start; stops what was started when the benchmark ends, even if that happens during the start. */
  keep<T>(start: Promise<T> | T, end: (started: T) => unknown): Promise<T>;
  run(): Promise<void>;
}

export function createCleanup(): Cleanup {
  const ends: (() => Promise<unknown>)[] = [];
  let running: Promise<void> | null = null;

  async function runAll(): Promise<void> {
    for (let end = ends.pop(); end !== undefined; end = ends.pop()) {
      await end().catch((error: unknown) =>
        process.stderr.write(
          `hearth: could not clean up: ${(error as Error).message}\n`,
        ),
      );
    }
  }

  return {
    async keep(start, end) {
      const started = Promise.resolve(start);
      ends.push(async () => {
        const result = await started.catch(() => null);
        if (result !== null) {
          await end(result);
        }
      });
      if (running !== null) {
        await runAll();
        throw new Error("benchmark stopped");
      }
      return started;
    },
    run: () => (running ??= runAll()),
  };
}

/** Runs `work` and stops everything that it started: afterwards, after a failure, and on Ctrl-C. Returns the exit code. */
export async function withCleanup(
  work: (cleanup: Cleanup) => Promise<number>,
): Promise<number> {
  const cleanup = createCleanup();
  const interrupted = Promise.withResolvers<number>();
  let signals = 0;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (signals++ > 0) {
        return;
      }
      process.stderr.write("hearth: stopping the benchmark …\n");
      interrupted.resolve(130);
    });
  }
  try {
    return await Promise.race([work(cleanup), interrupted.promise]);
  } catch (error) {
    if (signals > 0) {
      return 130;
    }
    process.stderr.write(`hearth: ${(error as Error).message}\n`);
    return 1;
  } finally {
    await cleanup.run();
  }
}
