import { z } from "zod";
import { query, transaction } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { KEY } from "./kinds/key.ts";
import { MEMBER, newMember } from "./kinds/member.ts";
import { ORGANIZATION } from "./kinds/organization.ts";
import { out } from "./kinds/out.ts";
import {
  PERMISSIONS,
  permissions,
  TEAM,
  teamFields,
  teamRow,
} from "./kinds/team.ts";
import { USER } from "./kinds/user.ts";
import { models, name, plainName, someNames, spent } from "./kinds/values.ts";
import { createMember } from "./new-member.ts";
import { change, create, findOne, remove, shownOne } from "./payers.ts";
import { setSpend } from "./spend.ts";
import {
  paysFor,
  reachableTeam,
  refuseModels,
  refuseOtherFields,
} from "./team-fields.ts";
import { findOrMakeUser } from "./user-fields.ts";

const newTeam = adminRoute(
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

/** A team is made in, or moved to, an organization that exists and is within reach. */
async function refuseOrganization(
  admin: Admin,
  organizationId: string | null | undefined,
): Promise<void> {
  if (organizationId != null) {
    await findOne(admin.pool, ORGANIZATION, {
      organization_id: organizationId,
    });
  }
  if (admin.reachesAll) {
    return;
  }
  if (organizationId == null) {
    throw new CallError(
      "permission_denied",
      "An org_admin makes teams of its organization: name it in `organization_id`.",
      { param: "organization_id" },
    );
  }
  admin.refuse({ what: `organization ${organizationId}`, organizationId });
}

const update = adminRoute(
  "POST /team/update",
  {
    summary: "Set fields of a team; null resets one.",
    input: z.object({
      ...teamFields,
      team_id: name,
      spend: spent,
    }),
    answer: z.object({ team_id: out.text, data: teamRow }),
  },
  async (admin, { team_id: teamId, spend, ...fields }) => {
    const before = await reachableTeam(admin, admin.pool, teamId);
    if (!paysFor(admin, before)) {
      refuseOtherFields({ ...fields, spend });
    }
    if (fields.organization_id !== undefined) {
      await refuseOrganization(admin, fields.organization_id);
    }
    if ((fields.models ?? fields.organization_id) != null) {
      await refuseModels(admin, { ...before, ...fields });
    }
    const team = await transaction(admin.pool, (client) =>
      change(admin, client, TEAM, { team_id: teamId }, fields),
    );
    if (spend != null) {
      await setSpend(admin, TEAM, team, spend);
    }
    return { team_id: teamId, data: await shownOne(admin, TEAM, team) };
  },
);

const deleteTeams = adminRoute(
  "POST /team/delete",
  {
    summary: "Delete teams with their keys.",
    input: z.object({ team_ids: someNames }),
    answer: z.object({ deleted_teams: out.texts }),
  },
  async (admin, { team_ids: teamIds }) => {
    for (const teamId of teamIds) {
      await reachableTeam(admin, admin.pool, teamId);
    }
    return transaction(admin.pool, async (client) => {
      for (const teamId of new Set(teamIds)) {
        for (const kind of [KEY, MEMBER, TEAM]) {
          await remove(admin, client, kind, { team_id: teamId });
        }
      }
      return { deleted_teams: teamIds };
    });
  },
);

function setBlocked(
  route: "POST /team/block" | "POST /team/unblock",
  blocked: boolean,
  summary: string,
): Route {
  return adminRoute(
    route,
    { summary, input: z.object({ team_id: name }), answer: teamRow },
    async (admin, { team_id: teamId }) => {
      await reachableTeam(admin, admin.pool, teamId);
      const team = await transaction(admin.pool, (client) =>
        change(
          admin,
          client,
          TEAM,
          { team_id: teamId },
          { blocked },
          blocked ? "blocked" : "unblocked",
        ),
      );
      return shownOne(admin, TEAM, team);
    },
  );
}

/** Adds models to a team's list or takes them from it. An empty list means all, so taking the last one is refused. */
function changeModels(
  route: "POST /team/model/add" | "POST /team/model/delete",
  summary: string,
  changed: (
    before: readonly string[],
    given: readonly string[],
  ) => readonly string[],
): Route {
  return adminRoute(
    route,
    {
      summary,
      input: z.object({
        team_id: name,
        models: models.min(1, "name at least one"),
      }),
      answer: teamRow,
    },
    async (admin, { team_id: teamId, models: given }) => {
      const reached = await reachableTeam(admin, admin.pool, teamId);
      await refuseModels(admin, { ...reached, models: given });
      const team = await transaction(admin.pool, async (client) => {
        const [locked] = await query<Row>(
          client,
          "SELECT models FROM teams WHERE team_id = $1 FOR UPDATE",
          [teamId],
        );
        const before = (locked?.["models"] ?? []) as readonly string[];
        if (before.length === 0) {
          throw new CallError(
            "invalid_request",
            "The team may use all models, so it has no list to change: give it one with POST /team/update.",
            { param: "models" },
          );
        }
        const after = changed(before, given);
        if (after.length === 0) {
          throw new CallError(
            "invalid_request",
            "`models` is not right: without its last model the team could use all; set `no-default-models` instead.",
            { param: "models" },
          );
        }
        return change(
          admin,
          client,
          TEAM,
          { team_id: teamId },
          { models: after },
        );
      });
      return shownOne(admin, TEAM, team);
    },
  );
}

const updatePermissions = adminRoute(
  "POST /team/permissions_update",
  {
    summary: "Say which key routes plain members may use.",
    input: z.object({
      team_id: name,
      team_member_permissions: permissions,
    }),
    answer: teamRow,
  },
  async (admin, { team_id: teamId, team_member_permissions }) => {
    await reachableTeam(admin, admin.pool, teamId);
    const team = await transaction(admin.pool, (client) =>
      change(
        admin,
        client,
        TEAM,
        { team_id: teamId },
        { team_member_permissions },
      ),
    );
    return shownOne(admin, TEAM, team);
  },
);

const listPermissions = adminRoute(
  "GET /team/permissions_list",
  {
    summary: "Which key routes plain members may use.",
    input: z.object({ team_id: name }),
    answer: z.object({
      team_id: out.text,
      team_member_permissions: out.texts,
      all_available_permissions: out.texts,
    }),
  },
  async (admin, { team_id: teamId }) => {
    const team = await reachableTeam(admin, admin.pool, teamId);
    return {
      team_id: teamId,
      team_member_permissions: team["team_member_permissions"],
      all_available_permissions: PERMISSIONS,
    };
  },
);

export const TEAM_CHANGES: readonly Route[] = [
  newTeam,
  update,
  deleteTeams,
  setBlocked(
    "POST /team/block",
    true,
    "Block a team: all its keys are refused.",
  ),
  setBlocked("POST /team/unblock", false, "Let a blocked team work again."),
  changeModels(
    "POST /team/model/add",
    "Add models to a team's list.",
    (before, given) => [...new Set([...before, ...given])],
  ),
  changeModels(
    "POST /team/model/delete",
    "Take models from a team's list.",
    (before, given) => before.filter((model) => !given.includes(model)),
  ),
  updatePermissions,
  listPermissions,
];
