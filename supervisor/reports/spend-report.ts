import type { Client } from "pg";
import { rowsOf, withDatabase } from "../backup/database.ts";
import {
  readBudgets,
  readCorrections,
  shortened,
  type Budget,
  type Correction,
} from "./budgets.ts";
import { readForecast, type Forecast } from "./forecast.ts";
import { addDays, daysBetween, firstOf, type Period } from "./period.ts";

/** What the calls of some days add up to. Money is dollars. */
export type Sums = {
  readonly spend: number;
  /** What answers from the cache would have cost. */
  readonly saved: number;
  readonly requests: number;
  readonly failed: number;
  readonly interrupted: number;
  readonly cacheHits: number;
  readonly unpriced: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
};

/** One user, key, team, alias or provider. */
export type Payer = Sums & {
  readonly id: string;
  readonly name: string;
  /** Dollars in the previous period. */
  readonly previous: number;
  /** Of all spend, from 0 to 1. */
  readonly share: number;
};

export type SpendReport = {
  readonly kind: "spend";
  /** ISO text. */
  readonly madeAt: string;
  readonly timeZone: string;
  readonly period: Period;
  readonly totals: Sums;
  readonly previous: Sums;
  /** Against the previous period: 0.12 is 12 % more; null when nothing was spent then. */
  readonly change: number | null;
  /** Of the month that goes on; null in a report about days that are over. */
  readonly forecast: Forecast | null;
  /** Sums of days, weeks or months, with the dearest aliases apart. */
  readonly series: {
    readonly unit: "day" | "week" | "month";
    readonly aliases: readonly string[];
    readonly steps: readonly {
      readonly from: string;
      readonly spend: number;
      readonly requests: number;
      /** Dollars of each of `aliases`, in their order. */
      readonly byAlias: readonly number[];
    }[];
  };
  readonly users: readonly Payer[];
  readonly keys: readonly Payer[];
  readonly teams: readonly Payer[];
  readonly models: readonly Payer[];
  readonly providers: readonly Payer[];
  readonly budgets: readonly Budget[];
  /** Spend that an admin set: it counts for one payer, and is in none of the sums above. */
  readonly corrections: readonly Correction[];
};

const apart = 4;
const mostRows = 5000;
const none = "—";

/** Reads the gateway's report views in one snapshot, as the role supervisor; needs nothing but Postgres. */
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
  return withDatabase(databaseUrl, parts.signal, async (client) => {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const { period, timeZone, today } = parts;
    const [totals, previous] = await readTotals(client, period);
    const dimension = (id: string, name: string) =>
      readPayers(client, period, id, name, totals.spend);
    return {
      kind: "spend",
      madeAt: new Date(parts.now).toISOString(),
      ...{ timeZone, period, totals, previous },
      change:
        previous.spend === 0
          ? null
          : (totals.spend - previous.spend) / previous.spend,
      forecast: period.open ? await readForecast(client, today) : null,
      series: await readSeries(client, period),
      users: await dimension("user_id", "coalesce(user_alias, user_email)"),
      keys: await dimension("api_key", "coalesce(key_alias, key_name)"),
      teams: await dimension("team_id", "team_alias"),
      models: await dimension(alias, alias),
      providers: await dimension("provider", "provider"),
      budgets: await readBudgets(client),
      corrections: await readCorrections(client, period),
    };
  });
}

/** What callers name; calls that named nothing known have their model only. */
const alias = "coalesce(nullif(model_group, ''), model)";

const sums = `
  coalesce(sum(spend) FILTER (WHERE now), 0)::text AS spend, coalesce(sum(saved) FILTER (WHERE now), 0)::text AS saved,
  coalesce(sum(requests) FILTER (WHERE now), 0)::text AS requests, coalesce(sum(failed) FILTER (WHERE now), 0)::text AS failed,
  coalesce(sum(interrupted) FILTER (WHERE now), 0)::text AS interrupted,
  coalesce(sum(cache_hits) FILTER (WHERE now), 0)::text AS cache_hits, coalesce(sum(unpriced) FILTER (WHERE now), 0)::text AS unpriced,
  coalesce(sum(prompt_tokens) FILTER (WHERE now), 0)::text AS prompt_tokens,
  coalesce(sum(completion_tokens) FILTER (WHERE now), 0)::text AS completion_tokens`;

