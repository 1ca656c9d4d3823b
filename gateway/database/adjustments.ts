import { randomUUID } from "node:crypto";
import { DAY_MS } from "../../core/duration.ts";
import { entitiesOfRow, type SpendRow } from "../ledger/rows.ts";
import {
  dayOf,
  LIFETIME,
  windowAt,
  type Window,
} from "../ledger/budget-windows.ts";
import { insertRows } from "./insert-rows.ts";
import { query, repeatedQuery, type Client, type Pool } from "./pool.ts";
import {
  announceTotals,
  durationsOf,
  lockLedger,
  seedCurrentWindows,
  type Windowing,
} from "./totals.ts";
import { type Counter } from "../ledger/payers.ts";

/** One payer's spend in its budget's window (in total without one), and the dollars to set or add. */
interface SpendSetting {
  readonly entity: string;
  readonly dollars: number | string;
}

/** When an increase counts: as spent now, or at the start of the budget's window, before all later ones. */
type IncreaseCounts = "now" | "from the start";

export interface SpendAddition extends SpendSetting {
  /** When it counts, ms since the epoch; now by default. */
  readonly at?: number;
}

interface SpendChange {
  /** In the metadata of its rows. */
  readonly reason: Readonly<Record<string, unknown>>;
  readonly windowing: Windowing;
  /** Ms since the epoch. */
  readonly now: number;
}

/**
 * Sets spends by rows of the ledger: they are the difference, and count for their one payer alone. What is taken back counts
 * when it was spent or before that, so that no window of another duration, which the budget may get later, has spent less than 0.
 * In the caller's transaction; the partition of `now` exists. Every instance is notified when the transaction commits. Returns the
 * previous spends, as exact decimals.
 */
export async function adjustSpend(
  client: Client,
  settings: readonly SpendSetting[],
  change: SpendChange,
  increase: IncreaseCounts = "now",
): Promise<readonly string[]> {
  const entities = settings.map(({ entity }) => entity);
  const windows = await seededWindows(client, entities, change);
  return setSpends(
    client,
    settings.map((setting, index) => ({
      ...setting,
      within: windows[index] ?? LIFETIME,
      starts: openStarts(change),
      increase,
    })),
    change,
  );
}

/** Takes back all that payers ever spent; otherwise as {@link adjustSpend}. */
export async function clearSpend(
  client: Client,
  entities: readonly string[],
  change: SpendChange,
): Promise<void> {
  const settings = entities.map((entity) => ({ entity, dollars: 0 }));
  const windows = await seededWindows(client, entities, change);
  await setSpends(
    client,
    settings.map((setting, index) => ({
      ...setting,
      within: LIFETIME,
      starts: openStarts(change, windows[index]),
      increase: "now",
    })),
    change,
  );
}

/** The payers' current windows, whose totals are there. */
async function seededWindows(
  client: Client,
  entities: readonly string[],
  { windowing, now }: SpendChange,
): Promise<readonly Window[]> {
  await seedCurrentWindows(client, entities, windowing, now);
  const durations = await durationsOf(client, entities, windowing);
  return entities.map((entity) =>
    windowAt(durations.get(entity) ?? null, now, windowing.timeZone),
  );
}

/** Windows of these durations are exact after what was spent in them was taken back. Others count at most too much. */
const EXACT_DURATIONS = ["1mo", "1w", "1d", "1h"];

/** When open windows started: those of common durations, and this one. */
function openStarts(
  { windowing, now }: SpendChange,
  window = LIFETIME,
): readonly number[] {
  const common = EXACT_DURATIONS.map((duration) =>
    windowAt(duration, now, windowing.timeZone),
  );
  return [...new Set([window, ...common].map(({ start }) => start))];
}

interface WindowSetting extends SpendSetting {
  /** In which the spend is set. */
  readonly within: Window;
  /** What is taken back counts from the last of these moments before it was spent. */
  readonly starts: readonly number[];
  readonly increase: IncreaseCounts;
}

