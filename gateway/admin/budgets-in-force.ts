import { z } from "zod";
import { query, type Pool } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import type { Admin } from "./admin-route.ts";
import { entityOf, type Kind } from "./kinds/kind.ts";
import type { Sortable } from "./paging.ts";

/**
 * The budget in force of each row, dollars: its own, else its tier's (of a member: else its team's for members), with a temporary
 * increase. null: none.
 */
export async function budgetsInForce(
  admin: Admin,
  of: Kind,
  rows: readonly Row[],
): Promise<readonly (number | null)[]> {
  const found = await query<{ entity: string; max_budget: number | null }>(
    admin.pool,
    "SELECT entity, max_budget FROM budgets_of($1)",
    [rows.map((row) => entityOf(of, row))],
  );
  const budgets = new Map(found.map((row) => [row.entity, row.max_budget]));
  return rows.map((row) => {
    const budget = budgets.get(entityOf(of, row)) ?? null;
    return budget === null ? null : budget + increaseOf(row, admin.now);
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
    ELSE (SELECT w.spend FROM open_windows w WHERE w.entity = ${name} AND w.duration = ${duration}
      ORDER BY w.is_of_present_zone DESC, w.window_start DESC LIMIT 1)
    END, 0)`;
}

/** Sorting by spend, and by the used share of the budget. */
export function sortableBySpend(of: Kind): Sortable {
  return {
    spend: spendNow(of),
    budget_used: `${spendNow(of)} / nullif(${inForce(of.table, "max_budget")}, 0)`,
  };
}

/** SQL of whether a payer's budget is used up. */
export function isUsedUp(of: Kind): string {
  const budget = inForce(of.table, "max_budget");
  // Spend is looked up only where there is a budget.
  return `CASE WHEN ${budget} IS NULL THEN false ELSE ${spendNow(of)} >= ${budget} + ${increaseNow(of)} END`;
}

/** What lists of payers other than keys can be restricted to. */
export const budgetState = z.enum(["over_budget"], "must be over_budget");

/** SQL of a temporary increase of a budget, which only keys have. */
function increaseNow({ table, fields }: Kind): string {
  if (fields["temp_budget_increase"] === undefined) {
    return "0";
  }
  return `CASE WHEN ${table}.temp_budget_expiry > now() THEN coalesce(${table}.temp_budget_increase, 0) ELSE 0 END`;
}

/** A payer with a budget. Dollars. */
export interface BudgetState {
  readonly id: string;
  readonly alias: string | null;
  readonly maxBudget: number;
  /** Of the current window, as the ledger knows it; negative after an overshoot. */
  readonly remaining: number;
  readonly budgetDuration: string | null;
}

/** The payers of a noun with a budget, those who used the largest share of it first, at most `limit`. */
export async function budgetStates(
  pool: Pool,
  of: Kind,
  limit: number,
): Promise<readonly BudgetState[]> {
  const { table, id } = of;
  const alias = ALIASES[table] ?? "NULL";
  const budget = inForce(table, "max_budget");
  return query<BudgetState & Row>(
    pool,
    `SELECT id, alias, max_budget AS "maxBudget", max_budget - spend AS remaining, budget_duration AS "budgetDuration"
       FROM (
         SELECT ${table}.${id[0]} AS id, ${alias} AS alias, ${budget} + ${increaseNow(of)} AS max_budget,
             ${spendNow(of)} AS spend, ${inForce(table, "budget_duration")} AS budget_duration
           FROM ${table} WHERE ${budget} IS NOT NULL) payers
       ORDER BY spend / nullif(max_budget, 0) DESC NULLS FIRST, id LIMIT $1`,
    [limit],
  );
}

const ALIASES: Readonly<Record<string, string>> = {
  keys: "key_alias",
  teams: "team_alias",
  organizations: "organization_alias",
};
