/**
 * Clocks may be set back: times in the future then count as past by the same distance. Otherwise a restart recorded before a
 * correction by a day would count for a day and prevent restarts for as long. All in milliseconds.
 */
export function isWithin(at: number, spanMs: number, now: number): boolean {
  return Math.abs(now - at) < spanMs;
}

/** Whether a span is open. If the clock was set back by more than its length, it does not open again. */
export function isOpen(
  { from, until }: { readonly from: number; readonly until: number },
  now: number,
): boolean {
  return now < until && from - now < until - from;
}

const MIN_JUMP_MS = 5000;

/**
 * Detects that the clock was set, or that the machine slept, by comparing wall time with the time awake. `awake` returns
 * monotonic milliseconds that exclude sleep.
 */
export function openJumpDetector(
  now: () => number,
  awake: () => number,
): () => boolean {
  let offset = now() - awake();
  return () => {
    const before = offset;
    offset = now() - awake();
    return Math.abs(offset - before) > MIN_JUMP_MS;
  };
}
