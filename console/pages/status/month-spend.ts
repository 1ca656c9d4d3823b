import type { Client } from "pg";
import { MINUTE_MS } from "../../../core/duration.ts";
import { Failure } from "../../../core/failure.ts";
import { inSnapshot } from "../../../supervisor/reports/daily-sums.ts";
import { openLedgerDay } from "../../../supervisor/reports/ledger-day.ts";
import {
  openReadCache,
  StillReading,
} from "../../../supervisor/reports/read-cache.ts";

export interface MonthSpend {
  /** Dollars. */
  readonly spend: number;
  /** Dollars in the previous month up to the same day. */
  readonly before: number;
  readonly calls: number;
  readonly failed: number;
  readonly cached: number;
  /** Dollars that caches have saved. */
  readonly saved: number;
  /** Day of the month, alias, dollars. */
  readonly days: readonly {
    readonly day: number;
    readonly model: string;
    readonly spend: number;
  }[];
  /** The most expensive pairs of alias and key. */
  readonly payers: readonly {
    readonly model: string;
    /** Its hash; empty for the master key. */
    readonly token: string;
    readonly key: string;
    readonly spend: number;
    /** Of the key's budget that is used, 0 to 1 and over; null when it has none. */
    readonly used: number | null;
  }[];
}

/** unknown: no database is configured; reading: the first query is still running; away: the database is unavailable, `last` is the previous result. */
export type SpendView =
  | { readonly kind: "unknown" }
  | { readonly kind: "reading" }
  | { readonly kind: "away"; readonly why: string; readonly last: Known | null }
  | ({ readonly kind: "known" } & Known);

interface Known {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly spend: MonthSpend;
}

/** The page is opened often: it shows the cached sums, refreshed in the background at most twice a minute. */
const limits = { freshMs: 30_000, staleMs: 900_000 };
const READ_WITHIN_MS = MINUTE_MS;

/** Reads this month's spend from the views of the gateway's database; `databaseUrl` is called each time because logins change. */
export function readMonthSpend(
  databaseUrl: () => string | undefined,
  timeZone: string,
  now: () => number,
): () => Promise<SpendView> {
  const cache = openReadCache(now);
  const ledgerDay = openLedgerDay(databaseUrl, timeZone, now);
  return async () => {
    const url = databaseUrl();
    if (url === undefined) {
      return { kind: "unknown" };
    }
    const today = await ledgerDay(now());
    try {
      const { value, at, trouble } = await cache(
        today.slice(0, "2026-11".length),
        limits,
        () =>
          inSnapshot(url, AbortSignal.timeout(READ_WITHIN_MS), (client) =>
            query(client, today),
          ),
      );
      const known = { at, spend: value };
      return trouble === null
        ? { kind: "known", ...known }
        : { kind: "away", why: trouble, last: known };
    } catch (error) {
      if (error instanceof StillReading) {
        return { kind: "reading" };
      }
      if (error instanceof Failure) {
        return { kind: "away", why: error.message, last: null };
      }
      throw error;
    }
  };
}

const TOTALS = `
  SELECT coalesce(sum(spend) FILTER (WHERE this), 0)::float8 AS spend,
         coalesce(sum(spend) FILTER (WHERE NOT this), 0)::float8 AS before,
         coalesce(sum(requests) FILTER (WHERE this), 0)::float8 AS calls,
         coalesce(sum(failed) FILTER (WHERE this), 0)::float8 AS failed,
         coalesce(sum(cache_hits) FILTER (WHERE this), 0)::float8 AS cached,
         coalesce(sum(saved) FILTER (WHERE this), 0)::float8 AS saved
    FROM (SELECT *, day >= date_trunc('month', $1::date) AS this FROM report_daily_part_spend
           WHERE part = 'proxy' AND
               ((day >= date_trunc('month', $1::date) AND day <= $1::date)
             OR (day >= date_trunc('month', $1::date) - interval '1 month' AND day <= $1::date - interval '1 month'))) AS both_months`;

const BY_DAY = `
  SELECT extract(day FROM day)::int AS day, coalesce(nullif(model_group, ''), model) AS model, sum(spend)::float8 AS spend
    FROM report_daily_part_spend WHERE part = 'proxy' AND day >= date_trunc('month', $1::date) AND day <= $1::date
    GROUP BY 1, 2 ORDER BY 1, 2`;

const BY_PAYER = `
  SELECT d.model, d.api_key AS token, coalesce(n.name, 'no key') AS key, d.spend::float8 AS spend, (k.spend / nullif(k.max_budget, 0))::float8 AS used
    FROM (SELECT api_key, coalesce(nullif(model_group, ''), model) AS model, sum(spend) AS spend
            FROM report_daily_payer_spend WHERE day >= date_trunc('month', $1::date) AND day <= $1::date
            GROUP BY 1, 2 ORDER BY 3 DESC, 2, 1 LIMIT 6) d
    LEFT JOIN report_names n ON n.kind = 'key' AND n.id = d.api_key
    LEFT JOIN report_keys k ON k.token = d.api_key
    ORDER BY d.spend DESC, d.model, key`;

async function query(client: Client, today: string): Promise<MonthSpend> {
  const sums = await client.query<Omit<MonthSpend, "days" | "payers">>(TOTALS, [
    today,
  ]);
  const days = await client.query<MonthSpend["days"][number]>(BY_DAY, [today]);
  const payers = await client.query<MonthSpend["payers"][number]>(BY_PAYER, [
    today,
  ]);
  const [first] = sums.rows;
  if (first === undefined) {
    throw new Error("the query returned no row");
  }
  return { ...first, days: days.rows, payers: payers.rows };
}
