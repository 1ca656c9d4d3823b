import type { Client } from "pg";
import { money } from "../../core/words.ts";
import { ownedBy, type Alarm } from "../alerts/alarm.ts";
import { rowsOf } from "../backup/database.ts";
import { NAMES_OF_BUDGETS, nameOf } from "../reports/budgets.ts";

interface Row extends Record<string, unknown> {
  readonly entity: string;
  readonly name: string | null;
  readonly owner: string | null;
  readonly spend: string;
  readonly budget: string;
}

/**
 * The budgets of a condition; `columns` has what else is read of them. Names and owners are joined to all of them at once: looked
 * up one by one, those of a thousand budgets take minutes.
 */
function budgetsWhere<T = unknown>(
  client: Client,
  columns: string,
  condition: string,
  values: readonly unknown[] = [],
): Promise<readonly (Row & T)[]> {
  return rowsOf<Row & T>(
    client,
    `WITH found AS MATERIALIZED (SELECT entity, kind, id, spend::text, ${columns} FROM report_budgets WHERE ${condition})
     SELECT e.*, n.name, u.user_email AS owner FROM found e ${NAMES_OF_BUDGETS}
       LEFT JOIN report_keys k ON e.kind = 'key' AND k.token = e.id
       LEFT JOIN report_users u ON u.user_id = CASE e.kind WHEN 'user' THEN e.id ELSE k.user_id END`,
    values,
  );
}

/** An alarm for each reached soft budget, until its window ends or it is increased; no call is rejected. */
export async function findSoftBudgets(
  client: Client,
): Promise<readonly Alarm[]> {
  const reached = await budgetsWhere(
    client,
    "soft_budget::text AS budget",
    "entity IN (SELECT entity FROM report_notices WHERE kind = 'soft_budget') AND spend >= soft_budget",
  );
  return reached.map(({ entity, name, owner, spend, budget }) => {
    const subject = nameOf(entity, name);
    return {
      fingerprint: `soft-budget:${entity}`,
      level: "warning",
      subject,
      text: `${subject} has reached its soft budget: ${money(Number(spend))} of ${money(Number(budget))} spent; calls continue`,
      command: "hearth report spend",
      ...ownedBy(owner),
    };
  });
}

/** A notice for each budget of which one of these percentages is spent: for the highest one only. */
export async function findSpentBudgets(
  client: Client,
  percentages: readonly number[],
): Promise<readonly Alarm[]> {
  const reachedOnes = await budgetsWhere<{
    readonly reached: number;
    readonly resets: Date | null;
  }>(
    client,
    `max_budget::text AS budget, budget_reset_at AS resets,
       (SELECT max(p) FROM unnest($1::int[]) p WHERE spend * 100 >= max_budget * p) AS reached`,
    "max_budget > 0 AND spend * 100 >= max_budget * (SELECT min(p) FROM unnest($1::int[]) p)",
    [percentages],
  );
  return reachedOnes.map(({ entity, name, owner, budget, reached, resets }) => {
    const until =
      resets === null ? "" : ` until ${resets.toISOString().slice(0, 10)}`;
    const whole = `its budget of ${money(Number(budget))} is spent`;
    return {
      fingerprint: `budget:${reached}:${entity}`,
      level: "notice",
      subject: nameOf(entity, name),
      text:
        reached === 100
          ? `${whole}; its calls are denied${until}`
          : `${reached} % of ${whole}`,
      command: "hearth report spend",
      ...ownedBy(owner),
    };
  });
}