type SumRow = Readonly<Record<string, string>>;

function sumsIn(row: SumRow | undefined): Sums {
  const number = (name: string) => Number(row?.[name] ?? 0);
  return {
    spend: number("spend"),
    saved: number("saved"),
    requests: number("requests"),
    failed: number("failed"),
    interrupted: number("interrupted"),
    cacheHits: number("cache_hits"),
    unpriced: number("unpriced"),
    promptTokens: number("prompt_tokens"),
    completionTokens: number("completion_tokens"),
  };
}

async function readTotals(
  client: Client,
  period: Period,
): Promise<readonly [Sums, Sums]> {
  const of = async (from: string, until: string) => {
    const [row] = await rowsOf<SumRow>(
      client,
      `SELECT ${sums} FROM (SELECT *, true AS now FROM report_daily_spend WHERE day BETWEEN $1 AND $2) d`,
      [from, until],
    );
    return sumsIn(row);
  };
  return [
    await of(period.from, period.until),
    await of(period.previous.from, period.previous.until),
  ];
}

/** `id` and `name` are expressions of ours. Dearest first; a payer that only the previous period had is left out. */
async function readPayers(
  client: Client,
  { from, until, previous }: Period,
  id: string,
  name: string,
  total: number,
): Promise<readonly Payer[]> {
  const rows = await rowsOf<SumRow & { readonly name: string }>(
    client,
    `SELECT id, max(name) AS name, ${sums}, coalesce(sum(spend) FILTER (WHERE NOT now), 0)::text AS previous
       FROM (SELECT *, ${id} AS id, ${name} AS name, day BETWEEN $1 AND $2 AS now FROM report_daily_spend
             WHERE day BETWEEN $1 AND $2 OR day BETWEEN $3 AND $4) d
       GROUP BY id HAVING bool_or(now) ORDER BY sum(spend) FILTER (WHERE now) DESC, id LIMIT ${mostRows}`,
    [from, until, previous.from, previous.until],
  );
  return rows.map((row) => {
    const own = sumsIn(row);
    const key = row["id"] ?? "";
    return {
      ...{ id: key, name: row.name || (key === "" ? none : shortened(key)) },
      ...own,
      previous: Number(row["previous"]),
      share: total === 0 ? 0 : own.spend / total,
    };
  });
}

async function readSeries(
  client: Client,
  { from, until }: Period,
): Promise<SpendReport["series"]> {
  const days = daysBetween(from, until) + 1;
  const unit = days <= 45 ? "day" : days <= 200 ? "week" : "month";
  const rows = await rowsOf<{
    day: string;
    alias: string;
    spend: string;
    requests: string;
  }>(
    client,
    `SELECT day::text, ${alias} AS alias, sum(spend)::text AS spend, sum(requests)::text AS requests
       FROM report_daily_spend WHERE day BETWEEN $1 AND $2 GROUP BY 1, 2`,
    [from, until],
  );
  const byAlias = new Map<string, number>();
  for (const row of rows)
    byAlias.set(row.alias, (byAlias.get(row.alias) ?? 0) + Number(row.spend));
  const aliases = [...byAlias]
    .filter(([, spend]) => spend > 0)
    .toSorted((a, b) => b[1] - a[1])
    .slice(0, apart)
    .map(([name]) => name);
  const steps = new Map<
    string,
    { spend: number; requests: number; byAlias: number[] }
  >();
  for (let day = from; day <= until; day = addDays(day, 1)) {
    const first = firstOf(unit, day);
    const step = first < from ? from : first;
    if (!steps.has(step))
      steps.set(step, { spend: 0, requests: 0, byAlias: aliases.map(() => 0) });
  }
  for (const row of rows) {
    const first = firstOf(unit, row.day);
    const step = steps.get(first < from ? from : first);
    if (step === undefined) continue;
    step.spend += Number(row.spend);
    step.requests += Number(row.requests);
    const place = aliases.indexOf(row.alias);
    if (place >= 0)
      step.byAlias[place] = (step.byAlias[place] ?? 0) + Number(row.spend);
  }
  return {
    ...{ unit, aliases },
    steps: [...steps].map(([first, step]) => ({ from: first, ...step })),
  };
}
