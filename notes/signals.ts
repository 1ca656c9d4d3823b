/** Repeated signals within this time are ignored: npm forwards a Ctrl-C that the terminal has already delivered. */
const SAME_MS = 1_000;
const FORCED_EXIT_CODE = 1;

type StopSignal = "SIGTERM" | "SIGINT" | "SIGHUP";

/** Calls `stop` at the first stop signal; a second one ends the process at once. */
export function onStopSignal(
  stop: (signal: StopSignal) => void,
  now: () => number = Date.now,
  exit: (code: number) => void = process.exit,
): void {
  let first: { signal: StopSignal; at: number } | undefined;
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (first === undefined) {
        first = { signal, at: now() };
        stop(signal);
        return;
      }
      if (first.signal === signal && now() - first.at < SAME_MS) {
        return;
      }
      exit(FORCED_EXIT_CODE);
    });
  }
}
