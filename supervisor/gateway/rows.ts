import { z } from "zod";

/** Answers of the gateway's admin routes, as far as displayed. Dollars; times in ISO 8601. */

const limits = {
  models: z.array(z.string()),
  max_budget: z.number().nullable(),
  budget_duration: z.string().nullable(),
  rpm_limit: z.number().nullable(),
  tpm_limit: z.number().nullable(),
  max_parallel_requests: z.number().nullable(),
  /** In the current budget period, if any, else in total. */
  spend: z.number(),
  budget_reset_at: z.string().nullable(),
  created_at: z.string(),
  created_by: z.string().nullable(),
} as const;

/** Its own budget, else its tier's, with a temporary increase. */
const budget_in_force = z.number().nullable();

export const keyRow = z.looseObject({
  token: z.string(),
  key_name: z.string(),
  key_alias: z.string().nullable(),
  user_id: z.string().nullable(),
  team_id: z.string().nullable(),
  blocked: z.boolean(),
  expires: z.string().nullable(),
  ...limits,
});

/** The only answer that contains a key. */
export const newKeyRow = keyRow.extend({ key: z.string() });

export const KEY_STATES = [
  "active",
  "over_budget",
  "blocked",
  "expired",
] as const;

export const usedKeyRow = keyRow.extend({
  budget_in_force,
  state: z.enum(KEY_STATES),
  last_used_at: z.string().nullable(),
  user_email: z.string().nullable(),
  user_alias: z.string().nullable(),
  team_alias: z.string().nullable(),
});

export type UsedKeyRow = z.infer<typeof usedKeyRow>;

export const keyPage = z.object({
  keys: z.array(usedKeyRow),
  total_count: z.number(),
  total_pages: z.number(),
});

const userColumns = {
  user_id: z.string(),
  user_email: z.string().nullable(),
  user_alias: z.string().nullable(),
  user_role: z.string(),
  /** An older gateway answers neither. */
  blocked: z.boolean().default(false),
  sso_user_id: z.string().nullish(),
  ...limits,
  budget_in_force,
} as const;

export const userPage = z.object({
  users: z.array(z.looseObject({ ...userColumns, key_count: z.number() })),
  total: z.number(),
  total_pages: z.number(),
});

export type ListedUser = z.infer<typeof userPage>["users"][number];

const teamRow = z.looseObject({
  team_id: z.string(),
  team_alias: z.string().nullable(),
  ...limits,
  budget_in_force,
  team_member_budget: z.number().nullable(),
  blocked: z.boolean(),
  members_with_roles: z.array(
    z.looseObject({
      user_id: z.string(),
      user_email: z.string().nullable(),
      role: z.string(),
    }),
  ),
});

export type TeamRow = z.infer<typeof teamRow>;

export const teamPage = z.object({
  teams: z.array(teamRow),
  total: z.number(),
  total_pages: z.number(),
});

/** GET /organization/list */
export const organizationList = z.array(
  z.looseObject({
    organization_id: z.string(),
    organization_alias: z.string().nullable(),
    spend: limits.spend,
    budget_reset_at: limits.budget_reset_at,
    /** The limits in force; null: there are none. */
    litellm_budget_table: z
      .looseObject({ max_budget: limits.max_budget })
      .nullable(),
  }),
);

export type ListedOrganization = z.infer<typeof organizationList>[number];

export const userInfo = z.looseObject({
  user_info: z.looseObject(userColumns),
  keys: z.array(keyRow),
  teams: z.array(
    z.looseObject({
      team_id: z.string(),
      team_alias: z.string().nullable(),
      ...limits,
      blocked: z.boolean(),
    }),
  ),
});

const { models: _, created_by: __, ...memberLimits } = limits;

export const teamInfo = z.looseObject({
  team_info: teamRow,
  team_memberships: z.array(
    z.looseObject({
      user_id: z.string(),
      role: z.string(),
      ...memberLimits,
      budget_in_force,
    }),
  ),
});

export type Member = z.infer<typeof teamInfo>["team_memberships"][number];
