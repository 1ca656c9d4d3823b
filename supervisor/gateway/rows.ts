import { z } from "zod";

/** What the gateway's admin routes answer, as far as it is shown. Dollars; times as ISO texts. */

const limits = {
  max_budget: z.number().nullable(),
  budget_duration: z.string().nullable(),
  budget_id: z.string().nullable(),
  rpm_limit: z.number().nullable(),
  tpm_limit: z.number().nullable(),
  max_parallel_requests: z.number().nullable(),
  /** In the budget's window where there is one, else over the whole life. */
  spend: z.number(),
  budget_reset_at: z.string().nullable(),
  created_at: z.string(),
} as const;

export const keyRow = z.looseObject({
  token: z.string(),
  key_name: z.string(),
  key_alias: z.string().nullable(),
  user_id: z.string().nullable(),
  team_id: z.string().nullable(),
  models: z.array(z.string()),
  blocked: z.boolean(),
  expires: z.string().nullable(),
  ...limits,
});

export type KeyRow = z.infer<typeof keyRow>;

/** The only answer in which a key itself stands. */
export const newKeyRow = keyRow.extend({ key: z.string() });

export const keyPage = z.object({
  keys: z.array(keyRow),
  total_count: z.number(),
  total_pages: z.number(),
});
