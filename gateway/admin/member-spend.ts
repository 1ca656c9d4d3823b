import { z } from "zod";
import { CallError } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute } from "./admin-route.ts";
import { MEMBER } from "./kinds/member.ts";
import { out } from "./kinds/out.ts";
import { dollars, name } from "./kinds/values.ts";
import { answerBudgetedRows, findOne } from "./payers.ts";
import { lowerSpend } from "./spend.ts";
import { reachableTeam } from "./team-access.ts";

const resetSpend = adminRoute(
  "POST /team/:team_id/member/:user_id/reset_spend",
  {
    summary:
      "Lower the spend of a member in the window of its budget in the team. Admins do not lower their own.",
    input: z.object({
      team_id: name,
      user_id: name,
      reset_to: dollars,
    }),
    answer: z.object({
      team_id: out.text,
      user_id: out.text,
      spend: out.dollars,
      previous_spend: out.dollars,
      max_budget: out.dollars.nullable(),
    }),
  },
  async (admin, { team_id: teamId, user_id: userId, reset_to: target }) => {
    await reachableTeam(admin, admin.pool, teamId);
    if (!admin.reachesAll && userId === admin.actor.userId) {
      throw new CallError(
        "permission_denied",
        "An admin may not reset its own spend: ask another admin, or a proxy_admin.",
        { param: "user_id" },
      );
    }
    const id = { team_id: teamId, user_id: userId };
    const member = await findOne(admin.pool, MEMBER, id);
    const [before] = await answerBudgetedRows(admin, MEMBER, [member]);
    const previous = await lowerSpend(admin, MEMBER, target, member);
    return {
      ...id,
      spend: target,
      previous_spend: previous,
      max_budget: before?.["budget_in_force"] ?? null,
    };
  },
);

export const MEMBER_SPEND: readonly Route[] = [resetSpend];
