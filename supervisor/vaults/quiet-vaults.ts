/** A vault without changes is read this seldom; the embedded store can close its database meanwhile. */
const READ_EVERY_MS = 600_000;

/** Vaults that did not change since they were last read, as far as the store's feed of changes reports. */
export interface QuietVaults {
  /** Those that need not be read now. What changes from now on is read next time. */
  readonly take: () => ReadonlySet<string>;
  /** All others of these were read since. */
  readonly read: (vaults: readonly string[]) => void;
  readonly changed: (vault: string) => void;
  /** From now on the feed reports every change. */
  readonly connected: () => void;
  /** The feed broke off: changes may be missed. */
  readonly lost: () => void;
}

export function openQuietVaults(now: () => number): QuietVaults {
  const readAt = new Map<string, number>();
  const changed = new Set<string>();
  let isConnected = false;
  /** Whether the feed reported every change since `take`. */
  let isComplete = false;
  let taken: ReadonlySet<string> = new Set();
  return {
    take: () => {
      isComplete = isConnected;
      taken = new Set(
        [...readAt]
          .filter(
            ([vault, at]) => !changed.has(vault) && now() - at < READ_EVERY_MS,
          )
          .map(([vault]) => vault),
      );
      changed.clear();
      return taken;
    },
    read: (vaults) => {
      if (!isComplete) {
        return;
      }
      for (const vault of vaults) {
        if (!taken.has(vault)) {
          readAt.set(vault, now());
        }
      }
    },
    changed: (vault) => void changed.add(vault),
    connected: () => {
      isConnected = true;
    },
    lost: () => {
      isConnected = false;
      isComplete = false;
      readAt.clear();
    },
  };
}
