import { isOpen } from "../moments.ts";
import type { Alarm } from "./alarm.ts";

/** Somebody knows already: what matches is shown, and nobody is told of it. Times in milliseconds since 1970. */
export interface Silence {
  readonly id: string;
  /** A subject or a fingerprint; `*` stands for anything: `gateway`, `job:*`. */
  readonly pattern: string;
  readonly why: string;
  readonly from: number;
  readonly until: number;
}

/** The silence that covers an alarm the longest, if any does now. */
export function silenceOf(
  silences: readonly Silence[],
  alarm: Alarm,
  now: number,
): Silence | undefined {
  return silences
    .filter((silence) => isOpen(silence, now) && covers(silence.pattern, alarm))
    .toSorted((a, b) => b.until - a.until)[0];
}

/** Whether a pattern names this alarm: by its subject, its fingerprint, or what follows the fingerprint's colon. */
function covers(pattern: string, { fingerprint, subject }: Alarm): boolean {
  return [
    subject,
    fingerprint,
    fingerprint.slice(fingerprint.indexOf(":") + 1),
  ].some((name) => matches(pattern, name));
}

/** By hand rather than by a regular expression: whatever people write is a pattern, and none takes long. */
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
