import type { Admin } from "../admin-route.ts";
import type { Conditions } from "../paging.ts";
import { daysOf, type DayRange } from "./days.ts";
import { PAID_AS } from "./former-keys.ts";

/** Names shown of a day by default. */
export const MAX_NAMES = 50;

interface Ranking {
  /** A statement for the days, as `of_day`. */
  readonly days: string;
  /** Daily rows and their filter. */
  readonly from: string;
  readonly filter: Conditions;
  /** The column of the names; rows without a name are left out. */
  readonly column: string;
  /** Names shown of a day. */
  readonly limit: number;
  /** Selected for each name. */
  readonly sums: string;
  /** Further columns to group by. */
  readonly by?: string;
}

/**
 * A statement for `sums` of the most expensive names of each day, with the columns `day` and `name`. It goes day by day and
 * sums only the spend of all names: with many keys the other sums would take most of the time. While the most expensive
 * names are selected, a key counts as two on the day of its rotation.
 */
export function mostExpensiveOfEachDay({
  days,
  from,
  filter,
  column,
  limit,
  sums,
  by,
}: Ranking): string {
  const grouped = by === undefined ? "name" : `name, ${by}`;
  const where = `${filter.where()} AND ${column} <> '' AND day = of_day`;
  return `SELECT of_day AS day, ranked.* FROM (${days}) days, LATERAL (
      WITH most_expensive AS (SELECT ${column} AS name FROM ${from} ${where} GROUP BY 1 ORDER BY sum(spend) DESC, 1 LIMIT ${limit}),
        paid AS (${column === "api_key" ? PAID_AS : "SELECT name, name AS paid_as FROM most_expensive"})
      SELECT name, ${sums} FROM paid JOIN ${from} ON ${column} = paid_as ${where}
        GROUP BY ${grouped}) ranked`;
}

/** The days of a range for {@link mostExpensiveOfEachDay}. */
export function everyDay(
  admin: Admin,
  range: DayRange,
  filter: Conditions,
): string {
  const { start, end } = daysOf(admin, range);
  return `SELECT each::date AS of_day FROM generate_series(${filter.bind(start)}::timestamp, ${filter.bind(end)}::timestamp, interval '1 day') each`;
}
