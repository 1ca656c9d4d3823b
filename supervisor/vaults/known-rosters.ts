import type { VaultDevice } from "../context.ts";
import type { Attention } from "../status.ts";
import type { Couch } from "./couch.ts";
import { Database } from "./database.ts";
import { readRoster, type Roster } from "./roster.ts";

interface KnownRoster extends Roster {
  /** Since when it has been known to be locked, milliseconds since 1970; null: it is not. */
  readonly lockedSince: number | null;
}

/** The devices of all vaults; those of quiet vaults as last read. */
export function openRosters(
  couch: Couch,
  now: () => number,
): (
  vaults: readonly string[],
  quiet: ReadonlySet<string>,
) => Promise<readonly KnownRoster[]> {
  const known = new Map<string, KnownRoster>();
  return async (vaults, quiet) => {
    for (const vault of vaults) {
      if (!quiet.has(vault)) {
        const roster = await readRoster(new Database(couch, vault));
        const since = known.get(vault)?.lockedSince ?? now();
        known.set(vault, {
          ...roster,
          lockedSince: roster.locked ? since : null,
        });
      }
    }
    return vaults.flatMap((vault) => known.get(vault) ?? []);
  };
}

/** A locked vault needs a person. It is shown without notifications: who locks one is usually about to unlock it. */
export function lockOf({
  vault,
  remarks,
  lockedSince,
}: KnownRoster): readonly Attention[] {
  if (lockedSince === null) {
    return [];
  }
  return [
    {
      name: `vault ${vault}`,
      about: { topic: "vault", id: vault },
      level: "warning",
      text: `vault ${vault}: ${remarks[0] ?? "a device has locked it."}`,
      since: lockedSince,
      command: `hearth notes devices ${vault}`,
      output: null,
      tried: [],
      silenced: null,
    },
  ];
}

export function devicesOf({
  vault,
  devices,
}: KnownRoster): readonly VaultDevice[] {
  return devices.map(({ name, lastSeen, behind }) => ({
    vault,
    name,
    behind,
    seenAt: lastSeen === 0 ? null : lastSeen,
  }));
}
