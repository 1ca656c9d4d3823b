import { query } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import type { Admin } from "./admin-route.ts";
import { entityOf, type Kind } from "./kinds/kind.ts";
import type { Sortable } from "./paging.ts";

/** Rows with the budget in force: its own, else its tier's (of a member: else its team's for members), with a temporary increase. */
export async function withBudgetInForce(
  admin: Admin,
  of: Kind,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  const found = await query<{ entity: string; max_budget: number | null }>(
    admin.pool,
    "SELECT entity, max_budget FROM budgets_of($1)",
    [rows.map((row) => entityOf(of, row))],
  );
  const budgets = new Map(found.map((row) => [row.entity, row.max_budget]));
  return rows.map((row) => {
    const budget = budgets.get(entityOf(of, row)) ?? null;
    return {
      ...row,
      budget_in_force:
        budget === null ? null : budget + increaseOf(row, admin.now),
    };
  });
}

function increaseOf(row: Row, now: number): number {
  const { temp_budget_increase: dollars, temp_budget_expiry: until } = row;
  return typeof dollars === "number" && until instanceof Date
    ? until.getTime() > now
      ? dollars
      : 0
    : 0;
}

/** SQL of a column of `table`, or of its tier where the row sets none. */
function inForce(
  table: string,
  column: "max_budget" | "budget_duration",
): string {
  return `coalesce(${table}.${column}, (SELECT b.${column} FROM budgets b WHERE b.budget_id = ${table}.budget_id))`;
}

/** SQL of a payer's spend: in the current window of its budget if it has one, else in total. */
function spendNow({ table, entity, id: [id] }: Kind): string {
  const name = `'${entity}:' || ${table}.${id}`;
  const duration = inForce(table, "budget_duration");
  return `coalesce(CASE WHEN coalesce(${duration}, '-1') = '-1'
    THEN (SELECT t.spend FROM spend_totals t WHERE t.entity = ${name} AND t.window_name = 'all')
    ELSE (SELECT t.spend FROM spend_totals t WHERE t.entity = ${name} AND t.window_name <> 'all'
      AND t.window_end > now() AND t.window_start <= now() AND split_part(t.window_name, '@', 1) = ${duration} LIMIT 1)
    END, 0)`;
}

/** Sorting by spend, and by the used share of the budget. */
export function sortableBySpend(of: Kind): Sortable {
  return {
    spend: spendNow(of),
    budget_used: `${spendNow(of)} / nullif(${inForce(of.table, "max_budget")}, 0)`,
  };
}

/** SQL of whether a key's budget is used up. */
export function isUsedUp(of: Kind): string {
  const increase = `CASE WHEN ${of.table}.temp_budget_expiry > now() THEN ${of.table}.temp_budget_increase ELSE 0 END`;
  return `coalesce(${spendNow(of)} >= ${inForce(of.table, "max_budget")} + ${increase}, false)`;
}
