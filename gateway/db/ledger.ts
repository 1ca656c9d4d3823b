import {
  chargesOf,
  entitiesOfRow,
  type Charge,
  type SpendRow,
} from "../accounting/rows.ts";
import { query, transaction, type Client, type Pool } from "./pool.ts";

/** A payer's total in one window, as the ledger has it; version 0 when it has no row yet. Dollars. */
export interface Total {
  readonly entity: string;
  readonly window: string;
  readonly spend: number;
  readonly version: number;
}

export interface Counter {
  readonly entity: string;
  readonly window: string;
}

/** Held while sums change, so that two instances never wait for each other's rows in opposite order, and a window that an admin changes is summed without a gap. */
const LEDGER_LOCK = 0x68_65_61_72;

const COLUMNS = `request_id text, started_at timestamptz, ended_at timestamptz, completion_started_at timestamptz,
  day date, call_type text, status text, payer text, api_key text, user_id text, team_id text, organization_id text,
  end_user text, tags text[], model_group text, model_id text, model text, provider text, spend numeric, saved numeric,
  unpriced boolean, prompt_tokens bigint, completion_tokens bigint, cached_tokens bigint, cache_write_tokens bigint,
  cache_hit boolean, cache_key text, response_id text, session_id text, requester_ip text, metadata jsonb`;
const NAMES = COLUMNS.split(",")
  .map((column) => column.trim().split(" ")[0])
  .join(", ");
const DAILY_SUMS = [
  "spend",
  "saved",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "cache_write_tokens",
  "requests",
  "successful",
  "failed",
  "interrupted",
  "cache_hits",
  "unpriced",
];
const TAG_SUMS = ["spend", "prompt_tokens", "completion_tokens", "requests"];

function addTo(table: string, sums: readonly string[]): string {
  return sums
    .map((sum) => `${sum} = ${table}.${sum} + excluded.${sum}`)
    .join(", ");
}

const INSERT_ROWS = `
  WITH inserted AS (
    INSERT INTO spend_log (${NAMES})
    SELECT ${NAMES} FROM jsonb_to_recordset($1::jsonb) AS r(${COLUMNS})
    ON CONFLICT DO NOTHING
    RETURNING *
  ), daily AS (
    INSERT INTO daily_spend (day, api_key, user_id, team_id, organization_id, end_user, model_group, model, provider, ${DAILY_SUMS.join(", ")})
    SELECT day, coalesce(api_key, ''), coalesce(user_id, ''), coalesce(team_id, ''), coalesce(organization_id, ''),
      coalesce(end_user, ''), coalesce(model_group, ''), coalesce(model, ''), coalesce(provider, ''),
      sum(spend), sum(saved), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), sum(cache_write_tokens),
      count(*), count(*) FILTER (WHERE status = 'success'), count(*) FILTER (WHERE status = 'failure'),
      count(*) FILTER (WHERE status = 'interrupted'), count(*) FILTER (WHERE cache_hit), count(*) FILTER (WHERE unpriced)
    FROM inserted WHERE payer IS NULL
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
    ON CONFLICT (day, api_key, user_id, team_id, organization_id, end_user, model_group, model, provider)
    DO UPDATE SET ${addTo("daily_spend", DAILY_SUMS)}
  ), daily_tags AS (
    INSERT INTO daily_tag_spend (day, tag, ${TAG_SUMS.join(", ")})
    SELECT day, tag, sum(spend), sum(prompt_tokens), sum(completion_tokens), count(*)
    FROM inserted, unnest(tags) AS tag WHERE payer IS NULL
    GROUP BY 1, 2
    ON CONFLICT (day, tag) DO UPDATE SET ${addTo("daily_tag_spend", TAG_SUMS)}
  )
  SELECT request_id FROM inserted`;

const ADD_TOTALS = `
  WITH before AS (
    SELECT t.entity, t.window_name, t.spend FROM spend_totals t
    WHERE (t.entity, t.window_name) IN (SELECT * FROM unnest($1::text[], $2::text[]))
  ), changed AS (
    INSERT INTO spend_totals AS t (entity, window_name, window_start, window_end, spend, version)
    SELECT entity, window_name, window_start, window_end, sum(spend), 1
    FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::numeric[])
      AS c(entity, window_name, window_start, window_end, spend)
    GROUP BY 1, 2, 3, 4
    ON CONFLICT (entity, window_name) DO UPDATE SET spend = t.spend + excluded.spend, version = t.version + 1
    RETURNING t.entity, t.window_name, t.spend
  )
  INSERT INTO notices (kind, entity, window_name, spend, threshold)
  SELECT 'soft_budget', c.entity, c.window_name, c.spend, b.soft_budget
  FROM changed c
  JOIN entity_budgets b ON b.entity = c.entity AND b.soft_budget IS NOT NULL
    AND (c.window_name = 'all') = (b.budget_duration IS NULL)
  LEFT JOIN before p ON p.entity = c.entity AND p.window_name = c.window_name
  WHERE c.spend >= b.soft_budget AND coalesce(p.spend, 0) < b.soft_budget
  RETURNING entity, window_name, spend, threshold`;

