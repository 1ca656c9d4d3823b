import type { Alarm } from "./alarm.ts";

/** Somebody knows already: what matches is shown, and nobody is told of it. Times in milliseconds since 1970. */
export type Silence = {
  readonly id: string;
  /** A subject or a fingerprint; `*` stands for anything: `gateway`, `job:*`. */
  readonly pattern: string;
  readonly why: string;
  readonly from: number;
  readonly until: number;
};

/** Whether a pattern names this alarm: by its subject, its fingerprint, or what follows the fingerprint's colon. */
export function covers(pattern: string, alarm: Alarm): boolean {
  const expression = new RegExp(
    `^${pattern.split("*").map(escapeRegExp).join(".*")}$`,
    "su",
  );
  const { fingerprint, subject } = alarm;
  return [
    subject,
    fingerprint,
    fingerprint.slice(fingerprint.indexOf(":") + 1),
  ].some((name) => expression.test(name));
}

/** The silence that covers an alarm the longest, if any does now. */
export function silenceOf(
  silences: readonly Silence[],
  alarm: Alarm,
  now: number,
): Silence | undefined {
  return silences
    .filter(({ pattern, until }) => until > now && covers(pattern, alarm))
    .toSorted((a, b) => b.until - a.until)[0];
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}
