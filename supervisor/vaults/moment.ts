import { DAY_MS, HOUR_MS, MINUTE_MS, WEEK_MS } from "../../core/duration.ts";
import { Failure } from "../../core/failure.ts";

const unitMs: Readonly<Record<string, number>> = {
  minute: MINUTE_MS,
  hour: HOUR_MS,
  day: DAY_MS,
  week: WEEK_MS,
};

/**
 * Parses a point in time in the zone of this computer: `18:00`, `yesterday 18:00`, `2026-11-21`, `2026-11-21 18:00`,
 * `3 hours ago`, or ISO 8601 with a zone. Milliseconds since 1970; throws a Failure for anything else and for the future.
 */
export function parseMoment(text: string, now: number): number {
  const moment = read(text.trim().toLowerCase(), now);
  if (moment === undefined || Number.isNaN(moment)) {
    throw new Failure(
      `"${text}" is not a valid time: use a format such as "yesterday 18:00", "2026-11-21 18:00" or "3 hours ago".`,
    );
  }
  if (moment > now) {
    throw new Failure(`"${text}" is in the future.`);
  }
  return moment;
}

/** "2026-11-21 10:02:07" as parseMoment reads it: the first second at which what began at `at` was there. */
export function momentText(at: number): string {
  return new Date(Math.ceil(at / 1000) * 1000).toLocaleString("sv-SE");
}

function read(text: string, now: number): number | undefined {
  if (text === "now") {
    return now;
  }
  const ago = /^(\d+) ?(minute|hour|day|week)s? ago$/.exec(text);
  if (ago !== null) {
    return now - Number(ago[1]) * (unitMs[ago[2]!] ?? 0);
  }
  const day =
    /^(?:(today|yesterday)|(\d{4})-(\d\d)-(\d\d))?(?:(?:^|[ t])(\d{1,2}):(\d\d)(?::(\d\d))?)?$/.exec(
      text,
    );
  if (day === null || text === "") {
    return zoned(text);
  }
  const [, word, year, month, date, hour = "0", minute = "0", second = "0"] =
    day;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) {
    return undefined;
  }
  const today = new Date(now);
  const start =
    year === undefined
      ? [
          today.getFullYear(),
          today.getMonth(),
          today.getDate() - (word === "yesterday" ? 1 : 0),
        ]
      : [Number(year), Number(month) - 1, Number(date)];
  const found = new Date(
    start[0]!,
    start[1]!,
    start[2]!,
    Number(hour),
    Number(minute),
    Number(second),
  );
  // 30 February would otherwise become a day in March.
  return year === undefined ||
    (found.getDate() === Number(date) && found.getMonth() === Number(month) - 1)
    ? found.getTime()
    : undefined;
}

function zoned(text: string): number | undefined {
  return /^\d{4}-\d\d-\d\dt\d\d:\d\d.*(?:z|[+-]\d\d:\d\d)$/.test(text)
    ? Date.parse(text.toUpperCase())
    : undefined;
}
