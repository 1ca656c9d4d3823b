const SAME_SIGNAL_MS = 1000;

/**
 * Calls `first` at the first stop signal and `second` at the next one. Repeated signals within one second are ignored: a
 * terminal signals the whole process group, and npm and bin/hearth.js forward signals. Returns a function that stops listening.
 */
export function onStopSignals(
  first: (signal: NodeJS.Signals) => void,
  second: (signal: NodeJS.Signals) => void,
): () => void {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  let told:
    { readonly signal: NodeJS.Signals; readonly at: number } | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    const now = performance.now();
    if (told === undefined) {
      told = { signal, at: now };
      first(signal);
    } else if (signal !== told.signal || now - told.at > SAME_SIGNAL_MS) {
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
