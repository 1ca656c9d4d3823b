import { query } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import type { Admin } from "./admin-route.ts";
import { isUsedUp } from "./budgets-in-force.ts";
import { KEY, KEY_STATES, type KEY_STATUSES } from "./kinds/key.ts";
import type { Conditions } from "./paging.ts";
import { answerBudgetedRows } from "./payers.ts";

type KeyState = (typeof KEY_STATES)[number];
type KeyStatus = (typeof KEY_STATUSES)[number];

const EXPIRED = "coalesce(keys.expires <= now(), false)";

/** SQL of the keys in each state. */
export const IN_STATE: Readonly<Record<KeyState, string>> = {
  blocked: "keys.blocked",
  expired: `NOT keys.blocked AND ${EXPIRED}`,
  over_budget: `NOT keys.blocked AND NOT ${EXPIRED} AND ${isUsedUp(KEY)}`,
  active: `NOT keys.blocked AND NOT ${EXPIRED} AND NOT ${isUsedUp(KEY)}`,
};

/** SQL of the existing keys with each of LiteLLM's statuses. */
export const WITH_STATUS: Readonly<
  Record<Exclude<KeyStatus, "deleted">, string>
> = {
  revoked: IN_STATE.blocked,
  expired: IN_STATE.expired,
  active: `NOT keys.blocked AND NOT ${EXPIRED}`,
};

const STATUS_OF: Readonly<Record<KeyState, KeyStatus>> = {
  active: "active",
  blocked: "revoked",
  expired: "expired",
  over_budget: "active",
};

/** How many keys there are in each state. */
export async function countByState(
  { pool }: Admin,
  filter: Conditions,
): Promise<Readonly<Record<KeyState, number>>> {
  const counted = await query<{ state: KeyState; count: number }>(
    pool,
    `SELECT CASE WHEN ${IN_STATE.blocked} THEN 'blocked' WHEN ${EXPIRED} THEN 'expired'
        WHEN ${isUsedUp(KEY)} THEN 'over_budget' ELSE 'active' END AS state, count(*) AS count
      FROM keys ${filter.where()} GROUP BY 1`,
    filter.values,
  );
  const counts = new Map(counted.map(({ state, count }) => [state, count]));
  return mapStates((state) => counts.get(state) ?? 0);
}

function mapStates<T>(
  of: (state: KeyState) => T,
): Readonly<Record<KeyState, T>> {
  return Object.fromEntries(
    KEY_STATES.map((state) => [state, of(state)]),
  ) as Record<KeyState, T>;
}

/** Keys as answers show them, with state, budget in force, last use and the names of their owners. */
export async function answerRowsInUse(
  admin: Admin,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  const [keys, lastUses, owners] = await Promise.all([
    answerBudgetedRows(admin, KEY, rows),
    lastUsesOf(admin, rows),
    ownerNamesOf(admin, rows),
  ]);
  return keys.map((row) => {
    const state = stateOf(row, admin.now);
    const lastUse = lastUses.get(String(row["token"])) ?? null;
    return {
      ...row,
      state,
      status: STATUS_OF[state],
      last_used_at: lastUse,
      last_active: lastUse,
      ...owners.get(String(row["token"])),
    };
  });
}

function stateOf(row: Row, now: number): KeyState {
  const { blocked, expires, spend, budget_in_force: budget } = row;
  if (blocked === true) {
    return "blocked";
  }
  if (expires instanceof Date && expires.getTime() <= now) {
    return "expired";
  }
  return typeof budget === "number" && Number(spend) >= budget
    ? "over_budget"
    : "active";
}

/** When each key was last used, under any of its hashes: the time of a call, or the day where retention kept only that. */
async function lastUsesOf(
  admin: Admin,
  rows: readonly Row[],
): Promise<ReadonlyMap<string, unknown>> {
  const uses = await query<{ token: string; last_used_at: Date | null }>(
    admin.pool,
    `SELECT token, max(coalesce(
        (SELECT max(l.started_at) FROM spend_log l WHERE l.api_key = hash),
        (SELECT max(d.day)::timestamptz FROM daily_spend d WHERE d.api_key = hash))) AS last_used_at
      FROM (SELECT t AS token, t AS hash FROM unnest($1::text[]) t
        UNION ALL SELECT token, old_token FROM rotated_keys WHERE token = ANY($1)) hashes
      GROUP BY token`,
    [rows.map((row) => row["token"])],
  );
  return new Map(uses.map((row) => [row.token, row.last_used_at]));
}

/**
 * SQL to sort keys by their last use: by day, under any of their hashes, and within a day by when the ledger last charged them.
 * The exact times would be looked up in every partition of the ledger, for every key.
 */
export const LAST_USE_ORDER = `(SELECT CASE WHEN max(d.day) IS NOT NULL THEN ARRAY[(max(d.day) - date '1970-01-01')::bigint,
      (SELECT t.version FROM spend_totals t WHERE t.entity = 'key:' || keys.token AND t.window_name = 'all')] END
    FROM (SELECT keys.token AS hash UNION ALL SELECT old_token FROM rotated_keys r WHERE r.token = keys.token) hashes
      CROSS JOIN LATERAL (SELECT max(s.day) AS day FROM daily_spend s WHERE s.api_key = hash) d)`;

interface OwnerNames {
  readonly user_email: string | null;
  readonly user_alias: string | null;
  readonly team_alias: string | null;
}

async function ownerNamesOf(
  admin: Admin,
  rows: readonly Row[],
): Promise<ReadonlyMap<string, OwnerNames>> {
  const named = await query<OwnerNames & { readonly token: string }>(
    admin.pool,
    `SELECT token, user_email, user_alias, team_alias FROM keys
      LEFT JOIN users USING (user_id) LEFT JOIN teams USING (team_id)
      WHERE token = ANY($1)`,
    [rows.map((row) => row["token"])],
  );
  return new Map(named.map(({ token, ...names }) => [token, names]));
}
