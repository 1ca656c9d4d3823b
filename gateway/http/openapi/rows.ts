import { z } from "zod";

/** What rows look like in answers. Every field is always there, null where nothing is set. */

export const moment = z.string().meta({ format: "date-time" });
export const day = z.string().meta({ format: "date" });
export const count = z.int();
export const dollars = z.number();
const text = z.string();
const names = z.array(text);
const free = z.record(z.string(), z.unknown());

const stamps = {
  created_at: moment,
  created_by: text.nullable(),
  updated_at: moment,
  updated_by: text.nullable(),
} as const;

const tierLimits = {
  max_budget: dollars.nullable(),
  soft_budget: dollars.nullable(),
  budget_duration: text.nullable(),
  tpm_limit: count.nullable(),
  rpm_limit: count.nullable(),
  max_parallel_requests: count.nullable(),
} as const;

const limits = { ...tierLimits, budget_id: text.nullable() } as const;

const modelBudgets = z.record(
  z.string(),
  z.object({
    budget_limit: dollars,
    time_period: text.nullish(),
  }),
);

/** In the budget's window where there is one, else over the whole life. */
const spent = {
  spend: dollars,
  budget_reset_at: moment.nullable(),
} as const;

const keyColumns = {
  token: text,
  key_name: text,
  key_alias: text.nullable(),
  user_id: text.nullable(),
  team_id: text.nullable(),
  organization_id: text.nullable(),
  models: names,
  ...limits,
  temp_budget_increase: dollars.nullable(),
  temp_budget_expiry: moment.nullable(),
  model_max_budget: modelBudgets,
  model_rpm_limit: z.record(z.string(), count),
  model_tpm_limit: z.record(z.string(), count),
  tags: names,
  aliases: z.record(z.string(), text),
  permissions: free,
  allowed_routes: names,
  key_type: text,
  metadata: free,
  blocked: z.boolean(),
  expires: moment.nullable(),
  ...stamps,
} as const;

export const keyRow = z.object({ ...keyColumns, ...spent }).meta({ id: "Key" });

/** The budget that holds: its own, else its tier's, with a temporary increase. */
const inForce = { budget_in_force: dollars.nullable() } as const;

export const usedKeyRow = z
  .object({
    ...keyColumns,
    ...spent,
    ...inForce,
    state: z.enum(["active", "blocked", "expired", "over_budget"]),
    last_used_at: moment.nullable(),
  })
  .meta({ id: "KeyInUse" });

/** The only answers in which a key itself is shown. */
export const newKeyRow = z
  .object({ ...keyColumns, ...spent, key: text, token_id: text })
  .meta({ id: "NewKey" });

export const deletedKeyRow = z
  .object({
    ...keyColumns,
    ...spent,
    deleted_at: moment,
    deleted_by: text.nullable(),
  })
  .meta({ id: "DeletedKey" });

const userColumns = {
  user_id: text,
  user_email: text.nullable(),
  user_alias: text.nullable(),
  user_role: text,
  models: names,
  ...limits,
  metadata: free,
  ...stamps,
} as const;

const userFields = { ...userColumns, ...spent, teams: names } as const;

/** A user as it is stored, without its spend and its teams. */
export const userColumnsRow = z
  .object(userColumns)
  .meta({ id: "UserWithoutSpend" });
export const userRow = z.object(userFields).meta({ id: "User" });
export const budgetedUserRow = z
  .object({ ...userFields, ...inForce })
  .meta({ id: "UserWithBudget" });
/** A user as they see it who look after a team or an organization of its, not after all that it has. */
export const userName = z
  .object({
    user_id: text,
    user_email: text.nullable(),
    user_alias: text.nullable(),
  })
  .meta({ id: "UserName" });
export const listedUserRow = z
  .object({ ...userFields, ...inForce, key_count: count })
  .meta({ id: "ListedUser" });

/** The user with its first key, if one was made. */
export const newUserRow = z
  .object({
    ...z.object(keyColumns).partial().shape,
    ...userFields,
    key: text.nullable(),
    token: text.nullable(),
    token_id: text.nullable(),
    key_name: text.nullable(),
    expires: moment.nullable(),
  })
  .meta({ id: "NewUser" });

const teamColumns = {
  team_id: text,
  team_alias: text.nullable(),
  organization_id: text.nullable(),
  models: names,
  ...limits,
  team_member_budget: dollars.nullable(),
  team_member_permissions: names,
  model_aliases: z.record(z.string(), text),
  tags: names,
  metadata: free,
  blocked: z.boolean(),
  ...stamps,
  ...spent,
} as const;

const membersWithRoles = z.array(
  z.object({ user_id: text, user_email: text.nullable(), role: text }),
);

