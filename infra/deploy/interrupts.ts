const SAME_MS = 1_000;

/**
 * Calls `first` at the first Ctrl-C and `second` at each later one. Those within a second of the last that counted are the same:
 * the terminal tells the whole process group, and npm and bin/run.js pass on what they got.
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
    const tell = last === undefined ? first : second;
    last = at;
    tell();
  });
}
