const SAME_SIGNAL_MS = 1000;

/**
 * Calls `first` at the first signal to stop and `second` at the next one. The same signal twice within a second counts
 * once: a terminal tells the whole process group, and npm and bin/hearth.js pass on what they got. Returns how to end it.
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
