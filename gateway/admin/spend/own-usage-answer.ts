import { z } from "zod";
import { MODEL_STATUSES } from "../../routing/catalog.ts";
import { out } from "../kinds/out.ts";
import { refusalRow } from "./refusals.ts";

const budgetLeft = z
  .object({
    of: z.enum([
      "key",
      "key_model",
      "user",
      "team",
      "member",
      "organization",
      "tag",
      "proxy",
    ]),
    name: out.text,
    spend: out.dollars,
    max_budget: out.dollars,
    remaining: out.dollars,
    budget_duration: out.text.nullable(),
    budget_reset_at: out.moment.nullable(),
  })
  .meta({ id: "BudgetLeft" });

const limitLeft = z
  .object({
    of: budgetLeft.shape.of,
    name: out.text,
    limit: z.enum(["requests", "tokens", "parallel"]),
    allowed: out.count,
    remaining: out.count,
    reset_at: out.moment.nullable(),
  })
  .meta({ id: "LimitLeft" });

const used = {
  spend: out.dollars,
  api_requests: out.count,
  failed_requests: out.count,
  total_tokens: out.count,
  cache_hits: out.count,
  saved: out.dollars,
} as const;

export const ownUsage = z
  .object({
    key: z
      .object({
        token: out.text,
        key_name: out.text,
        key_alias: out.text.nullable(),
        user_id: out.text.nullable(),
        team_id: out.text.nullable(),
        team_alias: out.text.nullable(),
        organization_id: out.text.nullable(),
        expires: out.moment.nullable(),
      })
      .nullable(),
    spend: out.dollars,
    total_spend: out.dollars,
    budgets: z.array(budgetLeft),
    limits: z.array(limitLeft),
    start_date: out.day,
    end_date: out.day,
    by_day: z.array(z.object({ date: out.day, ...used })),
    by_model: z.array(z.object({ model: out.text, ...used })),
    refused_last_day: out.count,
    refusals: z.array(refusalRow),
    models: z.array(z.object({ id: out.text, status: z.enum(MODEL_STATUSES) })),
  })
  .meta({ id: "OwnUsage" });

export type OwnUsage = z.output<typeof ownUsage>;
