/** Wrong passwords cost time: after five in a row from one address each further one doubles the wait. */
export interface Attempts {
  /** Milliseconds until this address may try again; 0 when it may now. */
  readonly waitOf: (address: string) => number;
  readonly failed: (address: string) => void;
  readonly succeeded: (address: string) => void;
}

const FREE_TRIES = 5;
const FIRST_WAIT_MS = 2000;
const LONGEST_WAIT_MS = 300_000;
const FORGET_AFTER_MS = 3_600_000;
const MOST_ADDRESSES = 10_000;

/** Counts in memory. `now` gives milliseconds since 1970. */
export function countAttempts(now: () => number): Attempts {
  const byAddress = new Map<
    string,
    { readonly count: number; readonly at: number }
  >();

  function known(address: string) {
    const entry = byAddress.get(address);
    if (entry === undefined || now() - entry.at < FORGET_AFTER_MS) {
      return entry;
    }
    byAddress.delete(address);
    return undefined;
  }

  return {
    waitOf: (address) => {
      const entry = known(address);
      if (entry === undefined || entry.count < FREE_TRIES) {
        return 0;
      }
      const wait = Math.min(
        LONGEST_WAIT_MS,
        FIRST_WAIT_MS * 2 ** (entry.count - FREE_TRIES),
      );
      return Math.max(0, entry.at + wait - now());
    },
    failed: (address) => {
      const count = (known(address)?.count ?? 0) + 1;
      byAddress.delete(address);
      byAddress.set(address, { count, at: now() });
      const [oldest] = byAddress.keys();
      if (byAddress.size > MOST_ADDRESSES && oldest !== undefined) {
        byAddress.delete(oldest);
      }
    },
    succeeded: (address) => {
      byAddress.delete(address);
    },
  };
}