export interface Recorded {
  /** Ids of the rows that were new. */
  readonly inserted: ReadonlySet<string>;
  readonly totals: readonly Total[];
  readonly softBudgets: readonly {
    readonly entity: string;
    readonly spend: number;
    readonly threshold: number;
  }[];
}

/**
 * Brings rows into the ledger, once however often they are delivered, and adds the new ones to every sum, in one
 * transaction. Answers the totals of `counters` as committed.
 */
export async function recordRows(
  pool: Pool,
  delivered: readonly SpendRow[],
  counters: readonly Counter[],
  proxyDuration: string | null,
  timeZone: string,
): Promise<Recorded> {
  const rows = holdable(delivered);
  await ensurePartitions(pool, rows);
  return transaction(pool, async (client) => {
    await lockLedger(client);
    const returned = await query<{ request_id: string }>(client, INSERT_ROWS, [
      JSON.stringify(rows),
    ]);
    const inserted = new Set(returned.map((row) => row.request_id));
    const fresh = rows.filter((row) => inserted.has(row.request_id));
    const softBudgets =
      fresh.length === 0
        ? []
        : await addTotals(client, fresh, proxyDuration, timeZone);
    return {
      inserted,
      softBudgets,
      totals: await readTotals(client, counters),
    };
  });
}

async function addTotals(
  client: Client,
  rows: readonly SpendRow[],
  proxyDuration: string | null,
  timeZone: string,
): Promise<Recorded["softBudgets"]> {
  const entities = [...new Set(rows.flatMap(entitiesOfRow))];
  const found = await query<{ entity: string; budget_duration: string | null }>(
    client,
    "SELECT entity, budget_duration FROM entity_budgets WHERE entity = ANY($1) AND budget_duration IS NOT NULL",
    [entities],
  );
  const durations = new Map(
    found.map((row) => [row.entity, row.budget_duration]),
  );
  if (proxyDuration !== null) durations.set("proxy:", proxyDuration);
  return addCharges(client, chargesOf(rows, durations, timeZone));
}

async function addCharges(
  client: Client,
  charges: readonly Charge[],
): Promise<Recorded["softBudgets"]> {
  return query(client, ADD_TOTALS, [
    charges.map((charge) => charge.entity),
    charges.map((charge) => charge.window.name),
    charges.map((charge) => timestamp(charge.window.start)),
    charges.map((charge) => timestamp(charge.window.end)),
    charges.map((charge) => String(charge.spend)),
  ]);
}

/** Until the end of the transaction nobody else changes a sum. */
export async function lockLedger(client: Client): Promise<void> {
  await query(client, "SELECT pg_advisory_xact_lock($1)", [LEDGER_LOCK]);
}

/** Totals of counters; one that the ledger does not know is 0 at version 0. */
export async function readTotals(
  from: Pool | Client,
  counters: readonly Counter[],
): Promise<readonly Total[]> {
  if (counters.length === 0) return [];
  const known = await query<{
    entity: string;
    window_name: string;
    spend: number;
    version: number;
  }>(
    from,
    `SELECT entity, window_name, spend, version FROM spend_totals
       WHERE (entity, window_name) IN (SELECT * FROM unnest($1::text[], $2::text[]))`,
    [
      counters.map((counter) => counter.entity),
      counters.map((counter) => counter.window),
    ],
  );
  const byName = new Map(
    known.map((row) => [`${row.entity}|${row.window_name}`, row]),
  );
  return counters.map(({ entity, window }) => {
    const row = byName.get(`${entity}|${window}`);
    return {
      entity,
      window,
      spend: row?.spend ?? 0,
      version: row?.version ?? 0,
    };
  });
}

const partitions = new WeakMap<Pool, Set<string>>();

/** Makes the monthly partitions that rows need; each instance asks once a month. */
async function ensurePartitions(
  pool: Pool,
  rows: readonly SpendRow[],
): Promise<void> {
  const known = partitions.get(pool) ?? new Set<string>();
  partitions.set(pool, known);
  const months = new Set(
    rows.map((row) => row.started_at.slice(0, "2026-01".length)),
  );
  for (const month of months) {
    if (known.has(month)) continue;
    const [year = 0, number = 0] = month.split("-").map(Number);
    const next = new Date(Date.UTC(year, number, 1)).toISOString();
    await transaction(pool, async (client) => {
      await lockLedger(client);
      await query(
        client,
        `CREATE TABLE IF NOT EXISTS spend_log_${month.replace("-", "_")} PARTITION OF spend_log
           FOR VALUES FROM ('${month}-01T00:00:00Z') TO ('${next}')`,
      );
    });
    known.add(month);
  }
}

/** Postgres holds neither NUL nor half a surrogate pair in text; such characters come only from hostile input. */
const UNHOLDABLE = /\\u(?:0000|d[89a-f])/i;

function holdable(rows: readonly SpendRow[]): readonly SpendRow[] {
  if (!UNHOLDABLE.test(JSON.stringify(rows))) return rows;
  const clean = JSON.stringify(rows, (_, value: unknown) =>
    typeof value === "string"
      ? value.toWellFormed().replaceAll("\0", "\uFFFD")
      : value,
  );
  return JSON.parse(clean) as readonly SpendRow[];
}

function timestamp(at: number): string {
  if (Number.isFinite(at)) return new Date(at).toISOString();
  return at < 0 ? "-infinity" : "infinity";
}
