export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
export const WEEK_MS = 7 * DAY_MS;

/** Milliseconds of each unit; a month is 30 days. */
export const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: WEEK_MS,
  mo: 30 * DAY_MS,
};

/** "500ms", "30s", "2m", "1h", "7d" as milliseconds; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim());
  const [, amount, unit] = match ?? [];
  const factor = unit === undefined ? undefined : UNIT_MS[unit];
  return factor === undefined ? undefined : Math.round(Number(amount) * factor);
}

/** Milliseconds in words: "0.4 s", "12 s", "5 min 3 s", "5 h 50 min", "3 d 4 h". */
export function inWords(ms: number): string {
  if (ms < 9950) {
    return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
  }
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) {
    return `${seconds} s`;
  }
  if (seconds < 3600) {
    return twoParts(seconds, [60, "min"], [1, "s"]);
  }
  if (seconds < 86_400) {
    return twoParts(seconds, [3600, "h"], [60, "min"]);
  }
  return twoParts(seconds, [86_400, "d"], [3600, "h"]);
}

/** Its seconds and its name. */
type Unit = readonly [number, string];

function twoParts(
  seconds: number,
  [large, largeUnit]: Unit,
  [small, smallUnit]: Unit,
): string {
  const rest = Math.floor((seconds % large) / small);
  const whole = `${Math.floor(seconds / large)} ${largeUnit}`;
  return rest === 0 ? whole : `${whole} ${rest} ${smallUnit}`;
}
