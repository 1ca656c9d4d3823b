import { query, type Client, type Pool } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { windowAt } from "../ledger/budget-windows.ts";
import type { Admin } from "./admin-route.ts";
import { TIER_LIMITS } from "./kinds/limits.ts";

const LIMIT_NAMES = Object.keys(TIER_LIMITS);

/** Rows with their limits in force, each their own or else their tier's, as `litellm_budget_table`; null: none is set. */
export async function withBudgetTable(
  from: Pool | Client,
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
  return rows.map((row) => {
    const id = row["budget_id"] ?? null;
    const tier = byId.get(id);
    const limits = LIMIT_NAMES.map(
      (name) => [name, row[name] ?? tier?.[name] ?? null] as const,
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
