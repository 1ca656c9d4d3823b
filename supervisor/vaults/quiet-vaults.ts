import { isWithin } from "../../core/clock-jumps.ts";
/** A vault without changes is read only this often; the embedded store can close its database meanwhile. */
const READ_EVERY_MS = 600_000;

/** Vaults without changes since they were last read, according to the store's feed of changes. */
export interface QuietVaults {
  /** Vaults that need not be read now. Later changes are read next time. */
  readonly take: () => ReadonlySet<string>;
  /** Marks all of these except `quiet` ones as read. */
  readonly read: (vaults: readonly string[]) => void;
  readonly changed: (vault: string) => void;
  /** From now on the feed reports every change. */
  readonly connected: () => void;
  /** The feed was interrupted: changes may be missed. */
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
            ([vault, at]) =>
              !changed.has(vault) && isWithin(at, READ_EVERY_MS, now()),
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
