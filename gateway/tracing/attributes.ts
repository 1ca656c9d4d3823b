/**
 * Attributes of spans: those of OpenTelemetry's GenAI conventions, and `hearth.*` for what they lack. The official constants
 * of the GenAI ones are in a module that takes 4 MB of memory; `attributes.test.ts` compares these names with it.
 */
export const GEN_AI = {
  conversationId: "gen_ai.conversation.id",
  inputMessages: "gen_ai.input.messages",
  operation: "gen_ai.operation.name",
  outputMessages: "gen_ai.output.messages",
  provider: "gen_ai.provider.name",
  requestMaxTokens: "gen_ai.request.max_tokens",
  requestModel: "gen_ai.request.model",
  requestStream: "gen_ai.request.stream",
  requestTemperature: "gen_ai.request.temperature",
  requestTopP: "gen_ai.request.top_p",
  responseId: "gen_ai.response.id",
  responseModel: "gen_ai.response.model",
  timeToFirstChunk: "gen_ai.response.time_to_first_chunk",
  cacheReadTokens: "gen_ai.usage.cache_read.input_tokens",
  cacheWriteTokens: "gen_ai.usage.cache_creation.input_tokens",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  sessionId: "session.id",
  userId: "user.id",
} as const;

/** Not in the conventions; Langfuse and others read the cost of a call from it, in dollars. */
export const COST = "gen_ai.usage.cost";

export const HEARTH = {
  attempt: "hearth.attempt",
  cache: "hearth.cache",
  callId: "hearth.call_id",
  clientDisconnected: "hearth.client_disconnected",
  cooldownUntil: "hearth.cooldown.until",
  deploymentId: "hearth.deployment.id",
  endUser: "hearth.end_user",
  estimated: "hearth.cost.estimated",
  fallback: "hearth.fallback",
  fallbacks: "hearth.fallbacks",
  keyAlias: "hearth.key.alias",
  pauseMs: "hearth.retry.pause_ms",
  retries: "hearth.retries",
  saved: "hearth.cost.saved",
  tags: "hearth.tags",
  teamId: "hearth.team.id",
} as const;
