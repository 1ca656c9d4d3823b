import { query, type Client, type Pool } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { windowAt } from "../ledger/budget-windows.ts";
import type { Admin } from "./admin-route.ts";
import type { Kind } from "./kinds/kind.ts";
import { TIER_LIMITS } from "./kinds/limits.ts";
import { MEMBER } from "./kinds/member.ts";

const LIMIT_NAMES = Object.keys(TIER_LIMITS);

/**
 * Rows with their limits in force as `litellm_budget_table`, each their own, else their tier's, else of a member as its team has it;
 * null: none is set.
 */
export async function withBudgetTable(
  from: Pool | Client,
  of: Kind,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  const ids = new Set(rows.flatMap(({ budget_id: id }) => id ?? []));
  const tiers =
    ids.size === 0
      ? []
      : await query<Row>(
          from,
          "SELECT * FROM budgets WHERE budget_id = ANY($1)",
          [[...ids]],
        );
  const byId = new Map(tiers.map((tier) => [tier["budget_id"], tier]));
  const byTeam = of === MEMBER ? await memberLimits(from, rows) : null;
  return rows.map((row) => {
    const id = row["budget_id"] ?? null;
    const tier = byId.get(id);
    const ofTeam = byTeam?.get(row["team_id"]);
    const limits = LIMIT_NAMES.map(
      (name) =>
        [name, row[name] ?? tier?.[name] ?? ofTeam?.[name] ?? null] as const,
    );
    const isSet = id !== null || limits.some(([, limit]) => limit !== null);
    return {
      ...row,
      litellm_budget_table: isSet
        ? {
            budget_id: id,
            ...Object.fromEntries(limits),
            budget_reset_at: row["budget_reset_at"] ?? null,
          }
        : null,
    };
  });
}

/** The limits that the members' teams set for each of them, by team. */
async function memberLimits(
  from: Pool | Client,
  members: readonly Row[],
): Promise<ReadonlyMap<unknown, Row>> {
  const teams = await query<Row>(
    from,
    `SELECT team_id, team_member_budget AS max_budget, team_member_budget_duration AS budget_duration,
        team_member_tpm_limit AS tpm_limit, team_member_rpm_limit AS rpm_limit
       FROM teams WHERE team_id = ANY($1)`,
    [[...new Set(members.map((member) => member["team_id"]))]],
  );
  return new Map(teams.map((team) => [team["team_id"], team]));
}

/** Tiers with the next reset of the budgets that refer to them; null: never. */
export function withReset(
  { windowing, now }: Admin,
  tiers: readonly Row[],
): readonly Row[] {
  return tiers.map((tier) => {
    const duration = tier["budget_duration"] as string | null;
    const { end } = windowAt(duration, now, windowing.timeZone);
    return {
      ...tier,
      budget_reset_at: Number.isFinite(end)
        ? new Date(end).toISOString()
        : null,
    };
  });
}