export const teamRow = z
  .object({ ...teamColumns, members_with_roles: membersWithRoles })
  .meta({ id: "Team" });
export const budgetedTeamRow = z
  .object({ ...teamColumns, ...inForce, members_with_roles: membersWithRoles })
  .meta({ id: "TeamWithBudget" });

const memberColumns = {
  team_id: text,
  user_id: text,
  role: text,
  accepted: z.boolean(),
  ...limits,
  ...stamps,
  ...spent,
} as const;

export const memberRow = z.object(memberColumns).meta({ id: "TeamMember" });
export const budgetedMemberRow = z
  .object({ ...memberColumns, ...inForce })
  .meta({ id: "TeamMemberWithBudget" });
export const updatedMemberRow = z
  .object({
    ...memberColumns,
    user_email: text.nullable(),
    max_budget_in_team: dollars.nullable(),
  })
  .meta({ id: "UpdatedTeamMember" });
export const grownTeamRow = z
  .object({
    ...teamColumns,
    members_with_roles: membersWithRoles,
    updated_users: z.array(z.union([userColumnsRow, userName])),
    updated_team_memberships: z.array(memberRow),
  })
  .meta({ id: "GrownTeam" });

const organizationColumns = {
  organization_id: text,
  organization_alias: text.nullable(),
  models: names,
  ...limits,
  metadata: free,
  ...stamps,
} as const;

export const goneOrganizationRow = z
  .object(organizationColumns)
  .meta({ id: "OrganizationWithoutSpend" });
export const organizationRow = z
  .object({ ...organizationColumns, ...spent })
  .meta({ id: "Organization" });
const membership = z
  .object({
    user_id: text,
    user_email: text.nullable(),
    user_alias: text.nullable(),
    role: text,
    created_at: moment,
  })
  .meta({ id: "OrganizationMembership" });
export const organizationInfo = z
  .object({
    ...organizationColumns,
    ...spent,
    members: z.array(membership),
    teams: z.array(teamRow),
  })
  .meta({ id: "OrganizationInfo" });
export const grownOrganization = z.object({
  organization_id: text,
  updated_users: z.array(z.union([userColumnsRow, userName])),
  updated_organization_memberships: z.array(membership),
});
export const organizationMemberRow = z
  .object({ organization_id: text, user_id: text, role: text, ...stamps })
  .meta({ id: "OrganizationMember" });

export const endUserRow = z
  .object({
    user_id: text,
    alias: text.nullable(),
    blocked: z.boolean(),
    ...limits,
    metadata: free,
    ...stamps,
    ...spent,
  })
  .meta({ id: "EndUser" });

export const tagRow = z
  .object({
    name: text,
    description: text.nullable(),
    ...limits,
    ...stamps,
    ...spent,
  })
  .meta({ id: "Tag" });

export const budgetRow = z
  .object({
    budget_id: text,
    ...tierLimits,
    model_max_budget: modelBudgets,
    ...stamps,
  })
  .meta({ id: "Budget" });

export const refusalRow = z
  .object({
    at: moment,
    api_key: text,
    key_alias: text.nullable(),
    key_name: text.nullable(),
    type: text,
    status: count,
    model: text.nullable(),
    message: text,
  })
  .meta({ id: "Refusal" });

export const spendLogRow = z
  .object({
    request_id: text,
    call_type: text,
    api_key: text.nullable(),
    spend: dollars,
    total_tokens: count,
    prompt_tokens: count,
    completion_tokens: count,
    startTime: moment,
    endTime: moment,
    completionStartTime: moment.nullable(),
    model: text.nullable(),
    model_id: text.nullable(),
    model_group: text.nullable(),
    custom_llm_provider: text.nullable(),
    api_base: text.nullable(),
    user: text.nullable(),
    team_id: text.nullable(),
    organization_id: text.nullable(),
    end_user: text.nullable(),
    request_tags: names,
    cache_hit: z.enum(["True", "False"]),
    cache_key: text.nullable(),
    session_id: text.nullable(),
    status: z.enum(["success", "failure", "interrupted"]),
    requester_ip_address: text.nullable(),
    response_id: text.nullable(),
    payer: text.nullable(),
    saved: dollars,
    cached_tokens: count,
    cache_write_tokens: count,
    unpriced: z.boolean(),
    messages: z.unknown().meta({
      description: "With `store_prompts_in_spend_logs`: what was asked.",
    }),
    response: z.unknown().meta({ description: "What was answered." }),
    metadata: z.looseObject({
      user_api_key: text.nullable(),
      user_api_key_alias: text.nullable(),
      user_api_key_user_id: text.nullable(),
      user_api_key_team_id: text.nullable(),
      user_api_key_org_id: text.nullable(),
      status: text,
      error_information: free.nullable(),
    }),
  })
  .meta({ id: "SpendLog" });