/** Returns the previous spends, as exact decimals. */
async function setSpends(
  client: Client,
  settings: readonly WindowSetting[],
  change: SpendChange,
): Promise<readonly string[]> {
  const before = await exactTotals(
    client,
    settings.map(({ entity, within }) => ({ entity, window: within.name })),
  );
  const parts = settings.flatMap((setting, index) =>
    partsOf(setting, before[index] ?? "0", change.now),
  );
  const differences = await differencesOf(client, parts, change.now);
  await addSpend(
    client,
    parts.map(({ entity, at }, index) => ({
      entity,
      dollars: differences[index] ?? "0",
      at,
    })),
    change,
  );
  return before;
}

/** From its start on a payer is to have spent `dollars`; ms since the epoch. */
interface Part extends SpendSetting {
  readonly start: number;
  /** What it has spent from there on; null to sum it from the rows. */
  readonly known: string | null;
  /** When the difference counts. */
  readonly at: number;
}

function partsOf(
  { entity, dollars, within, starts, increase }: WindowSetting,
  before: string,
  now: number,
): readonly Part[] {
  const { start } = within;
  const whole = { entity, dollars, start, known: before };
  // No window that is open began in 1970.
  const atStart = { ...whole, at: Math.max(start, 0) };
  if (Number(dollars) >= Number(before)) {
    return [increase === "now" ? { ...whole, at: now } : atStart];
  }
  return [
    atStart,
    ...starts
      .filter((later) => later > start)
      .map((later) => ({ ...whole, start: later, known: null, at: later })),
  ];
}

/** What each part adds until the start of the next one of its payer, the last one with the dollars to set; exact. */
async function differencesOf(
  client: Client,
  parts: readonly Part[],
  now: number,
): Promise<readonly string[]> {
  const summed = parts.filter(({ known }) => known === null);
  const time = (at: number) =>
    Number.isFinite(at) ? new Date(at).toISOString() : "-infinity";
  const rows = await query<{ difference: string }>(
    client,
    `SELECT (lead(spend, 1, dollars) OVER (PARTITION BY entity ORDER BY start) - spend)::text AS difference
       FROM (
         SELECT p.place, p.entity, p.start, p.dollars, coalesce(p.known, s.spend) AS spend
           FROM unnest($1::text[], $2::timestamptz[], $3::numeric[], $4::numeric[]) WITH ORDINALITY AS p(entity, start, dollars, known, place)
           LEFT JOIN spend_of_windows($5, $6, $7) s ON s.entity = p.entity AND s.window_start = p.start) parts
       ORDER BY place`,
    [
      parts.map(({ entity }) => entity),
      parts.map(({ start }) => time(start)),
      parts.map(({ dollars }) => String(dollars)),
      parts.map(({ known }) => known),
      summed.map(({ entity }) => entity),
      summed.map(({ start }) => time(start)),
      // The clock of another instance may be ahead.
      summed.map(() => time(now + DAY_MS)),
    ],
  );
  return rows.map(({ difference }) => difference);
}

/**
 * Adds to spends (or takes from them, where `dollars` is below 0) by rows of the ledger, each of which counts for its one
 * payer alone. In the caller's transaction, as {@link adjustSpend}.
 */
export async function addSpend(
  client: Client,
  additions: readonly SpendAddition[],
  { reason, windowing, now }: SpendChange,
): Promise<void> {
  await lockLedger(client);
  const rows = additions
    .filter(({ dollars }) => Number(dollars) !== 0)
    .map(({ entity, dollars, at = now }) =>
      adjustmentRow(entity, String(dollars), reason, windowing, { now, at }),
    );
  await insertRows(client, rows, windowing);
  await announceTotals(
    client,
    additions.map(({ entity }) => entity),
  );
}

/** Two names of one payer; `to` takes over the spend of `from`. */
interface Carried {
  readonly from: string;
  readonly to: string;
}

/**
 * Gives payers what they spent under a previous name, in total and in open windows; what was spent before these counts `since`. In the
 * caller's transaction, as {@link adjustSpend}.
 */
