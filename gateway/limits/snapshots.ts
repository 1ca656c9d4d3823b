import type { CounterParts } from "./limits.ts";
import type { Nanos } from "../pricing/money.ts";
import type {
  Account,
  SnapshotWindow,
  SnapshotWindows,
  Snapshot,
} from "./accounts.ts";

/** `leased`: by all instances. A Redis that lost its data reports less than before: the newer total of a window is kept. */
export function snapshotOf(
  account: Account,
  leased: Nanos,
  windows: SnapshotWindows,
): Snapshot {
  const before = account.snapshot?.windows ?? new Map<string, SnapshotWindow>();
  return {
    leasedByOthers: Math.max(0, leased - account.leased),
    windows:
      windows.size === 0
        ? before
        : new Map(
            [...windows].map(([name, now]) => {
              const old = before.get(name);
              const isOlder = old !== undefined && now.version < old.version;
              return [name, isOlder ? old : now];
            }),
          ),
  };
}

/** The parts, with the total last received from Redis where that is newer. */
export function newestOf(
  parts: CounterParts,
  account: Account | undefined,
): CounterParts {
  const snapshot = account?.snapshot?.windows.get(parts.window);
  if (snapshot === undefined || snapshot.version <= parts.version) {
    return parts;
  }
  return { ...parts, total: snapshot.total, version: snapshot.version };
}
