import { DAY_MS } from "../../../core/duration.ts";
import { invalidParam } from "../../http/errors.ts";
import { dayOf } from "../../ledger/budget-windows.ts";
import type { Admin } from "../admin-route.ts";
import { queryDay } from "../kinds/values.ts";
import { conditions, type Conditions } from "../paging.ts";

/** Days of a report, by default the last thirty. */
export const dayRange = {
  start_date: queryDay.optional(),
  end_date: queryDay.optional(),
} as const;

export interface DayRange {
  readonly start_date?: string | undefined;
  readonly end_date?: string | undefined;
}

const DEFAULT_DAYS = 30;
const MAX_DAYS = 3_660;

/** A filter on the column `day`; throws 400 for a range that is reversed or too long. */
export function onDays(admin: Admin, range: DayRange): Conditions {
  const { start, end } = daysOf(admin, range);
  const filter = conditions();
  filter.and("day >= ?", start);
  filter.and("day <= ?", end);
  return filter;
}

export function daysOf(
  { now, windowing }: Admin,
  { start_date, end_date }: DayRange,
): { readonly start: string; readonly end: string } {
  const end = end_date ?? dayOf(now, windowing.timeZone);
  const start =
    start_date ??
    new Date(Date.parse(end) - (DEFAULT_DAYS - 1) * DAY_MS)
      .toISOString()
      .slice(0, end.length);
  const length = (Date.parse(end) - Date.parse(start)) / DAY_MS;
  if (length < 0 || length > MAX_DAYS) {
    throw invalidParam(
      "end_date",
      `must be on or after \`start_date\`, at most ${MAX_DAYS} days later.`,
    );
  }
  return { start, end };
}

/** `day` as text, independent of the time zone of this process. */
export const DAY = "to_char(day, 'YYYY-MM-DD')";

/** Sums of a daily table, by their names in reports. */
export const METRICS = `sum(spend) AS spend, sum(saved) AS saved, sum(prompt_tokens) AS prompt_tokens,
  sum(completion_tokens) AS completion_tokens, sum(prompt_tokens + completion_tokens) AS total_tokens,
  sum(cached_tokens) AS cache_read_input_tokens, sum(cache_write_tokens) AS cache_creation_input_tokens,
  sum(requests) AS api_requests, sum(successful) AS successful_requests, sum(failed) AS failed_requests,
  sum(interrupted) AS interrupted_requests, sum(cache_hits) AS cache_hits, sum(unpriced) AS unpriced_requests`;

export const METRIC_NAMES = [
  "spend",
  "saved",
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  "cache_read_input_tokens",
  "cache_creation_input_tokens",
  "api_requests",
  "successful_requests",
  "failed_requests",
  "interrupted_requests",
  "cache_hits",
  "unpriced_requests",
] as const;

export type Metrics = Readonly<Record<(typeof METRIC_NAMES)[number], number>>;
