import { z } from "zod";
import { invalidParam } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute } from "./admin-route.ts";
import {
  commonRoutes,
  removeAll,
  several,
  type CommonNoun,
} from "./common-routes.ts";
import { BUDGET, budgetRow } from "./kinds/budget.ts";
import { name, someNames } from "./kinds/values.ts";
import { answerRow, answerRows } from "./payers.ts";

const BUDGETS: CommonNoun = {
  of: BUDGET,
  row: budgetRow,
  path: "/budget",
  summaries: {
    new: "Create a tier that keys, users, teams, members and others can refer to.",
    update: "Update a tier; null resets a field.",
    list: "List tiers.",
  },
};

const budgetInfo = adminRoute(
  "POST /budget/info",
  {
    summary: "Get several tiers by id.",
    input: z.object({ budgets: someNames }),
    answer: z.array(budgetRow),
  },
  async (admin, { budgets }) =>
    answerRows(admin, BUDGET, await several(admin, BUDGET, budgets)),
);

const budgetDelete = adminRoute(
  "POST /budget/delete",
  {
    summary: "Delete a tier. Rejected while it is in use.",
    input: z.object({ id: name.optional(), budget_id: name.optional() }),
    answer: budgetRow,
  },
  async (admin, { id, budget_id: budgetId }) => {
    const named = id ?? budgetId;
    if (named === undefined) {
      throw invalidParam("id", "is required: the id of a budget.");
    }
    const [deleted] = await removeAll(admin, BUDGET, [named]);
    return answerRow(admin, BUDGET, deleted ?? {});
  },
);

export const BUDGET_ROUTES: readonly Route[] = [
  ...commonRoutes(BUDGETS),
  budgetInfo,
  budgetDelete,
];
