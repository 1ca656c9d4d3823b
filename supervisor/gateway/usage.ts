import { z } from "zod";

/** Spend, remaining limits and denied calls of a key: GET /key/usage, /refusals, /spend/logs. */

const of = z.string();

export const keyUsage = z.looseObject({
  total_spend: z.number(),
  budgets: z.array(
    z.looseObject({
      of,
      name: z.string(),
      spend: z.number(),
      max_budget: z.number(),
      remaining: z.number(),
      budget_reset_at: z.string().nullable(),
    }),
  ),
  limits: z.array(
    z.looseObject({
      of,
      name: z.string(),
      limit: z.enum(["requests", "tokens", "parallel"]),
      allowed: z.number(),
      remaining: z.number(),
      reset_at: z.string().nullable(),
    }),
  ),
  by_day: z.array(z.looseObject({ date: z.string(), spend: z.number() })),
  by_model: z.array(
    z.looseObject({
      model: z.string(),
      spend: z.number(),
      api_requests: z.number(),
      failed_requests: z.number(),
      total_tokens: z.number(),
      /** Missing in answers of older gateways. */
      saved: z.number().default(0),
    }),
  ),
  start_date: z.string(),
  end_date: z.string(),
  models: z.array(z.looseObject({ id: z.string(), status: z.string() })),
});

export type KeyUsage = z.infer<typeof keyUsage>;

export const refusals = z.looseObject({
  refusals: z.array(
    z.looseObject({
      at: z.string(),
      type: z.string(),
      model: z.string().nullable(),
      message: z.string(),
    }),
  ),
  /** By reason, of the whole period: only the latest rejections are kept one by one. */
  counts: z.array(
    z.looseObject({
      type: z.string(),
      count: z.number(),
      last_at: z.string(),
    }),
  ),
  total: z.number(),
});

export type Refusals = z.infer<typeof refusals>;

const call = z.looseObject({
  endTime: z.string(),
  model_group: z.string().nullable(),
  spend: z.number(),
  total_tokens: z.number(),
  cache_hit: z.enum(["True", "False"]),
  status: z.enum(["success", "failure", "interrupted"]),
  /** Set if spend was corrected by hand, without a call. */
  payer: z.string().nullable(),
});

/** A call in a page of the ledger. */
export const loggedCall = call.extend({
  request_id: z.string(),
  /** From the request to the end of the answer. */
  request_duration_ms: z.number(),
  api_key: z.string().nullable(),
  metadata: z.looseObject({
    user_api_key_alias: z.string().nullable(),
    error_information: z
      .looseObject({ error_message: z.string().optional() })
      .nullable(),
  }),
});

export type Call = z.infer<typeof loggedCall>;

/** GET /spend/logs/v2: newest first. */
export const callPage = z.looseObject({
  data: z.array(loggedCall),
  total: z.number(),
  /** There are more than `total`. */
  total_is_capped: z.boolean(),
  /** Continues with the calls after the last one; null: there are none. */
  next_cursor: z.string().nullable(),
});
