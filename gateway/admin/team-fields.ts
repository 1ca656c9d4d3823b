import { z } from "zod";
import { allows, NO_MODELS } from "../access/models.ts";
import type { Client, Pool } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import {
  dollars,
  flag,
  limits,
  models,
  name,
  names,
  object,
  texts,
} from "./fields.ts";
import { findOne, MEMBER, ORGANIZATION, shownOne, TEAM } from "./payers.ts";
import type { Admin } from "./route.ts";
import { userReference } from "./user-fields.ts";

/**
 * What `team_member_permissions` may name: all that LiteLLM's may (`KeyManagementRoutes` in its proxy/_types.py). Those whose
 * rule says `permitted` let members use a route on their own keys of the team; the others change nothing, because members may
 * read what is theirs anyway and the rest is for admins.
 */
export const PERMISSIONS = [
  "/key/generate",
  "/key/service-account/generate",
  "/key/update",
  "/key/delete",
  "/key/regenerate",
  "/key/:key/regenerate",
  "/key/{key_id}/regenerate",
  "/key/block",
  "/key/unblock",
  "/key/info",
  "/key/health",
  "/key/list",
  "/key/aliases",
  "/key/bulk_update",
  "/key/{key_id}/reset_spend",
  "/key/access_group_assignment",
  "/team/key/bulk_update",
  "/team/daily/activity",
  "/spend/logs",
  "/spend/logs/v2",
  "/auto_router/manage",
];

export const permissions = names.refine(
  (routes) => routes.every((route) => PERMISSIONS.includes(route)),
  `it may have ${PERMISSIONS.join(", ")}`,
);

/** What a team's admin may set; the rest is for those who pay. */
export const ownFields = {
  team_alias: name.nullish(),
  models: models.nullish(),
  metadata: object.nullish(),
  model_aliases: texts.nullish(),
  team_member_budget: dollars.nullish(),
  team_member_permissions: permissions.nullish(),
} as const;

/** What every route that writes teams takes. */
export const teamFields = {
  ...limits,
  ...ownFields,
  organization_id: name.nullish(),
  tags: names.nullish(),
  blocked: flag.nullish(),
} as const;

export const teamRole = z.enum(["admin", "user"], "it may be admin or user");

export const newMember = z.object({
  ...userReference,
  role: teamRole.default("user"),
});

/** The team that a request names; throws 404, 403 when it is out of reach. */
export async function reachableTeam(
  admin: Admin,
  from: Pool | Client,
  teamId: string,
): Promise<Row> {
  const team = await findOne(from, TEAM, { team_id: teamId });
  admin.refuse({
    what: `team ${teamId}`,
    teamId,
    organizationId: team["organization_id"] as string | null,
  });
  return team;
}

/** Whether whoever asks has the rights of those who pay for a team, not only of its admin. */
export function paysFor(admin: Admin, team: Row): boolean {
  const { actor } = admin;
  return (
    admin.reachesAll ||
    actor.organizations.has(String(team["organization_id"])) ||
    actor.organizationTeams.has(String(team["team_id"]))
  );
}

export function refuseOtherFields(fields: Row): void {
  const other = Object.keys(fields).find(
    (field) => fields[field] !== undefined && !Object.hasOwn(ownFields, field),
  );
  if (other !== undefined) {
    throw new CallError(
      "permission_denied",
      `A team's admin may not set \`${other}\`: that is for proxy_admin or org_admin of its organization.`,
      { param: other },
    );
  }
}

/** Throws 403 for models that a team's organization does not have; an empty list means all that it has. */
export async function refuseModels(admin: Admin, team: Row): Promise<void> {
  const id = team["organization_id"] as string | null | undefined;
  const models = (team["models"] ?? []) as readonly string[];
  if (admin.reachesAll || id == null || models.length === 0) {
    return;
  }
  const organization = await findOne(admin.pool, ORGANIZATION, {
    organization_id: id,
  });
  const allowed = organization["models"] as readonly string[];
  const other = models.find(
    (model) => model !== NO_MODELS && !allows(allowed, model),
  );
  if (other !== undefined) {
    throw new CallError(
      "permission_denied",
      `Organization ${id} is not allowed to access model ${other}. Allowed models: ${allowed.join(", ")}.`,
      { param: "models" },
    );
  }
}

/** A member with its budget and spend in the team. */
export async function shownMember(admin: Admin, member: Row): Promise<Row> {
  return shownOne(admin, MEMBER, member);
}
