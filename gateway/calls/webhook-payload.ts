import type { Outcome } from "../ledger/records.ts";
import type { Call } from "./call.ts";

/** Why a call failed. */
export interface FailureFacts {
  /** The status as text, or `error`. */
  readonly type: string;
  readonly message: string;
}

/** A finished call in the fields of LiteLLM's StandardLoggingPayload. Times in seconds since 1970, money in dollars. */
export function webhookPayload(
  call: Call,
  outcome: Outcome,
  apiBase: string | null,
  failure: FailureFacts | null,
  content: { readonly response: string | null } | null,
): Readonly<Record<string, unknown>> {
  const { payers, group } = call;
  const { messages, input, prompt } = call.body;
  return {
    id: call.id,
    trace_id: call.sessionId ?? call.id,
    session_id: call.sessionId,
    call_type: call.kind.callType,
    stream: call.stream,
    status: outcome.status,
    startTime: call.startedAt / 1_000,
    endTime: outcome.endedAt / 1_000,
    completionStartTime: (outcome.firstTokenAt ?? outcome.endedAt) / 1_000,
    response_time: (outcome.endedAt - call.startedAt) / 1_000,
    model: outcome.model ?? group.alias,
    model_group: group.alias,
    model_id: outcome.modelId ?? null,
    custom_llm_provider: outcome.provider ?? null,
    api_base: apiBase,
    response_id: outcome.responseId,
    response_cost: outcome.spend,
    saved_cache_cost: outcome.cacheHit ? outcome.saved : 0,
    prompt_tokens: outcome.promptTokens,
    completion_tokens: outcome.completionTokens,
    total_tokens: outcome.promptTokens + outcome.completionTokens,
    cache_read_input_tokens: outcome.cachedTokens,
    cache_creation_input_tokens: outcome.cacheWriteTokens,
    cache_hit: outcome.cacheHit,
    cache_key: outcome.cacheKey,
    request_tags: payers.tags,
    end_user: payers.endUser ?? "",
    requester_ip_address: call.requesterIp,
    metadata: { ...payersOf(call), ...outcome.metadata },
    error_str: failure?.message ?? null,
    error_information:
      failure === null
        ? null
        : {
            error_code: failure.type,
            error_message: failure.message,
            llm_provider: outcome.provider ?? null,
          },
    messages: content === null ? null : (messages ?? input ?? prompt ?? null),
    response: content?.response ?? null,
  };
}

function payersOf({
  payers,
  caller,
  requesterIp,
}: Call): Readonly<Record<string, unknown>> {
  const key = caller.kind === "key" ? caller : null;
  return {
    user_api_key_hash: payers.apiKey,
    user_api_key_alias: key?.alias ?? null,
    user_api_key_user_id: payers.userId,
    user_api_key_team_id: payers.teamId,
    user_api_key_team_alias: key?.team?.alias ?? null,
    user_api_key_org_id: payers.organizationId,
    user_api_key_end_user_id: payers.endUser,
    requester_ip_address: requesterIp,
  };
}
