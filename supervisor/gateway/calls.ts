import { z } from "zod";
import { loggedCall } from "./usage.ts";

/** GET /spend/calls: a page of a search, newest first. */
export const callList = z.looseObject({
  data: z.array(loggedCall),
  /** Where the pages before and after continue; null: there are none. */
  older: z.string().nullable(),
  newer: z.string().nullable(),
  /** Where the search ended before the end of the ledger. */
  searched_back_to: z.string().nullable(),
  /** null: not counted. */
  total: z.number().nullable(),
  /** There are more than `total`. */
  total_is_capped: z.boolean(),
  /** Of recent calls. */
  models: z.array(z.string()),
  providers: z.array(z.string()),
  /** Of what was asked for by hash and id. */
  names: z.looseObject({
    key: z.string().nullable(),
    user: z.string().nullable(),
    team: z.string().nullable(),
  }),
});

export type CallList = z.infer<typeof callList>;

const text = z.string().nullable();
const count = z.number().nullable();

const deployment = z.looseObject({
  model_id: z.string(),
  model_group: text,
  provider: text,
  model: text,
  api_base: text,
});

/** GET /spend/calls/ID: one call in full. */
export const callInFull = loggedCall.extend({
  startTime: z.string(),
  call_type: z.string(),
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
  cached_tokens: z.number(),
  cache_write_tokens: z.number(),
  custom_llm_provider: text,
  user: text,
  user_alias: text,
  team_id: text,
  team_alias: text,
  organization_id: text,
  end_user: text,
  request_tags: z.array(z.string()),
  cache_key: text,
  session_id: text,
  requester_ip_address: text,
  response_id: text,
  saved: z.number(),
  unpriced: z.boolean(),
  metadata: loggedCall.shape.metadata.extend({
    estimated: z.boolean().optional(),
    client_disconnected: z.boolean().optional(),
    unpriced_parts: z.array(z.string()).optional(),
  }),
  times: z.looseObject({
    waited_ms: count,
    first_token_ms: count,
    overhead_ms: count,
    tokens_per_second: count,
  }),
  /** Amounts are exact, in decimal digits. */
  cost: z.looseObject({
    lines: z
      .array(
        z.looseObject({
          part: z.string(),
          used: z.number(),
          price: z.string(),
          factor: text,
          amount: z.string(),
        }),
      )
      .nullable(),
    rounding: z.string(),
    total: z.string(),
  }),
  path: z.array(
    z.looseObject({
      kind: z.enum(["passed_over", "attempt", "answer", "cache", "end"]),
      as: z.enum(["first", "retry", "fallback"]).nullable(),
      deployment: deployment.nullable(),
      status: count,
      error: text,
      outrun: z.boolean(),
      ms: count,
      cooling_until: text,
    }),
  ),
  prompt_is_stored: z.boolean(),
});

export type CallInFull = z.infer<typeof callInFull>;

/** GET /spend/calls/ID/prompt */
export const storedPrompt = z.looseObject({
  headers: z.record(z.string(), z.string()),
  messages: z.unknown(),
  response: z.unknown(),
});

export type StoredPrompt = z.infer<typeof storedPrompt>;
