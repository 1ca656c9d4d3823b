import { isOpen } from "../../core/clock-jumps.ts";
import type { Alarm } from "./alarm.ts";

/** Matching alarms are displayed without notifications. Times in milliseconds since 1970. */
export interface Silence {
  readonly id: string;
  /** A subject or a fingerprint; `*` matches anything: `gateway`, `job:*`. */
  readonly pattern: string;
  readonly why: string;
  readonly from: number;
  readonly until: number;
}

/** The current silence of an alarm; the one that ends last. */
export function silenceOf(
  silences: readonly Silence[],
  alarm: Alarm,
  now: number,
): Silence | undefined {
  return silences
    .filter((silence) => isOpen(silence, now) && covers(silence.pattern, alarm))
    .toSorted((a, b) => b.until - a.until)[0];
}

/** Whether a pattern matches the subject of an alarm, its fingerprint, or the part of the fingerprint after the colon. */
function covers(pattern: string, { fingerprint, subject }: Alarm): boolean {
  return [
    subject,
    fingerprint,
    fingerprint.slice(fingerprint.indexOf(":") + 1),
  ].some((name) => matches(pattern, name));
}

/** Not a regular expression, so that any text is a valid pattern and none takes long. */
function matches(pattern: string, name: string): boolean {
  const [first = "", ...pieces] = pattern.split("*");
  const last = pieces.pop();
  if (last === undefined) {
    return name === pattern;
  }
  if (!name.startsWith(first)) {
    return false;
  }
  let from = first.length;
  for (const piece of pieces) {
    const at = name.indexOf(piece, from);
    if (at === -1) {
      return false;
    }
    from = at + piece.length;
  }
  return name.length - last.length >= from && name.endsWith(last);
}
