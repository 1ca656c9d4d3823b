/** Labels by which calls are counted; each has a value in every record. */
export const CALL_LABELS = [
  "hashed_api_key",
  "api_key_alias",
  "team",
  "team_alias",
  "user",
  "end_user",
  "org_id",
  "requested_model",
  "model_group",
  "model",
  "litellm_model_name",
  "model_id",
  "api_base",
  "api_provider",
  "route",
  "status_code",
  "exception_status",
  "exception_class",
  "fallback_model",
] as const;

export type CallLabel = (typeof CALL_LABELS)[number];

/** Every label of the metrics below. */
export const LABELS = [...CALL_LABELS, "org_alias"] as const;

export type Label = (typeof LABELS)[number];

const KEY = ["hashed_api_key", "api_key_alias"] as const;
const TEAM = ["team", "team_alias"] as const;
const CALLER = [...KEY, ...TEAM, "user", "end_user", "org_id"] as const;
const EXCEPTION = ["exception_status", "exception_class"] as const;
const MODEL = ["model", "model_id", "api_provider"] as const;
const DEPLOYMENT = [
  "litellm_model_name",
  "model_id",
  "api_base",
  "api_provider",
] as const;

const USAGE = [...CALLER, "requested_model", ...MODEL] as const;
const CACHE = [...CALLER, ...MODEL] as const;
const LATENCY = [
  ...CALLER,
  "requested_model",
  "model_group",
  ...MODEL,
] as const;
const OF_PROVIDER = ["model_group", ...DEPLOYMENT, ...KEY] as const;
const RESPONSES = [
  "model_group",
  "requested_model",
  ...DEPLOYMENT,
  ...KEY,
  ...TEAM,
] as const;
const FALLBACKS = [
  "requested_model",
  "fallback_model",
  ...KEY,
  ...TEAM,
  ...EXCEPTION,
  "model_id",
] as const;
const ORGANIZATION = ["org_id", "org_alias"] as const;

/**
 * LiteLLM's metrics that exist here, without the suffix `_total` of counters, and their labels. Names and labels are those of
 * LiteLLM's documentation (docs.litellm.ai/docs/proxy/prometheus) and of its package (`types/integrations/prometheus.py`).
 */
export const METRIC_LABELS = {
  litellm_proxy_total_requests_metric: [
    ...CALLER,
    "requested_model",
    "status_code",
    "route",
    "model_id",
    "api_provider",
  ],
  litellm_proxy_failed_requests_metric: [
    ...CALLER,
    "requested_model",
    ...EXCEPTION,
    "route",
    "model_id",
    "api_provider",
  ],
  litellm_llm_api_failed_requests_metric: [...CALLER, "model", "model_id"],
  litellm_requests_metric: USAGE,
  litellm_spend_metric: USAGE,
  litellm_total_tokens_metric: USAGE,
  litellm_input_tokens_metric: USAGE,
  litellm_output_tokens_metric: USAGE,
  litellm_input_cached_tokens_metric: USAGE,
  litellm_input_cache_creation_tokens_metric: USAGE,
  litellm_input_audio_tokens_metric: USAGE,
  litellm_output_audio_tokens_metric: USAGE,
  litellm_output_reasoning_tokens_metric: USAGE,
  litellm_images_generated_metric: USAGE,
  litellm_cache_hits_metric: CACHE,
  litellm_cache_misses_metric: CACHE,
  litellm_cached_tokens_metric: CACHE,
  litellm_provider_cache_read_input_tokens_metric: CACHE,
  litellm_provider_cache_creation_input_tokens_metric: CACHE,
  litellm_request_total_latency_metric: LATENCY,
  litellm_llm_api_latency_metric: LATENCY,
  litellm_llm_api_time_to_first_token_metric: LATENCY,
  litellm_overhead_latency_metric: OF_PROVIDER,
  litellm_remaining_requests_metric: OF_PROVIDER,
  litellm_remaining_tokens_metric: OF_PROVIDER,
  // The same under the names that LiteLLM's dashboard "LiteLLM Prod v2" queries.
  litellm_remaining_requests: OF_PROVIDER,
  litellm_remaining_tokens: OF_PROVIDER,
  litellm_deployment_latency_per_output_token: [
    "model_group",
    ...DEPLOYMENT,
    ...KEY,
    ...TEAM,
  ],
  litellm_deployment_total_requests: RESPONSES,
  litellm_deployment_success_responses: RESPONSES,
  litellm_deployment_failure_responses: [...RESPONSES, ...EXCEPTION],
  litellm_deployment_cooled_down: [...DEPLOYMENT, "exception_status"],
  litellm_deployment_state: DEPLOYMENT,
  litellm_deployment_tpm_limit: ["model_group", ...DEPLOYMENT],
  litellm_deployment_rpm_limit: ["model_group", ...DEPLOYMENT],
  litellm_deployment_successful_fallbacks: FALLBACKS,
  litellm_deployment_failed_fallbacks: FALLBACKS,
  litellm_remaining_api_key_budget_metric: KEY,
  litellm_api_key_max_budget_metric: KEY,
  litellm_api_key_budget_remaining_hours_metric: KEY,
  litellm_remaining_team_budget_metric: TEAM,
  litellm_team_max_budget_metric: TEAM,
  litellm_team_budget_remaining_hours_metric: TEAM,
  litellm_remaining_user_budget_metric: ["user"],
  litellm_user_max_budget_metric: ["user"],
  litellm_user_budget_remaining_hours_metric: ["user"],
  litellm_remaining_org_budget_metric: ORGANIZATION,
  litellm_org_max_budget_metric: ORGANIZATION,
  litellm_org_budget_remaining_hours_metric: ORGANIZATION,
  litellm_remaining_customer_budget_metric: ["end_user"],
  litellm_customer_max_budget_metric: ["end_user"],
  litellm_customer_budget_remaining_hours_metric: ["end_user"],
  litellm_provider_remaining_budget_metric: ["api_provider"],
  litellm_team_members_metric: TEAM,
  litellm_in_flight_requests: [],
  litellm_total_users: [],
  litellm_teams_count: [],
} as const satisfies Readonly<Record<string, readonly Label[]>>;

export type Metric = keyof typeof METRIC_LABELS;
