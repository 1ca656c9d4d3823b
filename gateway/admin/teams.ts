import { z } from "zod";
import { query, transaction } from "../database/pool.ts";
import { findRows, type Row } from "../database/rows.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute } from "./admin-route.ts";
import { rejectUnknownGuardrails } from "./guardrail-names.ts";
import { KEY } from "./kinds/key.ts";
import { MEMBER } from "./kinds/member.ts";
import { out } from "./kinds/out.ts";
import {
  PERMISSIONS,
  permissions,
  TEAM,
  teamFields,
  teamRow,
} from "./kinds/team.ts";
import { models, name, someNames, spent } from "./kinds/values.ts";
import { withMemberResets } from "./member-resets.ts";
import { deleteTeamModels } from "./models.ts";
import { newTeam } from "./new-team.ts";
import { answerRow, change, changeAndAnswer, remove } from "./payers.ts";
import { changeWithSpend } from "./spend.ts";
import {
  denyModels,
  denyOrganization,
  denyOtherFields,
  paysFor,
  reachableTeam,
} from "./team-access.ts";

const update = adminRoute(
  "POST /team/update",
  {
    summary: "Update a team; null resets a field.",
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
      denyOtherFields(before, { ...fields, spend });
    }
    rejectUnknownGuardrails(admin, fields.guardrails);
    if (fields.organization_id !== undefined) {
      await denyOrganization(admin, fields.organization_id);
    }
    if ((fields.models ?? fields.organization_id) != null) {
      await denyModels(admin, { ...before, ...fields });
    }
    const team = await changeWithSpend(admin, TEAM, spend, (client) =>
      change(
        admin,
        client,
        TEAM,
        { team_id: teamId },
        withMemberResets(fields, before),
      ),
    );
    return { team_id: teamId, data: await answerRow(admin, TEAM, team) };
  },
);

const deleteTeams = adminRoute(
  "POST /team/delete",
  {
    summary: "Delete teams with their keys and models.",
    input: z.object({ team_ids: someNames }),
    answer: z.object({ deleted_teams: out.texts }),
  },
  async (admin, { team_ids: teamIds }) => {
    for (const teamId of teamIds) {
      await reachableTeam(admin, admin.pool, teamId);
    }
    const models = await transaction(admin.pool, async (client) => {
      let deleted = 0;
      for (const teamId of new Set(teamIds)) {
        const id = { team_id: teamId };
        // A model that is being added to the team waits, and then finds no team.
        await findRows(client, TEAM.table, id, "FOR UPDATE");
        deleted += await deleteTeamModels(admin, client, teamId);
        for (const kind of [KEY, MEMBER, TEAM]) {
          await remove(admin, client, kind, id);
        }
      }
      return deleted;
    });
    if (models > 0) {
      await admin.gateway.reloadModels();
    }
    return { deleted_teams: teamIds };
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
      return changeAndAnswer(
        admin,
        TEAM,
        { team_id: teamId },
        { blocked },
        blocked ? "blocked" : "unblocked",
      );
    },
  );
}

/** Adds models to a team's list or removes them. An empty list means all models, so removing the last one is rejected. */
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
        models: models.min(1, "must have at least one entry"),
      }),
      answer: teamRow,
    },
    async (admin, { team_id: teamId, models: given }) => {
      const reached = await reachableTeam(admin, admin.pool, teamId);
      await denyModels(admin, { ...reached, models: given });
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
            "The team may use all models, so it has no list to change. Set one with POST /team/update.",
            { param: "models" },
          );
        }
        const after = changed(before, given);
        if (after.length === 0) {
          throw invalidParam(
            "models",
            "must leave at least one model: with an empty list the team may use all. To allow none, set `no-default-models`.",
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
      return answerRow(admin, TEAM, team);
    },
  );
}

const updatePermissions = adminRoute(
  "POST /team/permissions_update",
  {
    summary: "Set the key routes that plain members may use.",
    input: z.object({
      team_id: name,
      team_member_permissions: permissions,
    }),
    answer: teamRow,
  },
  async (admin, { team_id: teamId, team_member_permissions }) => {
    await reachableTeam(admin, admin.pool, teamId);
    return changeAndAnswer(
      admin,
      TEAM,
      { team_id: teamId },
      { team_member_permissions },
    );
  },
);

const listPermissions = adminRoute(
  "GET /team/permissions_list",
  {
    summary: "List the key routes that plain members may use.",
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
    "Block a team: calls with its keys are denied.",
  ),
  setBlocked("POST /team/unblock", false, "Unblock a team."),
  changeModels(
    "POST /team/model/add",
    "Add models to a team's list.",
    (before, given) => [...new Set([...before, ...given])],
  ),
  changeModels(
    "POST /team/model/delete",
    "Remove models from a team's list.",
    (before, given) => before.filter((model) => !given.includes(model)),
  ),
  updatePermissions,
  listPermissions,
];
