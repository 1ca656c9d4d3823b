/** Wrong passwords cost time: after five in a row from one address each further one doubles the wait. */
export type Attempts = {
  /** Milliseconds until this address may try again; 0 when it may now. */
  readonly waitOf: (address: string) => number;
  readonly failed: (address: string) => void;
  readonly succeeded: (address: string) => void;
};

const freeTries = 5;
const firstWaitMs = 2000;
const longestWaitMs = 300_000;
const forgetAfterMs = 3_600_000;
const mostAddresses = 10_000;

/** Counts in memory. `now` gives milliseconds since 1970. */
export function countAttempts(now: () => number): Attempts {
  const byAddress = new Map<
    string,
    { readonly count: number; readonly at: number }
  >();

  function known(address: string) {
    const entry = byAddress.get(address);
    if (entry === undefined || now() - entry.at < forgetAfterMs) return entry;
    byAddress.delete(address);
    return undefined;
  }

  return {
    waitOf: (address) => {
      const entry = known(address);
      if (entry === undefined || entry.count < freeTries) return 0;
      const wait = Math.min(
        longestWaitMs,
        firstWaitMs * 2 ** (entry.count - freeTries),
      );
      return Math.max(0, entry.at + wait - now());
    },
    failed: (address) => {
      const count = (known(address)?.count ?? 0) + 1;
      byAddress.delete(address);
      byAddress.set(address, { count, at: now() });
      const [oldest] = byAddress.keys();
      if (byAddress.size > mostAddresses && oldest !== undefined)
        byAddress.delete(oldest);
    },
    succeeded: (address) => {
      byAddress.delete(address);
    },
  };
}
