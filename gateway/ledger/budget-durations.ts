import { DateTime } from "luxon";
import {
  DAY_MS,
  HOUR_MS,
  MINUTE_MS,
  SECOND_MS,
  WEEK_MS,
} from "../../core/duration.ts";

type Duration =
  /** Written `-1`. */
  | { readonly kind: "never" }
  | { readonly kind: "every"; readonly count: number; readonly unit: Unit };

export type Unit = "s" | "m" | "h" | "d" | "w" | "mo";

/** The minimum ms of each unit, to limit durations to the range of dates. */
export const UNIT_MS = {
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: WEEK_MS,
  mo: 28 * DAY_MS,
} as const satisfies Record<Unit, number>;
const MAX_DURATION_MS = 100 * 366 * DAY_MS;

/** LiteLLM's words, in its meaning. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ["hourly", "1h"],
  ["daily", "24h"],
  ["weekly", "7d"],
  ["monthly", "30d"],
]);

/** `30d` for LiteLLM's `monthly`; another text as it is. */
export function withoutWord(duration: string): string {
  return WORDS.get(duration.trim().toLowerCase()) ?? duration;
}

const WRITTEN = /^([1-9]\d{0,11})(s|m|h|d|w|mo)$/;

/** Reads `30s`, `15m`, `24h`, `30d`, `1w`, `1mo` and `-1` (never). The error completes "budget_duration: …". */
export function parseBudgetDuration(
  text: string,
):
  | { readonly ok: true; readonly duration: Duration }
  | { readonly ok: false; readonly error: string } {
  if (text === "-1") {
    return { ok: true, duration: { kind: "never" } };
  }
  const [, digits, unit] = WRITTEN.exec(text) ?? [];
  if (digits === undefined || unit === undefined) {
    return {
      ok: false,
      error:
        "must be a whole number of at least 1 with s, m, h, d, w or mo, such as 30s, 15m, 24h, 30d, 1w or 1mo; -1 means never",
    };
  }
  const duration = {
    kind: "every",
    count: Number(digits),
    unit: unit as Unit,
  } as const;
  if (duration.count * UNIT_MS[duration.unit] > MAX_DURATION_MS) {
    return {
      ok: false,
      error: "must be at most 100 years; -1 means never",
    };
  }
  return { ok: true, duration };
}

const ZERO = /^0(s|m|h|d|w|mo)$/;

/** The same for the life of a key, which may be over at once: `0s`. */
export function parseLifetime(
  text: string,
): ReturnType<typeof parseBudgetDuration> {
  return ZERO.test(text)
    ? { ok: true, duration: { kind: "every", count: 0, unit: "s" } }
    : parseBudgetDuration(text);
}

/**
 * When something created at `from` (ms since the epoch) expires; null for `-1`. Plain addition, months by the calendar in
 * UTC. Throws for a malformed duration.
 */
export function expiresAt(duration: string, from: number): number | null {
  const parsed = required(duration, parseLifetime(duration));
  if (parsed.kind === "never") {
    return null;
  }
  const { count, unit } = parsed;
  if (unit !== "mo") {
    return from + count * UNIT_MS[unit];
  }
  return DateTime.fromMillis(from, { zone: "utc" })
    .plus({ months: count })
    .toMillis();
}

/** Throws for a malformed duration. */
export function requireDuration(text: string): Duration {
  return required(text, parseBudgetDuration(text));
}

function required(
  text: string,
  parsed: ReturnType<typeof parseBudgetDuration>,
): Duration {
  if (!parsed.ok) {
    throw new Error(`"${text}" is not a duration: ${parsed.error}.`);
  }
  return parsed.duration;
}
