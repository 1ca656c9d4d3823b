import type { CounterParts } from "./limits.ts";
import type { Nanos } from "../pricing/money.ts";
import type {
  Account,
  SightedWindow,
  SightedWindows,
  Sighting,
} from "./accounts.ts";

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
