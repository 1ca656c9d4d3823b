import type { Alarm, ReplacedAlarms } from "../../supervisor/alerts/alarm.ts";

/** Keeps the alarms that are raised and not cleared in a map, by fingerprint. */
export function alarmsIn(raised: Map<string, Alarm>): ReplacedAlarms {
  const raise = (alarm: Alarm) => void raised.set(alarm.fingerprint, alarm);
  const retain = (prefix: string, fingerprints: readonly string[]) => {
    for (const fingerprint of raised.keys()) {
      if (
        fingerprint.startsWith(prefix) &&
        !fingerprints.includes(fingerprint)
      ) {
        raised.delete(fingerprint);
      }
    }
  };
  return {
    raise,
    clear: (fingerprint) => void raised.delete(fingerprint),
    replace: (prefix, found) => {
      retain(prefix, []);
      found.forEach(raise);
    },
    retain,
  };
}
