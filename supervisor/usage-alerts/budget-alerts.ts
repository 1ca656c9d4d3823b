import type { Client } from "pg";
import { money } from "../../core/words.ts";
import type { Alarm } from "../alerts/alarm.ts";
import { rowsOf } from "../backup/database.ts";
import { ENTITY_NAME, nameOf } from "../reports/budgets.ts";

/** The e-mail address of the user whom an entity belongs to (`e.entity`). */
const OWNER = `CASE split_part(e.entity, ':', 1)
  WHEN 'key' THEN (SELECT u.user_email FROM report_keys k JOIN report_users u USING (user_id) WHERE 'key:' || k.token = e.entity)
  WHEN 'user' THEN (SELECT user_email FROM report_users WHERE 'user:' || user_id = e.entity)
  END`;

interface Row extends Record<string, unknown> {
  readonly entity: string;
  readonly name: string | null;
  readonly owner: string | null;
  readonly spend: string;
  readonly budget: string;
  readonly resets: Date | null;
}

/** An alarm for each reached soft budget, until its window ends or it is increased; no call is rejected. */
export async function findSoftBudgets(
  client: Client,
): Promise<readonly Alarm[]> {
  const reached = await rowsOf<Row>(
    client,
    `SELECT e.entity, ${ENTITY_NAME} AS name, ${OWNER} AS owner, spend::text, soft_budget::text AS budget, budget_reset_at AS resets
       FROM report_budgets e WHERE entity IN (SELECT entity FROM report_notices WHERE kind = 'soft_budget') AND spend >= soft_budget`,
  );
  return reached.map((row) => {
    const subject = nameOf(row.entity, row.name);
    return {
      fingerprint: `soft-budget:${row.entity}`,
      level: "warning",
      subject,
      text: `${subject} has reached its soft budget: ${spent(row)} spent; calls continue`,
      command: "hearth report spend",
      ...(row.owner === null ? {} : { owner: row.owner }),
    };
  });
}

/** A notice for each budget of which one of these percentages is spent: for the highest one only. */
export async function findSpentBudgets(
  client: Client,
  percentages: readonly number[],
): Promise<readonly Alarm[]> {
  if (percentages.length === 0) {
    return [];
  }
  const spentOnes = await rowsOf<Row>(
    client,
    `SELECT e.entity, ${ENTITY_NAME} AS name, ${OWNER} AS owner, spend::text, max_budget::text AS budget, budget_reset_at AS resets
       FROM report_budgets e WHERE max_budget > 0 AND spend * 100 >= max_budget * $1::int`,
    [Math.min(...percentages)],
  );
  return spentOnes.map((row) => {
    const used = (Number(row.spend) / Number(row.budget)) * 100;
    const reached = Math.max(...percentages.filter((each) => each <= used));
    const subject = nameOf(row.entity, row.name);
    const resets =
      row.resets === null
        ? ""
        : ` until ${row.resets.toISOString().slice(0, 10)}`;
    return {
      fingerprint: `budget:${reached}:${row.entity}`,
      level: "notice",
      subject,
      text:
        reached === 100
          ? `its budget of ${money(Number(row.budget))} is spent; its calls are denied${resets}`
          : `${reached} % of its budget of ${money(Number(row.budget))} is spent`,
      command: "hearth report spend",
      ...(row.owner === null ? {} : { owner: row.owner }),
    };
  });
}

function spent({ spend, budget }: Row): string {
  return `${money(Number(spend))} of ${money(Number(budget))}`;
}
