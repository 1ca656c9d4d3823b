import { z } from "zod";
import { CallError } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute } from "./admin-route.ts";
import { BUDGET, budgetRow } from "./kinds/budget.ts";
import { name, someNames } from "./kinds/values.ts";
import { commonRoutes, removeAll, several, type Plain } from "./plain.ts";

const BUDGETS: Plain = {
  of: BUDGET,
  row: budgetRow,
  path: "/budget",
  summaries: {
    new: "Make a tier that keys, users, teams, members and others can point to.",
    update: "Set fields of a tier.",
    list: "Tiers.",
  },
};

const budgetInfo = adminRoute(
  "POST /budget/info",
  {
    summary: "Several tiers by id.",
    input: z.object({ budgets: someNames }),
    answer: z.array(budgetRow),
  },
  (admin, { budgets }) => several(admin, BUDGET, budgets),
);

const budgetDelete = adminRoute(
  "POST /budget/delete",
  {
    summary: "Delete a tier; refused while anybody points to it.",
    input: z.object({ id: name.optional(), budget_id: name.optional() }),
    answer: budgetRow,
  },
  async (admin, { id, budget_id: budgetId }) => {
    const named = id ?? budgetId;
    if (named === undefined) {
      throw new CallError(
        "invalid_request",
        "`id` is missing: name a budget.",
        { param: "id" },
      );
    }
    const [gone] = await removeAll(admin, BUDGET, [named]);
    return gone;
  },
);

export const BUDGET_ROUTES: readonly Route[] = [
  ...commonRoutes(BUDGETS),
  budgetInfo,
  budgetDelete,
];
