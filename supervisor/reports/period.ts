import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import { Failure } from "../../core/failure.ts";
import { dateFormat } from "../../core/formats.ts";
import { dayIn, isDay } from "../../core/words.ts";

/** Days as `2026-11-21`, first and last included, and the days to compare with. */
export interface Period {
  readonly from: string;
  readonly until: string;
  /** "November 2026", "21 days since 1 Nov 2026" */
  readonly label: string;
  /** Whether the last day is not over yet. */
  readonly open: boolean;
  readonly previous: {
    readonly from: string;
    readonly until: string;
    /** Completes a comparison: "than October by this day". */
    readonly label: string;
  };
}

export type PeriodUnit = "day" | "week" | "month";

export interface PeriodChoice {
  readonly unit: PeriodUnit;
  /** The last complete one instead of the current one. */
  readonly complete: boolean;
  /** `30d`, `4w` or a day; takes precedence over the unit. */
  readonly since?: string | undefined;
}

/** Days that no report can have, as they were typed. */
export class InvalidPeriod extends Failure {}

/** The days of a report, relative to `today` in the operator's zone. Throws an InvalidPeriod for an invalid `since`. */
export function choosePeriod(choice: PeriodChoice, today: string): Period {
  if (choice.since !== undefined) {
    return sincePeriod(choice.since, today);
  }
  const end = choice.complete ? before(firstOf(choice.unit, today)) : today;
  const from = firstOf(choice.unit, end);
  const open = !choice.complete;
  switch (choice.unit) {
    case "day":
      return {
        from,
        until: end,
        open,
        label: `${inFull(from)}${soFar(open)}`,
        previous: {
          from: before(from),
          until: before(from),
          label: open ? "the whole day before" : "the day before",
        },
      };
    case "week":
      return {
        from,
        until: end,
        open,
        label: `the week from ${inFull(from)}${soFar(open)}`,
        previous: {
          from: addDays(from, -7),
          until: addDays(end, -7),
          label: open ? "the week before by this day" : "the week before",
        },
      };
    case "month": {
      const first = firstOf("month", before(from));
      const lastOfPrevious = before(from);
      const sameDay = `${first.slice(0, 8)}${end.slice(8)}`;
      const month = monthName(first, false);
      return {
        from,
        until: end,
        open,
        label: `${monthName(from, true)}${soFar(open)}`,
        previous: {
          from: first,
          until: open && sameDay < lastOfPrevious ? sameDay : lastOfPrevious,
          label: open ? `${month} by this day` : month,
        },
      };
    }
  }
}

function soFar(open: boolean): string {
  return open ? ", so far" : "";
}

function sincePeriod(since: string, today: string): Period {
  const [, count, unit] = /^(\d{1,4})([dw])$/.exec(since) ?? [];
  const from =
    count === undefined
      ? since
      : addDays(today, 1 - Number(count) * (unit === "w" ? 7 : 1));
  if (!isDay(from) || from > today) {
    throw new InvalidPeriod(
      `invalid start "${since}": it must be a day such as 2026-11-01 (not after today), or 30d, 4w.`,
    );
  }
  const { days, ...period } = stretch(from, today, today);
  return {
    ...period,
    label:
      from === today
        ? `${inFull(from)}, so far`
        : `${days} since ${inFull(from)}`,
  };
}

/** The days from one to another, both included, and as many before them. Throws an InvalidPeriod if they are invalid. */
export function periodBetween(
  from: string,
  until: string,
  today: string,
): Period {
  if (!isDay(from) || !isDay(until)) {
    throw new InvalidPeriod("both days must be written as 2026-11-01.");
  }
  if (from > until) {
    throw new InvalidPeriod("the first day must not be after the last.");
  }
  if (until > today) {
    throw new InvalidPeriod("the last day must not be after today.");
  }
  const { days, ...period } = stretch(from, until, today);
  return {
    ...period,
    label:
      from === until
        ? inFull(from)
        : `${days} from ${inShort(from)} to ${inFull(until)}`,
  };
}

function stretch(from: string, until: string, today: string) {
  const count = daysBetween(from, until) + 1;
  const days = count === 1 ? "1 day" : `${count} days`;
  return {
    from,
    until,
    days,
    open: until === today,
    previous: {
      from: addDays(from, -count),
      until: before(from),
      label: `the ${count === 1 ? "day" : days} before`,
    },
  };
}

/** Midnight in the operator's zone; on a day without a midnight, the first moment of the day. */
export function beginningOf(day: string, timeZone: string): number {
  // Zones range from UTC-12 to UTC+14, and changes happen on the half hour.
  let low = Date.parse(day) - 15 * HOUR_MS;
  let high = Date.parse(day) + 13 * HOUR_MS;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (dayIn(timeZone, middle) < day) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
}

export function addDays(day: string, days: number): string {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);
}

export function daysBetween(from: string, until: string): number {
  return Math.round((Date.parse(until) - Date.parse(from)) / DAY_MS);
}

function before(day: string): string {
  return addDays(day, -1);
}

/** The first day of the day, week (Monday) or month that contains a day. */
export function firstOf(unit: PeriodUnit, day: string): string {
  switch (unit) {
    case "day":
      return day;
    case "week":
      return addDays(day, -((new Date(day).getUTCDay() + 6) % 7));
    case "month":
      return `${day.slice(0, 8)}01`;
  }
}

/** The last day of the month that contains a day. */
export function endOfMonth(day: string): string {
  const [year = 0, month = 1] = day.split("-").map(Number);
  return new Date(Date.UTC(year, month, 0)).toISOString().slice(0, 10);
}

/** "1 Nov 2026 to 21 Nov 2026", "21 Nov 2026" */
export function daysInFull({
  from,
  until,
}: Pick<Period, "from" | "until">): string {
  return from === until ? inFull(from) : `${inFull(from)} to ${inFull(until)}`;
}

/** "21 Nov 2026" */
export function inFull(day: string): string {
  return dateText(day, { day: "numeric", month: "short", year: "numeric" });
}

/** "21 Nov" */
export function inShort(day: string): string {
  return dateText(day, { day: "numeric", month: "short" });
}

export function monthName(day: string, withYear: boolean): string {
  return dateText(day, {
    month: "long",
    ...(withYear ? { year: "numeric" } : {}),
  });
}

function dateText(day: string, parts: Intl.DateTimeFormatOptions): string {
  return dateFormat("en-GB", "UTC", parts).format(Date.parse(day));
}
