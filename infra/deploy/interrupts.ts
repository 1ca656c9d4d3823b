const SAME_MS = 1_000;

/**
 * Calls `first` on the first Ctrl-C and `second` on each later one. Repeated signals within one second are ignored:
 * the terminal signals the whole process group, and npm and bin/run.js forward the signal as well.
 */
export function onInterrupts(
  first: () => void,
  second: () => void,
  source: Pick<NodeJS.EventEmitter, "on"> = process,
  now: () => number = () => performance.now(),
): void {
  let last: number | undefined;
  source.on("SIGINT", () => {
    const at = now();
    if (last !== undefined && at - last < SAME_MS) {
      return;
    }
    const notify = last === undefined ? first : second;
    last = at;
    notify();
  });
}
