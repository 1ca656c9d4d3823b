import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import type { Pool } from "../../gateway/database/pool.ts";
import {
  addToDailySpend,
  addToDailyTagSpend,
} from "../../gateway/database/insert-rows.ts";
import { addToModelHours } from "../../gateway/database/model-hours.ts";
import { followSettings } from "../../gateway/database/settings.ts";
import { ensurePartitions } from "../../gateway/database/partitions.ts";

const USERS_PER_TEAM = 7;

export interface LedgerSize {
  readonly rows: number;
  readonly keys: number;
  /** The rows are spread evenly over this number of days before now. */
  readonly days: number;
}

/** The token of the n-th key of a generated ledger, from 1. */
const TOKEN = "encode(sha256(('bench' || n)::text::bytea), 'hex')";

/**
 * Fills an empty, migrated database with a consistent ledger. For speed the indexes are dropped before the rows are inserted
 * and recreated afterwards, and the totals are computed once from all rows.
 */
export async function generateLedger(
  pool: Pool,
  { rows, keys, days }: LedgerSize,
  onStep: (step: string) => void,
): Promise<void> {
  const client = await pool.connect();
  const run = (text: string) =>
    // Takes hours rather than seconds; the pool's limit is for ordinary statements.
    client.query(Object.assign({ text }, { query_timeout: 4 * HOUR_MS }));
  try {
    await client.query("SET statement_timeout = 0");
    await client.query("SET synchronous_commit = off");
    await client.query("SET maintenance_work_mem = '512MB'");
    await client.query("SET work_mem = '256MB'");
    onStep("payers");
    await run(payers(keys));
    const now = Date.now();
    await ensurePartitions(
      pool,
      Array.from({ length: days + 1 }, (_, day) => ({
        started_at: new Date(now - day * DAY_MS).toISOString(),
      })),
    );
    onStep("rows");
    const { rows: indexes } = await client.query<{
      name: string;
      definition: string;
    }>(
      `SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition
         FROM pg_index WHERE indrelid = 'spend_log'::regclass AND NOT indisprimary`,
    );
    for (const { name } of indexes) {
      await run(`DROP INDEX ${name}`);
    }
    await run(ledgerRows(rows, keys, now - days * DAY_MS, now));
    onStep("indexes");
    // For a partitioned table Postgres returns the definitions of the parent only.
    for (const { definition } of indexes) {
      await run(definition.replace(" ON ONLY ", " ON "));
    }
    onStep("sums");
    await run(addToDailySpend("spend_log"));
    await run(addToDailyTagSpend("spend_log"));
    await run(addToModelHours("spend_log"));
    await run(TOTALS);
    onStep("windows");
    await followSettings(pool, { timeZone: "UTC", proxyDuration: null }, now);
    onStep("statistics");
    await run("VACUUM ANALYZE");
  } finally {
    client.release(true);
  }
}

/** Inserts organizations, teams, users and keys; every tenth key has a daily budget. */
function payers(keys: number): string {
  const teams = Math.max(1, Math.ceil(keys / 30));
  return `
    INSERT INTO organizations (organization_id) SELECT 'org-' || n FROM generate_series(1, 3) n;
    INSERT INTO teams (team_id, team_alias, organization_id)
      SELECT 'team-' || n, 'Team ' || n, 'org-' || (n % 3 + 1) FROM generate_series(1, ${teams}) n;
    INSERT INTO users (user_id) SELECT 'user-' || n FROM generate_series(1, ${teams * USERS_PER_TEAM}) n;
    INSERT INTO team_members (team_id, user_id)
      SELECT 'team-' || ((n - 1) / ${USERS_PER_TEAM} + 1), 'user-' || n FROM generate_series(1, ${teams * USERS_PER_TEAM}) n;
    INSERT INTO keys (token, key_name, key_alias, user_id, team_id, max_budget, budget_duration)
      SELECT ${TOKEN}, 'sk-...' || lpad((n % 10000)::text, 4, '0'), 'bench-' || n, 'user-' || u,
          'team-' || ((u - 1) / ${USERS_PER_TEAM} + 1), 1000000, CASE WHEN n % 10 = 0 THEN '1d' END
        FROM (SELECT n, n % ${teams * USERS_PER_TEAM} + 1 AS u FROM generate_series(1, ${keys}) n) numbered;`;
}

/** In the order of their time, as drains insert them. */
function ledgerRows(
  rows: number,
  keys: number,
  from: number,
  until: number,
): string {
  const step = (until - from) / 1_000 / rows;
  return `
    INSERT INTO spend_log (request_id, started_at, ended_at, day, call_type, status, api_key, user_id, team_id, organization_id,
        end_user, tags, model_group, model_id, model, provider, spend, prompt_tokens, completion_tokens, cache_hit, response_id)
      SELECT 'call-' || lpad(to_hex(g), 12, '0'), at, at + interval '900 milliseconds',
          ((at + interval '900 milliseconds') AT TIME ZONE 'UTC')::date,
          'acompletion', CASE WHEN g % 100 = 0 THEN 'failure' ELSE 'success' END, k.token, k.user_id, k.team_id, t.organization_id,
          CASE WHEN number % 10 = 0 THEN 'customer-' || number % 50 || '-' || g % 2 END,
          CASE WHEN number % 4 = 0 THEN ARRAY['tag-' || number % 20] END,
          'model-' || model, 'deployment-' || model, 'provider-model-' || model, 'provider-' || model % 3,
          CASE WHEN g % 100 = 0 OR g % 7 = 0 THEN 0 ELSE round((random() * 0.01)::numeric, 8) END,
          100 + g % 900, 50 + g % 400, g % 7 = 0, 'chatcmpl-' || g
        FROM (
          SELECT *, (number + g % 2) % 8 AS model FROM (
          SELECT g, to_timestamp(${from / 1_000} + g * ${step}) AS at, 1 + (random() * ${keys - 1})::integer AS number
            FROM generate_series(1, ${rows}) g) numbered) calls
        JOIN (SELECT *, row_number() OVER (ORDER BY token) AS number FROM keys) k USING (number)
        JOIN teams t ON t.team_id = k.team_id
        ORDER BY g`;
}

const TOTALS = `
  INSERT INTO spend_totals (entity, window_name, window_start, window_end, spend, version)
  SELECT entity, 'all', '-infinity', 'infinity', sum(spend), 1
    FROM (
      SELECT payer, api_key, user_id, team_id, organization_id, end_user, tags, model_group, user_pays, sum(spend) AS spend
        FROM spend_log GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9) r,
      unnest(entities_of(r.payer, r.api_key, r.user_id, r.team_id, r.organization_id, r.end_user, r.tags, r.model_group, r.user_pays)) AS entity
    GROUP BY entity`;
