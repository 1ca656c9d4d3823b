import { z } from "zod";
import { readOnly, settable, STAMPS } from "./field.ts";
import { rowOf, type Kind } from "./kind.ts";
import { modelBudgetsShown, TIER_LIMITS } from "./limits.ts";
import { out } from "./out.ts";
import { modelBudgets } from "./values.ts";

/** A tier: limits that keys, users, teams and other payers refer to. */
export const BUDGET: Kind = {
  table: "budgets",
  noun: "budget",
  id: ["budget_id"],
  field: "budget_id",
  createdBy: "POST /budget/new",
  entity: null,
  fields: {
    budget_id: readOnly("id"),
    ...TIER_LIMITS,
    model_max_budget: settable("json", modelBudgets, {
      output: modelBudgetsShown,
    }),
    ...STAMPS,
  },
};

/** `budget_reset_at`: when those budgets reset that refer to the tier. */
export const budgetRow = z
  .object({ ...rowOf(BUDGET), budget_reset_at: out.moment.nullable() })
  .meta({ id: "Budget" });
