import { z } from "zod";
import { out } from "../kinds/out.ts";

export const spendLogRow = z
  .object({
    request_id: out.text,
    call_type: out.text,
    api_key: out.text.nullable(),
    spend: out.dollars,
    total_tokens: out.count,
    prompt_tokens: out.count,
    completion_tokens: out.count,
    startTime: out.moment,
    endTime: out.moment,
    completionStartTime: out.moment.nullable(),
    request_duration_ms: out.count,
    model: out.text.nullable(),
    model_id: out.text.nullable(),
    model_group: out.text.nullable(),
    custom_llm_provider: out.text.nullable(),
    api_base: out.text.nullable(),
    user: out.text.nullable(),
    team_id: out.text.nullable(),
    organization_id: out.text.nullable(),
    end_user: out.text.nullable(),
    request_tags: out.texts,
    cache_hit: z.enum(["True", "False"]),
    cache_key: out.text.nullable(),
    session_id: out.text.nullable(),
    status: z.enum(["success", "failure", "interrupted"]),
    requester_ip_address: out.text.nullable(),
    response_id: out.text.nullable(),
    payer: out.text.nullable(),
    saved: out.dollars,
    cached_tokens: out.count,
    cache_write_tokens: out.count,
    unpriced: z.boolean(),
    metadata: z.looseObject({
      user_api_key: out.text.nullable(),
      user_api_key_alias: out.text.nullable(),
      user_api_key_user_id: out.text.nullable(),
      user_api_key_team_id: out.text.nullable(),
      user_api_key_org_id: out.text.nullable(),
      status: out.text,
      error_information: out.anything.nullable(),
    }),
  })
  .meta({ id: "SpendLog" });

export const spendLogWithPrompts = spendLogRow
  .extend({
    messages: z.unknown().meta({
      description: "The request, with `store_prompts_in_spend_logs`.",
    }),
    response: z
      .unknown()
      .meta({ description: "The answer, with `store_prompts_in_spend_logs`." }),
  })
  .meta({ id: "SpendLogWithPrompts" });

/** The rows of a day, summarized. */
export const summedDay = z.object({
  startTime: out.day,
  spend: out.dollars,
  users: z.record(out.text, out.dollars),
  models: z.record(out.text, out.dollars),
});
