import { z } from "zod";
import { transaction } from "../database/pool.ts";
import { CallError } from "../http/errors.ts";
import { adminRoute } from "./admin-route.ts";
import { rejectUnknownGuardrails } from "./guardrail-names.ts";
import { newMember } from "./kinds/member.ts";
import { TEAM, teamFields, teamRow } from "./kinds/team.ts";
import { USER } from "./kinds/user.ts";
import { plainName } from "./kinds/values.ts";
import { withMemberResets } from "./member-resets.ts";
import { createMember } from "./new-member.ts";
import { answerRow, create } from "./payers.ts";
import { denyModels, denyOrganization } from "./team-access.ts";
import { findOrCreateUser } from "./user-access.ts";

export const newTeam = adminRoute(
  "POST /team/new",
  {
    summary: "Create a team. Its creator becomes its admin.",
    input: z.object({
      ...teamFields,
      team_id: plainName.nullish(),
      members_with_roles: z.array(newMember).max(1_000).nullish(),
    }),
    answer: teamRow,
  },
  async (admin, { members_with_roles: members, team_id: id, ...fields }) => {
    await denyOrganization(admin, fields.organization_id);
    await denyModels(admin, fields);
    rejectUnknownGuardrails(admin, fields.guardrails);
    const teamId = id ?? crypto.randomUUID();
    const team = await transaction(admin.pool, async (client) => {
      const created = await create(
        admin,
        client,
        TEAM,
        { ...withMemberResets(fields), team_id: teamId },
        true,
      );
      if (created === null) {
        throw new CallError(
          "invalid_request",
          `Team ${teamId} already exists. Change it with POST /team/update.`,
          { param: "team_id" },
        );
      }
      // First: a creator who is also listed stays an admin.
      const creator = { team_id: teamId, user_id: admin.actor.userId };
      if (creator.user_id !== null) {
        await create(admin, client, USER, { user_id: creator.user_id }, true);
        await createMember(admin, client, { ...creator, role: "admin" });
      }
      for (const member of members ?? []) {
        const user = await findOrCreateUser(admin, client, member);
        await createMember(
          admin,
          client,
          { team_id: teamId, user_id: user["user_id"], role: member.role },
          true,
        );
      }
      return created;
    });
    return answerRow(admin, TEAM, team);
  },
);
