import { z } from "zod";
import { METRIC_NAMES } from "../../admin/spend/days.ts";
import { described } from "./described.ts";
import {
  count,
  day,
  dollars,
  keyRow,
  moment,
  refusalRow,
  spendLogRow,
  userRow,
} from "./rows.ts";

const text = z.string();

const metrics = z
  .object(
    Object.fromEntries(METRIC_NAMES.map((metric) => [metric, z.number()])),
  )
  .meta({ id: "Metrics" });

const part = z.record(
  text,
  z.object({
    metrics,
    metadata: z.object({ key_alias: text.nullable().optional() }),
  }),
);

const activity = z
  .object({
    results: z.array(
      z.object({
        date: day,
        metrics: metrics.nullable(),
        breakdown: z.object({ models: part, providers: part, api_keys: part }),
      }),
    ),
    metadata: z.object({
      ...Object.fromEntries(
        METRIC_NAMES.map((metric) => [
          `total_${metric.replace(/^total_/, "")}`,
          z.number(),
        ]),
      ),
      page: count,
      total_pages: count,
      has_more: z.boolean(),
    }),
  })
  .meta({ id: "DailyActivity" });

const summedDay = z.object({
  startTime: day,
  spend: dollars,
  users: z.record(text, dollars),
  models: z.record(text, dollars),
});

const activityDay = z.object({
  date: day,
  api_requests: count,
  total_tokens: count,
  spend: dollars,
  failed_requests: count,
});

const reportOf = z.object({
  id: text,
  total_spend: dollars,
  metadata: z.array(
    z.object({
      model: text,
      spend: dollars,
      total_tokens: count,
      api_requests: count,
    }),
  ),
});
const named = <Name extends string>(name: Name) =>
  z.array(reportOf.extend({ [name]: text })).optional();

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
    name: text,
    spend: dollars,
    max_budget: dollars,
    remaining: dollars,
    budget_duration: text.nullable(),
    budget_reset_at: moment.nullable(),
  })
  .meta({ id: "BudgetLeft" });

const limitLeft = z
  .object({
    of: budgetLeft.shape.of,
    name: text,
    limit: z.enum(["requests", "tokens", "parallel"]),
    allowed: count,
    remaining: count,
    reset_at: moment.nullable(),
  })
  .meta({ id: "LimitLeft" });

const used = {
  spend: dollars,
  api_requests: count,
  failed_requests: count,
  total_tokens: count,
  cache_hits: count,
} as const;

export const ownUsage = z
  .object({
    key: z
      .object({
        token: text,
        key_name: text,
        key_alias: text.nullable(),
        user_id: text.nullable(),
        team_id: text.nullable(),
        team_alias: text.nullable(),
        organization_id: text.nullable(),
        expires: moment.nullable(),
      })
      .nullable(),
    spend: dollars,
    total_spend: dollars,
    budgets: z.array(budgetLeft),
    limits: z.array(limitLeft),
    start_date: day,
    end_date: day,
    by_day: z.array(z.object({ date: day, ...used })),
    by_model: z.array(z.object({ model: text, ...used })),
    refused_last_day: count,
    refusals: z.array(refusalRow),
    models: z.array(
      z.object({ id: text, status: z.enum(["ready", "pending"]) }),
    ),
  })
  .meta({ id: "OwnUsage" });

export type OwnUsage = z.output<typeof ownUsage>;

