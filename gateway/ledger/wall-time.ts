import { Info, type Zone } from "luxon";
import { MINUTE_MS } from "../../core/duration.ts";

/**
 * Converts between moments and the wall time of a time zone. A wall time is the ms since the epoch at which clocks in
 * UTC show the same.
 */

/** More than any zone's offset from UTC, and less than the time between two clock changes. */
const ASIDE = 36 * 60 * MINUTE_MS;

const zones = new Map<string, Zone>();

/** The wall time of the zone at the moment. Throws for an unknown zone. */
export function wallTimeAt(at: number, timeZone: string): number {
  return at + offsetAt(at, zoneOf(timeZone));
}

/**
 * The first moment at which clocks in the zone show the wall time or later: where clocks are set back the first of two,
 * where they are set forward over it the moment of the change. (luxon's own answer for a time that comes twice depends on
 * the season in which it is computed.)
 */
export function instantOf(wall: number, timeZone: string): number {
  const zone = zoneOf(timeZone);
  const before = offsetAt(wall - ASIDE, zone);
  const after = offsetAt(wall + ASIDE, zone);
  const early = wall - Math.max(before, after);
  if (wall - early === offsetAt(early, zone)) {
    return early;
  }
  const late = wall - Math.min(before, after);
  if (wall - late === offsetAt(late, zone)) {
    return late;
  }
  return firstWithOffset(after, early, late, zone);
}

/** The moment in `(from, to]` at which the zone's offset becomes `offset`. */
function firstWithOffset(
  offset: number,
  from: number,
  to: number,
  zone: Zone,
): number {
  let low = from;
  let high = to;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(middle, zone) === offset) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return high;
}

function offsetAt(at: number, zone: Zone): number {
  return zone.offset(at) * MINUTE_MS;
}

function zoneOf(timeZone: string): Zone {
  let zone = zones.get(timeZone);
  if (zone === undefined) {
    zone = Info.normalizeZone(timeZone);
    if (!zone.isValid) {
      throw new Error(
        `"${timeZone}" is not a time zone: use an IANA name such as Europe/Berlin, or UTC.`,
      );
    }
    zones.set(timeZone, zone);
  }
  return zone;
}
