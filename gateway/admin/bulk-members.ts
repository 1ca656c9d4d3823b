import { z } from "zod";
import { query, transaction } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { rejectionOf } from "../http/conflicts.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { MEMBER, memberRow, newMember } from "./kinds/member.ts";
import { out } from "./kinds/out.ts";
import { TEAM, teamRow } from "./kinds/team.ts";
import { userColumnsRow, userName } from "./kinds/user.ts";
import { flag, name } from "./kinds/values.ts";
import { answerRow } from "./payers.ts";
import { reachableTeam } from "./team-access.ts";
import { addMember, memberColumns, memberLimits } from "./team-members.ts";
import { findOrCreateUser, visibleUsers } from "./user-access.ts";

const MAX_AT_ONCE = 500;

type NewMember = z.output<typeof newMember>;

const result = z.object({
  user_id: out.text.nullable(),
  user_email: out.text.nullable(),
  success: z.boolean(),
  error: out.text.nullable(),
  updated_user: z.union([userColumnsRow, userName]).nullable(),
  updated_team_membership: memberRow.nullable(),
});

const addMembers = adminRoute(
  "POST /team/bulk_member_add",
  {
    summary:
      "Add up to 500 members; each succeeds or fails on its own. Users are created if they do not exist. `all_users` (for a proxy_admin) adds all who are not members yet.",
    input: z.object({
      ...memberLimits,
      team_id: name,
      members: z
        .array(newMember)
        .max(MAX_AT_ONCE, `must have at most ${MAX_AT_ONCE} entries`)
        .nullish(),
      all_users: flag.nullish(),
    }),
    answer: z.object({
      team_id: out.text,
      results: z.array(result),
      total_requested: out.count,
      successful_additions: out.count,
      failed_additions: out.count,
      updated_team: teamRow,
    }),
  },
  async (admin, { team_id: teamId, members, all_users: all, ...limits }) => {
    const team = await reachableTeam(admin, admin.pool, teamId);
    const requested =
      all === true ? await otherUsers(admin, teamId) : (members ?? []);
    if (all !== true && requested.length === 0) {
      throw invalidParam(
        "members",
        "is required: a list of users with `user_id` or `user_email`; a proxy_admin may send `all_users` instead.",
      );
    }
    const columns = { ...memberColumns(limits), team_id: teamId };
    const results: Row[] = [];
    for (const member of requested) {
      results.push(await addOne(admin, member, columns));
    }
    const added = results.filter(({ success }) => success === true).length;
    return {
      team_id: teamId,
      results,
      total_requested: results.length,
      successful_additions: added,
      failed_additions: results.length - added,
      updated_team: await answerRow(admin, TEAM, team),
    };
  },
);

async function addOne(
  admin: Admin,
  { role, ...reference }: NewMember,
  columns: Row,
): Promise<Row> {
  const named = {
    user_id: reference.user_id ?? null,
    user_email: reference.user_email ?? null,
  };
  try {
    const [user, member] = await transaction(admin.pool, async (client) => {
      const user = await findOrCreateUser(admin, client, reference);
      const id = { ...columns, user_id: user["user_id"], role };
      return [user, await addMember(admin, client, id)] as const;
    });
    const [shown] = await visibleUsers(admin, [user]);
    return {
      ...named,
      user_id: user["user_id"],
      success: true,
      error: null,
      updated_user: shown ?? null,
      updated_team_membership: await answerRow(admin, MEMBER, member),
    };
  } catch (error) {
    return {
      ...named,
      success: false,
      error: rejectionOf(error).message,
      updated_user: null,
      updated_team_membership: null,
    };
  }
}

/** All users who are not in the team: a team's admin must not draw the users of others into its team. */
async function otherUsers(
  { pool, reachesAll }: Admin,
  teamId: string,
): Promise<readonly NewMember[]> {
  if (!reachesAll) {
    throw new CallError(
      "permission_denied",
      "Only a proxy_admin may send `all_users`: list the members in `members`.",
      { param: "all_users" },
    );
  }
  const users = await query<{ user_id: string }>(
    pool,
    `SELECT user_id FROM users WHERE user_id NOT IN (SELECT user_id FROM team_members WHERE team_id = $1)
       ORDER BY created_at, user_id LIMIT ${MAX_AT_ONCE + 1}`,
    [teamId],
  );
  if (users.length > MAX_AT_ONCE) {
    throw new CallError(
      "invalid_request",
      `More than ${MAX_AT_ONCE} users are not in the team: send \`members\` with at most ${MAX_AT_ONCE} of them at a time.`,
      { param: "all_users" },
    );
  }
  return users.map((user) => ({ ...user, role: "user" }));
}

export const BULK_MEMBERS: readonly Route[] = [addMembers];
