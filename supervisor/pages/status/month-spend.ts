import { Client } from "pg";
import { textOf } from "../../failure.ts";

export type MonthSpend = {
  /** Dollars. */
  readonly spend: number;
  /** Dollars in the previous month up to the same day. */
  readonly before: number;
  readonly calls: number;
  readonly failed: number;
  readonly cached: number;
  /** Dollars that answers from the cache would have cost. */
  readonly saved: number;
  /** Day of the month, alias, dollars. */
  readonly days: readonly {
    readonly day: number;
    readonly model: string;
    readonly spend: number;
  }[];
  /** The dearest pairs of alias and key. */
  readonly payers: readonly {
    readonly model: string;
    readonly key: string;
    readonly spend: number;
    /** Of the key's budget that is used, 0 to 1 and over; null when it has none. */
    readonly used: number | null;
  }[];
};

/** unknown: no database was named; away: it does not answer, and `last` is what it said before. */
export type SpendView =
  | { readonly kind: "unknown" }
  | { readonly kind: "away"; readonly why: string; readonly last: Known | null }
  | ({ readonly kind: "known" } & Known);

type Known = {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly spend: MonthSpend;
};

const keepMs = 30_000;
const patienceMs = 2000;

/** Reads this month's spend from the views of the gateway's database; asked anew at most twice a minute, never for long. */
export function readMonthSpend(
  databaseUrl: string | undefined,
  timeZone: string,
  now: () => number,
): () => Promise<SpendView> {
  let view: SpendView = { kind: "unknown" };
  let askedAt = 0;
  let asking: Promise<void> | undefined;

  async function ask(url: string): Promise<void> {
    askedAt = now();
    try {
      const spend = await query(url, dayIn(timeZone, now()));
      view = { kind: "known", at: now(), spend };
    } catch (error) {
      const last = view.kind === "unknown" ? null : lastOf(view);
      view = { kind: "away", why: textOf(error), last };
    }
  }

  return async () => {
    if (databaseUrl === undefined) return view;
    if (now() - askedAt > keepMs)
      asking ??= ask(databaseUrl).finally(() => {
        asking = undefined;
      });
    await asking;
    return view;
  };
}

function lastOf(view: Exclude<SpendView, { kind: "unknown" }>): Known | null {
  return view.kind === "known" ? { at: view.at, spend: view.spend } : view.last;
}

/** "2026-11-21" there and then. */
function dayIn(timeZone: string, at: number): string {
  return new Intl.DateTimeFormat("en-CA", { timeZone }).format(at);
}

const totals = `
  SELECT coalesce(sum(spend) FILTER (WHERE this), 0)::float8 AS spend,
         coalesce(sum(spend) FILTER (WHERE NOT this), 0)::float8 AS before,
         coalesce(sum(requests) FILTER (WHERE this), 0)::float8 AS calls,
         coalesce(sum(failed) FILTER (WHERE this), 0)::float8 AS failed,
         coalesce(sum(cache_hits) FILTER (WHERE this), 0)::float8 AS cached,
         coalesce(sum(saved) FILTER (WHERE this), 0)::float8 AS saved
    FROM (SELECT *, day >= date_trunc('month', $1::date) AS this FROM report_daily_spend
           WHERE (day >= date_trunc('month', $1::date) AND day <= $1::date)
              OR (day >= date_trunc('month', $1::date) - interval '1 month' AND day <= $1::date - interval '1 month')) AS both_months`;

const byDay = `
  SELECT extract(day FROM day)::int AS day, coalesce(model_group, model, '') AS model, sum(spend)::float8 AS spend
    FROM report_daily_spend WHERE day >= date_trunc('month', $1::date) AND day <= $1::date
    GROUP BY 1, 2 ORDER BY 1, 2`;

const byPayer = `
  SELECT coalesce(d.model_group, d.model, '') AS model,
         coalesce(d.key_alias, d.key_name, 'no key') AS key,
         sum(d.spend)::float8 AS spend,
         max(k.spend / nullif(k.max_budget, 0))::float8 AS used
    FROM report_daily_spend d LEFT JOIN report_keys k ON k.token = d.api_key
    WHERE d.day >= date_trunc('month', $1::date) AND d.day <= $1::date
    GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 6`;

async function query(url: string, today: string): Promise<MonthSpend> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: patienceMs,
    query_timeout: patienceMs,
    application_name: "hearth status page",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const sums = await client.query<Omit<MonthSpend, "days" | "payers">>(
      totals,
      [today],
    );
    const days = await client.query<MonthSpend["days"][number]>(byDay, [today]);
    const payers = await client.query<MonthSpend["payers"][number]>(byPayer, [
      today,
    ]);
    const [first] = sums.rows;
    if (first === undefined) throw new Error("no answer to the question");
    return { ...first, days: days.rows, payers: payers.rows };
  } finally {
    await client.end().catch(() => {});
  }
}
