import { dayOf, type Window } from "../ledger/budget-windows.ts";
import { query, type Pool } from "./pool.ts";

/** Dollars spent at a provider since a window's start, as the ledger has it. */
export async function readProviderSpend(
  pool: Pool,
  provider: string,
  { start }: Window,
  timeZone: string,
): Promise<number> {
  const [row] = await query<{ spend: number }>(
    pool,
    ...statementOf(provider, start, timeZone),
  );
  return Number(row?.spend ?? 0);
}

/** A window that starts with a day is a sum of days. */
function statementOf(
  provider: string,
  start: number,
  timeZone: string,
): [string, unknown[]] {
  if (start === -Infinity) {
    return [`${SUM} FROM daily_spend WHERE provider = $1`, [provider]];
  }
  const day = dayOf(start, timeZone);
  return dayOf(start - 1, timeZone) === day
    ? [
        `${SUM} FROM spend_log WHERE provider = $1 AND ended_at >= $2`,
        [provider, new Date(start)],
      ]
    : [
        `${SUM} FROM daily_spend WHERE provider = $1 AND day >= $2`,
        [provider, day],
      ];
}

const SUM = "SELECT sum(spend)::float8 AS spend";
