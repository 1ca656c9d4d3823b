import { z } from "zod";
import { transaction, type Client } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { KEY } from "./kinds/key.ts";
import {
  grownTeamRow,
  MEMBER,
  memberFields,
  memberRow,
  newMember,
  teamRole,
  updatedMemberRow,
} from "./kinds/member.ts";
import { TEAM, teamRow } from "./kinds/team.ts";
import { userReference } from "./kinds/user.ts";
import { dollars, name } from "./kinds/values.ts";
import { createMember, mayAccept } from "./new-member.ts";
import { answerRow, change, remove } from "./payers.ts";
import { reachableTeam } from "./team-access.ts";
import {
  findOrCreateUser,
  requireMembership,
  visibleUsers,
} from "./user-access.ts";

export const memberLimits = {
  ...memberFields,
  max_budget_in_team: dollars.nullish(),
};

export function memberColumns({
  max_budget_in_team: budget,
  ...fields
}: {
  readonly max_budget_in_team?: number | null | undefined;
}): Row {
  return budget === undefined ? fields : { ...fields, max_budget: budget };
}

const add = adminRoute(
  "POST /team/member_add",
  {
    summary:
      "Add members. Users are created if they do not exist; of a list, those that are members already stay as they are.",
    input: z.object({
      ...memberLimits,
      team_id: name,
      member: z.union([newMember, z.array(newMember).min(1).max(1_000)]),
    }),
    answer: grownTeamRow,
  },
  async (admin, { team_id: teamId, member, ...fields }) => {
    const team = await reachableTeam(admin, admin.pool, teamId);
    const { users, members } = await transaction(admin.pool, async (client) => {
      const users: Row[] = [];
      const members: Row[] = [];
      for (const one of [member].flat()) {
        const user = await findOrCreateUser(admin, client, one);
        const row = {
          ...memberColumns(fields),
          team_id: teamId,
          user_id: user["user_id"],
          role: one.role,
        };
        const created = Array.isArray(member)
          ? await createMember(admin, client, row, true)
          : await addMember(admin, client, row);
        if (created !== null) {
          users.push(user);
          members.push(created);
        }
      }
      return { users, members };
    });
    if (members.length === 0) {
      throw new CallError(
        "already_member",
        `All of these users are already in team ${teamId}. Change them with POST /team/member_update.`,
        { param: "member" },
      );
    }
    return {
      ...(await answerRow(admin, TEAM, team)),
      updated_users: await visibleUsers(admin, users),
      updated_team_memberships: await Promise.all(
        members.map((row) => answerRow(admin, MEMBER, row)),
      ),
    };
  },
);

/** Throws 400 for a user who is a member already. */
export async function addMember(
  admin: Admin,
  client: Client,
  row: Row,
): Promise<Row> {
  const created = await createMember(admin, client, row, true);
  if (created === null) {
    throw new CallError(
      "already_member",
      `User ${String(row["user_id"])} is already in team ${String(row["team_id"])}. Change it with POST /team/member_update.`,
      { param: "member" },
    );
  }
  return created;
}

/** From now on the user's keys in the team also spend the user's own budget. */
const accept = adminRoute(
  "POST /team/member_accept",
  {
    summary:
      "Accept a membership: the user's keys in the team also spend the user's own budget. By default the caller's.",
    input: z.object({ team_id: name, user_id: name.nullish() }),
    answer: memberRow,
  },
  async (admin, { team_id: teamId, user_id: named }) => {
    const userId = named ?? admin.actor.userId;
    const id = { team_id: teamId, user_id: userId };
    if (!(await mayAccept(admin.actor, admin.pool, id))) {
      throw new CallError(
        "permission_denied",
        `This key may not accept the membership of ${userId === null ? "a user" : `user ${userId}`} in team ${teamId}: use a key of that user without team, organization and limits, or ask a proxy_admin.`,
      );
    }
    const member = await transaction(admin.pool, (client) =>
      change(admin, client, MEMBER, id, { accepted: true }),
    );
    return answerRow(admin, MEMBER, member);
  },
);

const update = adminRoute(
  "POST /team/member_update",
  {
    summary: "Change the role, budget and limits of a member in the team.",
    input: z.object({
      ...memberLimits,
      ...userReference,
      team_id: name,
      role: teamRole.nullish(),
    }),
    answer: updatedMemberRow,
  },
  async (admin, { team_id: teamId, user_id, user_email, ...fields }) => {
    await reachableTeam(admin, admin.pool, teamId);
    const before = await requireMembership(
      admin.pool,
      MEMBER,
      { team_id: teamId },
      { user_id, user_email },
    );
    const id = { team_id: teamId, user_id: before["user_id"] };
    const member = await transaction(admin.pool, (client) =>
      change(admin, client, MEMBER, id, memberColumns(fields)),
    );
    return {
      ...(await answerRow(admin, MEMBER, member)),
      user_email: before["user_email"],
      max_budget_in_team: member["max_budget"],
    };
  },
);

const removeMember = adminRoute(
  "POST /team/member_delete",
  {
    summary: "Remove a member and that user's keys in the team.",
    input: z.object({ ...userReference, team_id: name }),
    answer: teamRow,
  },
  async (admin, { team_id: teamId, ...reference }) => {
    const team = await reachableTeam(admin, admin.pool, teamId);
    const member = await requireMembership(
      admin.pool,
      MEMBER,
      { team_id: teamId },
      reference,
    );
    const id = { team_id: teamId, user_id: member["user_id"] };
    await transaction(admin.pool, async (client) => {
      await remove(admin, client, KEY, id);
      await remove(admin, client, MEMBER, id);
    });
    return answerRow(admin, TEAM, team);
  },
);

export const TEAM_MEMBERS: readonly Route[] = [
  add,
  accept,
  update,
  removeMember,
];
