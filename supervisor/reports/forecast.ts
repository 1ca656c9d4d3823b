import type { Client } from "pg";
import { rowsOf } from "../backup/database.ts";
import { addDays, daysBetween, endOfMonth, firstOf } from "./period.ts";

export type Forecast = {
  readonly until: string;
  readonly spend: number;
  /** Dollars a day that it goes on with. */
  readonly perDay: number;
  /** Finished days that the daily spend was worked out from. */
  readonly basis: number;
};

const dailyBasis = 28;

/** Of the month that holds `today`; null before a day of the ledger is over. */
export async function readForecast(
  client: Client,
  today: string,
): Promise<Forecast | null> {
  const [row] = await rowsOf<Readonly<Record<string, string>>>(
    client,
    `SELECT
       coalesce(sum(spend) FILTER (WHERE day BETWEEN $1 AND $2), 0)::text AS month,
       coalesce(sum(spend) FILTER (WHERE day = $2), 0)::text AS today,
       coalesce(sum(spend) FILTER (WHERE day BETWEEN $3 AND $4), 0)::text AS basis,
       (SELECT min(day)::text FROM report_daily_spend) AS first
     FROM report_daily_spend WHERE day BETWEEN least($1::date, $3::date) AND $2`,
    [
      firstOf("month", today),
      today,
      addDays(today, -dailyBasis),
      addDays(today, -1),
    ],
  );
  return row === undefined
    ? null
    : forecastFrom({
        today,
        firstDay: row["first"] ?? null,
        month: Number(row["month"]),
        spentToday: Number(row["today"]),
        basis: Number(row["basis"]),
      });
}

/**
 * What the month will have cost if it goes on as the last 28 finished days did (fewer where the ledger is younger): what was
 * spent, what is missing to an average day today, and an average day for each day that is left. Null before a day is over.
 */
export function forecastFrom(known: {
  readonly today: string;
  /** The first day of the ledger. */
  readonly firstDay: string | null;
  readonly month: number;
  readonly spentToday: number;
  /** Dollars of the last 28 finished days. */
  readonly basis: number;
}): Forecast | null {
  const { today, firstDay, month, spentToday } = known;
  if (firstDay === null || firstDay >= today) return null;
  const days = Math.min(dailyBasis, daysBetween(firstDay, today));
  const perDay = known.basis / days;
  const until = endOfMonth(today);
  const left = daysBetween(today, until);
  return {
    spend: month + Math.max(0, perDay - spentToday) + perDay * left,
    ...{ until, perDay, basis: days },
  };
}