export const SPEND_ANSWERS = {
  "GET /me/usage": described(
    "What the key that asks has spent, what is left of each budget and limit, its last refusals, the models it may use.",
    ownUsage,
  ),
  "GET /key/usage": described(
    "The same of a key within reach, for those who look after it.",
    ownUsage,
  ),
  "GET /refusals": described(
    "Calls refused before a provider was asked: the last of each key within reach, and counts.",
    z.object({
      refusals: z.array(refusalRow),
      counts: z.array(
        z.object({
          api_key: text,
          key_alias: text.nullable(),
          key_name: text.nullable(),
          type: text,
          count,
          last_at: moment,
        }),
      ),
      total: count,
      since: moment,
    }),
  ),
  "GET /spend/logs": described(
    "Rows of the ledger within reach, newest first; with summarize their sums by day.",
    z.union([z.array(spendLogRow), z.array(summedDay)]),
  ),
  "GET /spend/keys": described(
    "Keys by what they spent in their whole life, the dearest first.",
    z.array(z.object({ ...keyRow.shape, total_spend: dollars })),
  ),
  "GET /spend/users": described(
    "Users by what they spent in their whole life, the dearest first.",
    z.array(z.object({ ...userRow.shape, total_spend: dollars.optional() })),
  ),
  "GET /spend/tags": described(
    "Tags by what was spent under them.",
    z.array(
      z.object({
        individual_request_tag: text,
        log_count: count,
        total_spend: dollars,
      }),
    ),
  ),
  "POST /spend/calculate": described(
    "What a call costs, by its answer's usage or by counting its messages.",
    z.object({ cost: dollars, unpriced: z.boolean() }),
  ),
  "GET /instances": described(
    "The gateways that share limits in Redis, and spend of each that is not in the ledger.",
    z.object({
      instances: z.array(
        z.object({
          instance: text,
          this_one: z.boolean(),
          running: z.boolean(),
          silent_seconds: count.nullable(),
          pending_budgets: count,
          pending_spend: dollars,
        }),
      ),
    }),
  ),
  "POST /instances/forget": described(
    "Drop the pending spend of an instance whose journal is lost.",
    z.object({ forgotten: text }),
  ),
  "GET /spend/check": described(
    "Compare every sum with the rows that it stands for.",
    z.object({
      status: z.enum(["equal", "different"]),
      differences: z.array(
        z.object({
          kind: text,
          name: text,
          period: text,
          recorded: dollars,
          summed: dollars,
        }),
      ),
      totals_compared: count,
      spend: dollars,
      checked_at: moment,
    }),
  ),
  "GET /notices": described(
    "Soft budgets that were reached, newest first.",
    z.array(
      z.object({
        id: count,
        at: moment,
        kind: text,
        entity: text,
        window_name: text,
        spend: dollars,
        threshold: dollars,
      }),
    ),
  ),
  "GET /audit": described(
    "Who changed what, newest first.",
    z.array(
      z.object({
        id: count,
        at: moment,
        actor: text,
        action: text,
        object_type: text,
        object_id: text,
        before: z.record(text, z.unknown()).nullable(),
        after: z.record(text, z.unknown()).nullable(),
      }),
    ),
  ),
  "GET /global/spend": described(
    "What the whole gateway spent, in its budget's window and in its life.",
    z.object({
      spend: dollars,
      total_spend: dollars,
      max_budget: dollars.nullable(),
      budget_duration: text.nullable(),
      budget_reset_at: moment.nullable(),
    }),
  ),
  "GET /global/spend/logs": described(
    "Spend by day.",
    z.array(z.object({ date: day, spend: dollars })),
  ),
  "GET /global/spend/keys": described(
    "Keys by what they spent in a period.",
    z.array(
      z.object({
        api_key: text,
        key_alias: text.nullable(),
        key_name: text.nullable(),
        total_spend: dollars,
        api_requests: count,
        total_tokens: count,
      }),
    ),
  ),
  "GET /global/spend/models": described(
    "Models by what was spent on them in a period.",
    z.array(
      z.object({
        model: text,
        total_spend: dollars,
        api_requests: count,
        total_tokens: count,
      }),
    ),
  ),
  "GET /global/spend/teams": described(
    "Spend of each team by day.",
    z.object({
      daily_spend: z.array(
        z.object({ date: day }).catchall(z.union([dollars, text])),
      ),
      teams: z.array(text),
      total_spend_per_team: z.array(
        z.object({ team_id: text, team: text, total_spend: dollars }),
      ),
    }),
  ),
  "GET /global/spend/tags": described(
    "Spend under each tag.",
    z.object({
      spend_per_tag: z.array(
        z.object({ name: text, spend: dollars, log_count: count }),
      ),
    }),
  ),
  "GET /global/spend/provider": described(
    "Spend at each provider.",
    z.array(
      z.object({
        provider: text,
        spend: dollars,
        api_requests: count,
        total_tokens: count,
      }),
    ),
  ),
  "GET /global/spend/report": described(
    "Spend by day, grouped by team, customer, user, key, organization or model; of each day the dearest, up to limit.",
    z.array(
      z.object({
        group_by_day: day,
        teams: named("team_name"),
        customers: named("customer"),
        users: named("user_id"),
        api_keys: named("api_key"),
        organizations: named("organization_id"),
        models: named("model"),
      }),
    ),
  ),
  "GET /global/activity": described(
    "Requests and tokens by day.",
    z.object({
      daily_data: z.array(activityDay),
      sum_api_requests: count,
      sum_total_tokens: count,
    }),
  ),
  "GET /global/activity/model": described(
    "Requests and tokens of each model by day.",
    z.array(
      z.object({
        model: text,
        daily_data: z.array(activityDay),
        sum_api_requests: count,
        sum_total_tokens: count,
      }),
    ),
  ),
  "GET /global/activity/cache_hits": described(
    "Hits of the response cache by day, and what they saved.",
    z.object({
      daily_data: z.array(
        z.object({
          date: day,
          cache_hits: count,
          cache_misses: count,
          saved: dollars,
        }),
      ),
      sum_cache_hits: count,
      sum_cache_misses: count,
      sum_saved: dollars,
      hit_rate: z.number(),
    }),
  ),
  "GET /user/daily/activity": described("A user's days.", activity),
  "GET /team/daily/activity": described("A team's days.", activity),
  "GET /organization/daily/activity": described(
    "An organization's days.",
    activity,
  ),
  "GET /tag/daily/activity": described("A tag's days.", activity),
} as const;
