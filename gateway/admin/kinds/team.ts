import { z } from "zod";
import {
  inputOf,
  readOnly,
  settable,
  SORTABLE_AND_SEARCHABLE,
  STAMPS,
} from "./field.ts";
import { IN_FORCE, rowOf, type Kind } from "./kind.ts";
import { LIMITS } from "./limits.ts";
import { out } from "./out.ts";
import {
  dollars,
  flag,
  models,
  name,
  names,
  object,
  perMinute,
  reference,
  resetInterval,
  texts,
} from "./values.ts";

/**
 * What `team_member_permissions` may name: all that LiteLLM's may (`KeyManagementRoutes` in its proxy/_types.py). Those whose
 * rule says `permitted` let members use a route on all keys and the spend of the team; the others change nothing, because the
 * route is for every key or for admins only, or does not exist here.
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
  "/team/daily/activity/aggregated",
  "/spend/logs",
  "/spend/logs/v2",
  "/auto_router/manage",
];

export const permissions = names.refine(
  (routes) => routes.every((route) => PERMISSIONS.includes(route)),
  `must only have ${PERMISSIONS.join(", ")}`,
);

const BY_TEAM_ADMIN = { byTeamAdmin: true };

const TEAM_FIELDS = {
  team_id: readOnly("id", SORTABLE_AND_SEARCHABLE),
  team_alias: settable("text", name, {
    ...SORTABLE_AND_SEARCHABLE,
    ...BY_TEAM_ADMIN,
  }),
  organization_id: settable("text", reference),
  models: settable("list", models, BY_TEAM_ADMIN),
  access_group_ids: settable("list", names, BY_TEAM_ADMIN),
  ...LIMITS,
  team_member_budget: settable("dollars", dollars, BY_TEAM_ADMIN),
  team_member_budget_duration: settable("text", resetInterval, BY_TEAM_ADMIN),
  team_member_tpm_limit: settable("count", perMinute, BY_TEAM_ADMIN),
  team_member_rpm_limit: settable("count", perMinute, BY_TEAM_ADMIN),
  team_member_permissions: settable("list", permissions, BY_TEAM_ADMIN),
  model_aliases: settable("json", texts, {
    output: z.record(out.text, out.text),
    ...BY_TEAM_ADMIN,
  }),
  tags: settable("list", names),
  guardrails: settable("list", names),
  metadata: settable("json", object, BY_TEAM_ADMIN),
  blocked: settable("flag", flag),
  ...STAMPS,
} as const;

export const TEAM: Kind = {
  table: "teams",
  noun: "team",
  id: ["team_id"],
  field: "team_id",
  createdBy: "POST /team/new",
  entity: "team",
  fields: TEAM_FIELDS,
};

/** What every route that writes teams takes. */
export const teamFields = inputOf(TEAM_FIELDS);

const withMembers = {
  ...rowOf(TEAM),
  members_with_roles: z.array(
    z.object({
      user_id: out.text,
      user_email: out.text.nullable(),
      role: out.text,
    }),
  ),
} as const;

export const teamRow = z.object(withMembers).meta({ id: "Team" });

export const budgetedTeamRow = z
  .object({ ...withMembers, ...IN_FORCE })
  .meta({ id: "TeamWithBudget" });
