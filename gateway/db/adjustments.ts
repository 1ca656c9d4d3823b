import { randomUUID } from "node:crypto";
import type { SpendRow } from "../accounting/rows.ts";
import { dayOf, windowAt } from "../accounting/windows.ts";
import { insertRows } from "./ledger.ts";
import { query, type Client, type Pool } from "./pool.ts";
import {
  announceTotals,
  durationsOf,
  lockLedger,
  seedCurrentWindows,
  type Windowing,
} from "./totals.ts";

/** One payer's spend in its budget's window (whole life without one) that shall become `dollars`. */
export interface SpendSetting {
  readonly entity: string;
  readonly dollars: number | string;
}

/**
 * Sets spends by rows of the ledger: each row is the difference, and counts for its one payer alone. In the caller's
 * transaction; the partition of `now` is there. Every instance hears of it when the transaction commits. Answers what
 * the spends were, as exact decimals.
 */
export async function adjustSpend(
  client: Client,
  settings: readonly SpendSetting[],
  reason: Readonly<Record<string, unknown>>,
  windowing: Windowing,
  now: number,
): Promise<readonly string[]> {
  await lockLedger(client);
  const entities = settings.map(({ entity }) => entity);
  await seedCurrentWindows(client, entities, windowing, now);
  const differences = await differencesOf(client, settings, windowing, now);
  const rows = settings.flatMap(({ entity }, index) => {
    const difference = differences[index]?.difference ?? "0";
    return Number(difference) === 0
      ? []
      : [adjustmentRow(entity, difference, reason, windowing, now)];
  });
  await insertRows(client, rows, windowing);
  await announceTotals(client, entities);
  return differences.map(({ before }) => before);
}

/** Payers whose spend was set since a moment, ms since the epoch. */
export async function adjustedSince(
  pool: Pool,
  since: number,
): Promise<readonly string[]> {
  const rows = await query<{ payer: string }>(
    pool,
    "SELECT DISTINCT payer FROM spend_log WHERE payer IS NOT NULL AND started_at >= $1",
    [new Date(since).toISOString()],
  );
  return rows.map((row) => row.payer);
}

/** What is missing to each target, and what is there; exact, so in SQL. */
async function differencesOf(
  client: Client,
  settings: readonly SpendSetting[],
  windowing: Windowing,
  now: number,
): Promise<
  readonly { readonly before: string; readonly difference: string }[]
> {
  const durations = await durationsOf(
    client,
    settings.map(({ entity }) => entity),
    windowing,
  );
  return query(
    client,
    `SELECT coalesce(t.spend, 0)::text AS before, (s.dollars - coalesce(t.spend, 0))::text AS difference
       FROM unnest($1::text[], $2::text[], $3::numeric[]) WITH ORDINALITY AS s(entity, window_name, dollars, place)
       LEFT JOIN spend_totals t ON t.entity = s.entity AND t.window_name = s.window_name
       ORDER BY s.place`,
    [
      settings.map(({ entity }) => entity),
      settings.map(
        ({ entity }) =>
          windowAt(durations.get(entity) ?? null, now, windowing.timeZone).name,
      ),
      settings.map(({ dollars }) => String(dollars)),
    ],
  );
}

function adjustmentRow(
  entity: string,
  spend: string,
  metadata: Readonly<Record<string, unknown>>,
  { timeZone }: Windowing,
  now: number,
): SpendRow {
  const at = new Date(now).toISOString();
  return {
    request_id: randomUUID(),
    started_at: at,
    ended_at: at,
    completion_started_at: null,
    day: dayOf(now, timeZone),
    call_type: "adjustment",
    status: "success",
    payer: entity,
    api_key: null,
    user_id: null,
    team_id: null,
    organization_id: null,
    end_user: null,
    tags: null,
    model_group: null,
    model_id: null,
    model: null,
    provider: null,
    spend,
    saved: 0,
    unpriced: false,
    prompt_tokens: 0,
    completion_tokens: 0,
    cached_tokens: 0,
    cache_write_tokens: 0,
    cache_hit: false,
    cache_key: null,
    response_id: null,
    session_id: null,
    requester_ip: null,
    metadata,
  };
}
