const SAME_SIGNAL_MS = 1_000;

interface StopSignalsOptions {
  readonly signals?: readonly NodeJS.Signals[];
  /** Milliseconds on a monotonic clock. */
  readonly now?: () => number;
}

/**
 * Calls `first` at the first stop signal and `second` at each later one. The same signal within one second is ignored: a
 * terminal signals the whole process group, and npm and bin/hearth.js forward signals. Returns a function that stops listening.
 */
export function onStopSignals(
  first: (signal: NodeJS.Signals) => void,
  second: (signal: NodeJS.Signals) => void,
  {
    signals = ["SIGINT", "SIGTERM", "SIGHUP"],
    now = () => performance.now(),
  }: StopSignalsOptions = {},
): () => void {
  let stopping:
    { readonly signal: NodeJS.Signals; readonly at: number } | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    if (stopping === undefined) {
      stopping = { signal, at: now() };
      first(signal);
    } else if (
      signal !== stopping.signal ||
      now() - stopping.at >= SAME_SIGNAL_MS
    ) {
      second(signal);
    }
  };
  for (const signal of signals) {
    process.on(signal, onSignal);
  }
  return () => {
    for (const signal of signals) {
      process.off(signal, onSignal);
    }
  };
}
