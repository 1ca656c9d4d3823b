import { z } from "zod";
import {
  inputOf,
  readOnly,
  settable,
  STAMPS,
  textWithDefault,
} from "./field.ts";
import { IN_FORCE, rowOf, type Kind } from "./kind.ts";
import { LIMITS } from "./limits.ts";
import { out } from "./out.ts";
import { teamRow } from "./team.ts";
import { userColumnsRow, userName, userReference } from "./user.ts";
import { models } from "./values.ts";

export const teamRole = z.enum(["admin", "user"], "must be admin or user");

const MEMBER_FIELDS = {
  team_id: readOnly("id"),
  user_id: readOnly("id"),
  role: textWithDefault("user"),
  accepted: readOnly("flag"),
  /** Empty: all models of the team. */
  allowed_models: settable("list", models),
  ...LIMITS,
  ...STAMPS,
} as const;

/** A user in a team. */
export const MEMBER: Kind = {
  table: "team_members",
  noun: "member",
  id: ["team_id", "user_id"],
  field: "user_id",
  createdBy: "POST /team/member_add",
  entity: "member",
  showsBudgetTable: true,
  fields: MEMBER_FIELDS,
};

/** The limits of a member in its team. */
export const memberFields = inputOf(MEMBER_FIELDS);

export const newMember = z.object({
  ...userReference,
  role: teamRole.default("user"),
});

export const memberRow = z.object(rowOf(MEMBER)).meta({ id: "TeamMember" });

export const budgetedMemberRow = z
  .object({ ...rowOf(MEMBER), ...IN_FORCE })
  .meta({ id: "TeamMemberWithBudget" });

export const updatedMemberRow = z
  .object({
    ...rowOf(MEMBER),
    user_email: out.text.nullable(),
    max_budget_in_team: out.dollars.nullable(),
  })
  .meta({ id: "UpdatedTeamMember" });

/** A team with the members that were added. */
export const grownTeamRow = z
  .object({
    ...teamRow.shape,
    updated_users: z.array(z.union([userColumnsRow, userName])),
    updated_team_memberships: z.array(memberRow),
  })
  .meta({ id: "GrownTeam" });