export async function carrySpendOver(
  client: Client,
  carried: readonly Carried[],
  options: CarryOptions,
): Promise<void> {
  const { since, now } = options;
  // Rows that arrive later are carried over when they do.
  await lockLedger(client);
  const names = carried.map(({ to }) => to);
  await clearSpend(client, names, options);
  const windows = await seededWindows(client, names, options);
  const spent = await exactTotals(
    client,
    carried.map(({ from }) => ({ entity: from, window: LIFETIME.name })),
  );
  const parts = carried.flatMap(({ from, to }, index) =>
    partsOf(
      {
        entity: from,
        dollars: 0,
        within: LIFETIME,
        starts: openStarts(options, windows[index]),
        increase: "now",
      },
      spent[index] ?? "0",
      now,
    ).map((part) => ({ ...part, to })),
  );
  const differences = await differencesOf(client, parts, now);
  const oldest = Math.min(...parts.map(({ at }) => at).filter((at) => at > 0));
  const additions = parts.map(({ to, start, at }, index) => ({
    entity: to,
    dollars: negated(differences[index] ?? "0"),
    at: start === LIFETIME.start ? Math.min(since, oldest - 1) : at,
  }));
  await addSpend(client, additions, options);
}

/** Of a decimal, exactly. */
function negated(decimal: string): string {
  return decimal.startsWith("-") ? decimal.slice(1) : `-${decimal}`;
}

interface CarryOptions extends SpendChange {
  /** When the payer was created, ms since the epoch. */
  readonly since: number;
}

/**
 * Gives a renewed key what its calls under a former hash cost that were recorded after {@link carrySpendOver}, each when it ended. In
 * the transaction that inserted these rows, and so under the ledger lock.
 */
export async function carryLateSpend(
  client: Client,
  rows: readonly SpendRow[],
  windowing: Windowing,
): Promise<void> {
  const hashes = new Set(rows.map(({ api_key: hash }) => hash));
  const renewed = await repeatedQuery<{ old_token: string; token: string }>(
    client,
    "SELECT old_token, token FROM rotated_keys WHERE old_token = ANY($1)",
    [[...hashes].filter((hash) => hash !== null)],
  );
  if (renewed.length === 0) {
    return;
  }
  const tokens = new Map(renewed.map((row) => [row.old_token, row.token]));
  const carried = rows.flatMap((row) => {
    const token = tokens.get(row.api_key ?? "");
    return token === undefined || Number(row.spend) === 0
      ? []
      : entitiesOfRow({ ...row, api_key: token })
          .filter((entity) => /^key(_model)?:/.test(entity))
          .map((entity) => carriedRow(entity, row, windowing));
  });
  await insertRows(client, carried, windowing);
  await announceTotals(
    client,
    carried.map(({ payer }) => payer ?? ""),
  );
}

/** The cost of a call, for one more payer. */
function carriedRow(
  entity: string,
  row: SpendRow,
  windowing: Windowing,
): SpendRow {
  const reason = { carried_over_from: row.api_key, of_call: row.request_id };
  return adjustmentRow(entity, String(row.spend), reason, windowing, {
    now: Date.parse(row.started_at),
    at: Date.parse(row.ended_at),
  });
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

async function exactTotals(
  client: Client,
  counters: readonly Counter[],
): Promise<readonly string[]> {
  const rows = await query<{ spend: string }>(
    client,
    `SELECT coalesce(t.spend, 0)::text AS spend
       FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS c(entity, window_name, place)
       LEFT JOIN spend_totals t ON t.entity = c.entity AND t.window_name = c.window_name
       ORDER BY c.place`,
    [
      counters.map(({ entity }) => entity),
      counters.map(({ window }) => window),
    ],
  );
  return rows.map(({ spend }) => spend);
}

function adjustmentRow(
  entity: string,
  spend: string,
  metadata: Readonly<Record<string, unknown>>,
  { timeZone }: Windowing,
  /** When it is written, and the time at which it counts; ms since the epoch. */
  moment: { readonly now: number; readonly at: number },
): SpendRow {
  return {
    request_id: randomUUID(),
    started_at: new Date(moment.now).toISOString(),
    ended_at: new Date(moment.at).toISOString(),
    completion_started_at: null,
    day: dayOf(moment.at, timeZone),
    call_type: "adjustment",
    status: "success",
    payer: entity,
    api_key: null,
    user_id: null,
    user_pays: true,
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
