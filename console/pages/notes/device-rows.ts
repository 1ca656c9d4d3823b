import type { Roster } from "../../../supervisor/vaults/roster.ts";
import type { Look } from "../../../core/shapes.ts";
import { ago, grouped } from "../../../core/words.ts";

/** A vault's devices as tables show them, the most recently seen first. */
export function deviceRows({ vault, locked, devices }: Roster, now: number) {
  return devices.map((device) => ({
    vault,
    name: device.name,
    seen: device.lastSeen === 0 ? "never" : ago(device.lastSeen, now),
    changesSince: device.behind === 0 ? "none" : grouped(device.behind),
    look: (locked && !device.accepted
      ? "bad"
      : device.outdated || Object.keys(device.differs).length > 0
        ? "warn"
        : "ok") satisfies Look as Look,
    plugin: device.pluginVersion || "unknown",
    outdated: device.outdated,
    app: device.appVersion || "unknown",
    differs: Object.entries(device.differs).map(
      ([name, { here, preferred }]) =>
        `${name}: ${JSON.stringify(here)}, vault: ${JSON.stringify(preferred)}`,
    ),
    waits: locked && !device.accepted,
  }));
}
