import {
  readBudgets,
  readCorrections,
  type Budget,
  type Correction,
} from "./budgets.ts";
import {
  groupCalls,
  inSnapshot,
  readCallSums,
  readPayerSums,
  sumOf,
  type PayerKind,
} from "./daily-sums.ts";
import { forecastFrom, readForecastBasis, type Forecast } from "./forecast.ts";
import { rankPayers, type Payer } from "./payers.ts";
import type { Period } from "./period.ts";
import { seriesOf, type Series } from "./series.ts";
import type { Sums } from "./sums.ts";

export interface SpendReport {
  readonly kind: "spend";
  /** ISO text. */
  readonly madeAt: string;
  readonly timeZone: string;
  readonly period: Period;
  readonly totals: Sums;
  readonly previous: Sums;
  /** Change from the previous period: 0.12 is 12 % more; null if nothing was spent then. */
  readonly change: number | null;
  /** Of the current month; null in a report of past days. */
  readonly forecast: Forecast | null;
  readonly series: Series;
  readonly users: readonly Payer[];
  readonly keys: readonly Payer[];
  readonly teams: readonly Payer[];
  readonly models: readonly Payer[];
  readonly providers: readonly Payer[];
  readonly budgets: readonly Budget[];
  /** Spend set by an admin, which counts for one payer and is not included in the sums above. */
  readonly corrections: readonly Correction[];
}

const MAX_ROWS = 5000;

/** Reads the gateway's report views in one snapshot, as the role supervisor; needs only Postgres. */
export async function readSpendReport(
  databaseUrl: string,
  parts: {
    readonly period: Period;
    readonly timeZone: string;
    readonly today: string;
    readonly now: number;
    readonly signal: AbortSignal;
  },
): Promise<SpendReport> {
  return inSnapshot(databaseUrl, parts.signal, async (client) => {
    const { period, timeZone, today } = parts;
    const { from, until } = period;
    const then = period.previous;
    const calls = await readCallSums(client, from, until);
    const earlier = await readCallSums(client, then.from, then.until);
    const totals = sumOf(calls);
    const previous = sumOf(earlier);
    const payers = async (kind: PayerKind) =>
      rankPayers(
        await readPayerSums(client, kind, from, until),
        await readPayerSums(client, kind, then.from, then.until),
        totals.spend,
      ).slice(0, MAX_ROWS);
    const grouped = (by: "alias" | "provider") =>
      rankPayers(groupCalls(calls, by), groupCalls(earlier, by), totals.spend);
    return {
      kind: "spend",
      madeAt: new Date(parts.now).toISOString(),
      timeZone,
      period,
      totals,
      previous,
      change: changeFrom(previous.spend, totals.spend),
      forecast: period.open
        ? forecastFrom(
            await readForecastBasis(client, today),
            sumOf(await readCallSums(client, today, today)).spend,
            today,
          )
        : null,
      series: seriesOf(calls, period),
      users: await payers("user"),
      keys: await payers("key"),
      teams: await payers("team"),
      models: grouped("alias"),
      providers: grouped("provider"),
      budgets: await readBudgets(client),
      corrections: await readCorrections(client, period),
    };
  });
}

/** 0.12 is 12 % more; null if nothing was spent before. */
export function changeFrom(before: number, now: number): number | null {
  return before === 0 ? null : (now - before) / before;
}
