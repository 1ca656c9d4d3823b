/**
 * Clocks are set back, too: what lies ahead of them then counts as lying behind by as much. Otherwise a restart noted before a
 * correction by a day would count for a day, and keep a service from being restarted for as long. All in milliseconds.
 */
export function isWithin(at: number, spanMs: number, now: number): boolean {
  return Math.abs(now - at) < spanMs;
}

/** Whether a span is open. Where the clock was set back by more than its length, it does not open again later. */
export function isOpen(
  { from, until }: { readonly from: number; readonly until: number },
  now: number,
): boolean {
  return now < until && from - now < until - from;
}

const LEAST_JUMP_MS = 5000;

/**
 * Notices when the clock was set, or the machine slept: wall time and the time that the machine was awake then differ.
 * `awake` gives milliseconds that do not pass in sleep and cannot be set.
 */
export function openJumpDetector(
  now: () => number,
  awake: () => number,
): () => boolean {
  let offset = now() - awake();
  return () => {
    const before = offset;
    offset = now() - awake();
    return Math.abs(offset - before) > LEAST_JUMP_MS;
  };
}
