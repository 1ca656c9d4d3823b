import { z } from "zod";
import { transaction } from "../database/pool.ts";
import { CallError } from "../http/errors.ts";
import { adminRoute } from "./admin-route.ts";
import { newMember } from "./kinds/member.ts";
import { TEAM, teamFields, teamRow } from "./kinds/team.ts";
import { USER } from "./kinds/user.ts";
import { plainName } from "./kinds/values.ts";
import { createMember } from "./new-member.ts";
import { create, shownOne } from "./payers.ts";
import { refuseModels, refuseOrganization } from "./team-access.ts";
import { findOrMakeUser } from "./user-access.ts";

export const newTeam = adminRoute(
  "POST /team/new",
  {
    summary: "Make a team; who makes it administers it.",
    input: z.object({
      ...teamFields,
      team_id: plainName.nullish(),
      members_with_roles: z.array(newMember).max(1_000).nullish(),
    }),
    answer: teamRow,
  },
  async (admin, { members_with_roles: members, team_id: id, ...fields }) => {
    await refuseOrganization(admin, fields.organization_id);
    await refuseModels(admin, fields);
    const teamId = id ?? crypto.randomUUID();
    const team = await transaction(admin.pool, async (client) => {
      const made = await create(
        admin,
        client,
        TEAM,
        { ...fields, team_id: teamId },
        true,
      );
      if (made === null) {
        throw new CallError(
          "invalid_request",
          `\`team_id\` is taken already: team ${teamId} exists. Change it with POST /team/update.`,
          { param: "team_id" },
        );
      }
      // First: whoever is listed too stays its admin.
      const creator = { team_id: teamId, user_id: admin.actor.userId };
      if (creator.user_id !== null) {
        await create(admin, client, USER, { user_id: creator.user_id }, true);
        await createMember(admin, client, { ...creator, role: "admin" });
      }
      for (const member of members ?? []) {
        const user = await findOrMakeUser(admin, client, member);
        await createMember(
          admin,
          client,
          { team_id: teamId, user_id: user["user_id"], role: member.role },
          true,
        );
      }
      return made;
    });
    return shownOne(admin, TEAM, team);
  },
);
