import { z } from "zod";
import {
  inputOf,
  outputOf,
  readOnly,
  settable,
  STAMPS,
  textWithDefault,
} from "./field.ts";
import { rowOf, type Kind } from "./kind.ts";
import { LIMITS } from "./limits.ts";
import { out } from "./out.ts";
import { teamRow } from "./team.ts";
import { userColumnsRow, userName } from "./user.ts";
import { models, name, object } from "./values.ts";

const ORGANIZATION_FIELDS = {
  organization_id: readOnly("id"),
  organization_alias: settable("text", name),
  models: settable("list", models),
  ...LIMITS,
  metadata: settable("json", object),
  ...STAMPS,
} as const;

export const ORGANIZATION: Kind = {
  table: "organizations",
  noun: "organization",
  id: ["organization_id"],
  field: "organization_id",
  createdBy: "POST /organization/new",
  entity: "organization",
  showsBudgetTable: true,
  fields: ORGANIZATION_FIELDS,
};

/** A user in an organization. */
export const ORGANIZATION_MEMBER: Kind = {
  table: "organization_members",
  noun: "organization member",
  id: ["organization_id", "user_id"],
  field: "user_id",
  createdBy: "POST /organization/member_add",
  entity: null,
  fields: {
    organization_id: readOnly("id"),
    user_id: readOnly("id"),
    role: textWithDefault("internal_user"),
    ...STAMPS,
  },
};

/** What every route that writes organizations takes. */
export const organizationFields = inputOf(ORGANIZATION_FIELDS);

export const deletedOrganizationRow = z
  .object(outputOf(ORGANIZATION_FIELDS))
  .meta({ id: "OrganizationWithoutSpend" });

export const organizationRow = z
  .object(rowOf(ORGANIZATION))
  .meta({ id: "Organization" });

const membership = z
  .object({
    organization_id: out.text,
    user_id: out.text,
    user_email: out.text.nullable(),
    user_alias: out.text.nullable(),
    role: out.text,
    /** The same, where LiteLLM's clients look for it. */
    user_role: out.text,
    created_at: out.moment,
    updated_at: out.moment,
  })
  .meta({ id: "OrganizationMembership" });

export const organizationInfo = z
  .object({
    ...rowOf(ORGANIZATION),
    members: z.array(membership),
    teams: z.array(teamRow),
  })
  .meta({ id: "OrganizationInfo" });

/** An organization with the members that were added. */
export const grownOrganization = z.object({
  organization_id: out.text,
  updated_users: z.array(z.union([userColumnsRow, userName])),
  updated_organization_memberships: z.array(membership),
});

export const organizationMemberRow = z
  .object({ ...rowOf(ORGANIZATION_MEMBER), user_role: out.text })
  .meta({ id: "OrganizationMember" });
