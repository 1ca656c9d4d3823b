import type { Admin } from "../admin-route.ts";
import type { Conditions } from "../paging.ts";
import { daysOf, type DayRange } from "./days.ts";
import { PAID_AS } from "./former-keys.ts";

/** Names shown of a day where nobody asks for more. */
export const MOST_NAMES = 50;

export interface Dearest {
  /** Daily rows, and which of them. */
  readonly from: string;
  readonly filter: Conditions;
  /** The column that holds the names; rows without one are left out. */
  readonly column: string;
  /** Names shown of a day. */
  readonly most: number;
  /** What is selected for each name beside it. */
  readonly sums: string;
  /** What is grouped by beside the name. */
  readonly by?: string;
}

/**
 * A statement for `sums` of each day's dearest names, with the columns `day` and `name`. It goes from day to day, and sums
 * for all names nothing but what they spent: with many keys the rest would take most of the time. While the dearest are looked
 * for, a key counts as two on the day on which it got a new secret.
 */
export function dearestOfEachDay(
  admin: Admin,
  range: DayRange,
  { from, filter, column, most, sums, by }: Dearest,
): string {
  const { start, end } = daysOf(admin, range);
  const days = `generate_series(${filter.bind(start)}::timestamp, ${filter.bind(end)}::timestamp, interval '1 day')`;
  const grouped = by === undefined ? "name" : `name, ${by}`;
  const where = `${filter.where()} AND ${column} <> '' AND day = of_day`;
  return `SELECT of_day AS day, dear.* FROM (SELECT each::date AS of_day FROM ${days} each) days, LATERAL (
      WITH dearest AS (SELECT ${column} AS name FROM ${from} ${where} GROUP BY 1 ORDER BY sum(spend) DESC, 1 LIMIT ${most}),
        paid AS (${column === "api_key" ? PAID_AS : "SELECT name, name AS paid_as FROM dearest"})
      SELECT name, ${sums} FROM paid JOIN ${from} ON ${column} = paid_as ${where}
        GROUP BY ${grouped}) dear`;
}
