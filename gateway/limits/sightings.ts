import type { CounterParts } from "./limits.ts";
import type { Nanos } from "../pricing/money.ts";
import type { Account } from "./accounts.ts";

/** What Redis last said of an entity, for the time when it is unavailable. */
export interface Sighting {
  readonly leasedByOthers: Nanos;
  readonly windows: SightedWindows;
}

/** By name of the window. */
export type SightedWindows = ReadonlyMap<string, SightedWindow>;

export interface SightedWindow {
  /** The ledger's total, and its version. */
  readonly total: Nanos;
  readonly version: number;
  /** The total with everything that is pending, of all instances. */
  readonly spend: Nanos;
}

/** `leased`: by all instances. A Redis that lost its data says less than before: the newer total of a window is kept. */
export function sightingOf(
  account: Account,
  leased: Nanos,
  windows: SightedWindows,
): Sighting {
  const before = account.sighting?.windows ?? new Map<string, SightedWindow>();
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

/** The parts, with the total that Redis last said where that is newer. */
export function newestOf(
  parts: CounterParts,
  account: Account | undefined,
): CounterParts {
  const said = account?.sighting?.windows.get(parts.window);
  if (said === undefined || said.version <= parts.version) {
    return parts;
  }
  return { ...parts, total: said.total, version: said.version };
}
