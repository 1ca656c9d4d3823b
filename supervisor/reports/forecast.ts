import type { Client } from "pg";
import { rowsOf } from "../backup/database.ts";
import { addDays, daysBetween, endOfMonth, firstOf } from "./period.ts";

export interface Forecast {
  readonly until: string;
  readonly spend: number;
  /** Dollars per day for the rest of the month. */
  readonly perDay: number;
  /** Number of complete days in the average. */
  readonly basis: number;
}

const DAILY_BASIS = 28;

/** Spend of the complete days. */
export interface ForecastBasis {
  /** The first day of the ledger; null while it is empty. */
  readonly firstDay: string | null;
  /** Dollars of this month, without today. */
  readonly month: number;
  /** Dollars of the last 28 complete days. */
  readonly lately: number;
}

export async function readForecastBasis(
  client: Client,
  today: string,
): Promise<ForecastBasis> {
  const [row] = await rowsOf<Readonly<Record<string, string | null>>>(
    client,
    `SELECT coalesce(sum(spend) FILTER (WHERE day >= $1), 0)::text AS month,
            coalesce(sum(spend) FILTER (WHERE day >= $2), 0)::text AS lately,
            (SELECT min(day)::text FROM report_daily_part_spend WHERE part = 'proxy') AS first
       FROM report_daily_part_spend WHERE part = 'proxy' AND day BETWEEN least($1::date, $2::date) AND $3`,
    [firstOf("month", today), addDays(today, -DAILY_BASIS), addDays(today, -1)],
  );
  return {
    firstDay: row?.["first"] ?? null,
    month: Number(row?.["month"] ?? 0),
    lately: Number(row?.["lately"] ?? 0),
  };
}

/**
 * The forecast cost of the month of `today`, at the average of the last 28 complete days (fewer if the ledger
 * is younger): the spend so far, the rest of today up to an average day, and an average day for each remaining day. Null
 * without a complete day in the ledger.
 */
export function forecastFrom(
  { firstDay, month, lately }: ForecastBasis,
  spentToday: number,
  today: string,
): Forecast | null {
  if (firstDay === null || firstDay >= today) {
    return null;
  }
  const days = Math.min(DAILY_BASIS, daysBetween(firstDay, today));
  const perDay = lately / days;
  const until = endOfMonth(today);
  const left = daysBetween(today, until);
  return {
    spend: month + Math.max(spentToday, perDay) + perDay * left,
    until,
    perDay,
    basis: days,
  };
}
