import { z } from "zod";
import {
  dollars,
  budgetDuration,
  choice,
  clientParams,
  duration,
  durationOrNever,
  fallbacks,
  flag,
  groupAliases,
  headerPatterns,
  name,
  preload,
  price,
  extraBody,
  record,
  serverAddress,
  share,
  slots,
  text,
  texts,
  timezone,
  webAddress,
  weight,
  whole,
} from "./fields.ts";
import { PRICE_NAMES, SEARCH_PRICES } from "../pricing/price-fields.ts";

/** Sections and keys under Hearth's names; those of the other dialect are renamed before. */
export const SECTIONS = [
  "model_list",
  "router_settings",
  "proxy_settings",
  "general_settings",
  "guardrails",
  "jwt",
  "environment_variables",
] as const;

export const MAX_WORKERS = 64;

/** Without types: `pricesIn` reads them. */
const PRICES: object = {
  ...Object.fromEntries(PRICE_NAMES.map((each) => [each, price()])),
  [SEARCH_PRICES]: record("a mapping of sizes to dollars"),
};

/** Call parameters for which an entry may set defaults. */
const CALL_DEFAULTS = {
  temperature: z.unknown().optional(),
  top_p: z.unknown().optional(),
  top_k: z.unknown().optional(),
  max_tokens: whole(1),
  max_completion_tokens: whole(1),
  stop: z.unknown().optional(),
  seed: z.unknown().optional(),
  presence_penalty: z.unknown().optional(),
  frequency_penalty: z.unknown().optional(),
  reasoning_effort: z.unknown().optional(),
  thinking: z.unknown().optional(),
  response_format: z.unknown().optional(),
  dimensions: z.unknown().optional(),
  encoding_format: z.unknown().optional(),
  service_tier: z.unknown().optional(),
  keep_alive: z.unknown().optional(),
};
export const CALL_DEFAULT_NAMES = Object.keys(CALL_DEFAULTS);

export const providerParams = z.object({
  model: name(),
  custom_llm_provider: text(),
  api_base: serverAddress(),
  base_url: serverAddress(),
  api_key: text(),
  api_version: text(),
  litellm_credential_name: text(),
  organization: text(),
  rpm: whole(0),
  tpm: whole(0),
  weight: weight(),
  timeout: duration(),
  stream_timeout: duration(),
  idle_timeout: durationOrNever(),
  hedge_after: duration(),
  max_retries: whole(0, 10),
  num_retries: whole(0, 10),
  tags: texts(),
  tag_regex: headerPatterns(),
  guardrails: texts(),
  extra_headers: record("a mapping of header names to values"),
  headers: record("a mapping of header names to values"),
  extra_body: extraBody(),
  safety_settings: z.unknown().optional(),
  drop_params: flag(),
  additional_drop_params: texts(),
  cache: choice(["auto"]),
  local: flag(),
  slots: slots(),
  queue_limit: whole(0, 10_000),
  queue_timeout: duration(),
  cold_load_timeout: duration(),
  preload: preload(),
  configurable_clientside_auth_params: clientParams(),
  ...PRICES,
  ...CALL_DEFAULTS,
});

export const modelInfo = z.looseObject({
  id: name().optional(),
  team_id: name().optional(),
  team_public_model_name: name().optional(),
  public_address_only: flag(),
  mode: text(),
  base_model: text(),
  local: flag(),
  ...PRICES,
});

export const modelEntry = z.object({
  model_name: name(),
  provider_params: z.unknown().optional(),
  model_info: z.unknown().optional(),
});

export const routerSettings = z.object({
  routing_strategy: choice(
    [
      "usage-based-routing",
      "simple-shuffle",
      "least-busy",
      "latency-based-routing",
      "cost-based-routing",
    ],
    {
      "usage-based-routing-v2": "usage-based-routing",
      // Budgets of providers are checked with every strategy.
      "provider-budget-routing": "simple-shuffle",
    },
  ),
  allowed_fails: whole(0),
  cooldown_failure_ratio: share(),
  cooldown_minimum_calls: whole(1),
  cooldown_time: duration(),
  num_retries: whole(0, 10),
  timeout: duration(),
  fallbacks: fallbacks(),
  default_fallbacks: texts(),
  context_window_fallbacks: fallbacks(),
  content_policy_fallbacks: fallbacks(),
  model_group_alias: groupAliases(),
  enable_tag_filtering: flag(),
  tag_filtering_match_any: flag(),
  session_affinity: flag(),
  provider_budget_config: record("a mapping of providers to budgets"),
  runner_probe_interval: durationOrNever(),
  redis_host: text(),
  redis_port: whole(1, 65_535),
  redis_password: text(),
});

/** LiteLLM has two names for each. */
export const providerBudget = z.object({
  max_budget: dollars(),
  budget_limit: dollars(),
  budget_duration: budgetDuration(),
  time_period: budgetDuration(),
});

export const proxySettings = z.object({
  cache: flag(),
  cache_params: z.unknown().optional(),
  guardrails: z.unknown().optional(),
  max_budget: dollars(),
  budget_duration: budgetDuration(),
  request_timeout: duration(),
  connect_timeout: duration(),
  first_byte_timeout: duration(),
  idle_timeout: duration(),
  drop_params: flag(),
  litellm_headers: flag(),
  global_disable_no_log_param: flag(),
  callbacks: texts(),
  success_callback: texts(),
  failure_callback: texts(),
  litellm_metrics: flag(),
  prometheus_metrics_config: z.unknown().optional(),
  prometheus_exclude_metrics: texts(),
  prometheus_exclude_labels: texts(),
  enable_end_user_cost_tracking_prometheus_only: flag(),
  tracing: z.unknown().optional(),
  call_webhook: z.unknown().optional(),
  num_retries: whole(0, 10),
  allowed_fails: whole(0),
  cooldown_time: duration(),
  fallbacks: fallbacks(),
  default_fallbacks: texts(),
  context_window_fallbacks: fallbacks(),
  content_policy_fallbacks: fallbacks(),
});

export const tracingSettings = z.object({
  endpoint: webAddress(),
  headers: record("a mapping of header names to values"),
  service_name: text(),
  sample_ratio: share(),
  content: flag(),
  propagate: flag(),
});

export const callWebhookSettings = z.object({
  url: webAddress(),
  secret: text(),
  headers: record("a mapping of header names to values"),
  calls: choice(["all", "success", "failure"]),
  content: flag(),
});

/** Cache backends of LiteLLM that are replaced by memory, with a warning. */
export const FOREIGN_CACHES = [
  "disk",
  "s3",
  "gcs",
  "redis-semantic",
  "qdrant-semantic",
  "valkey-semantic",
  "azure-blob",
];

export const cacheParams = z.object({
  type: choice(["redis", "memory"], {
    local: "memory",
    ...Object.fromEntries(FOREIGN_CACHES.map((type) => [type, "memory"])),
  }),
  host: text(),
  port: whole(1, 65_535),
  password: text(),
  ttl: duration(),
  namespace: text(),
  supported_call_types: texts(),
  mode: choice(["default_on", "default_off"]),
  scope: choice(["tenant", "global"]),
});

export const generalSettings = z.object({
  master_key: text(),
  database_url: text(),
  database_connection_pool_limit: whole(1, 1_000),
  track_cost: flag(),
  track_spend: flag(),
  store_model_in_db: flag(),
  key_cache_seconds: duration(),
  budget_mode: choice(["admit-while-remaining", "strict"]),
  timezone: timezone(),
  fail_closed: flag(),
  prices_file: text(),
  store_prompts_in_spend_logs: flag(),
  store_responses: flag(),
  retention: z.unknown().optional(),
  maximum_spend_logs_retention_period: durationOrNever(),
  journal_sync: choice(["interval", "always"]),
  journal_limit_mb: whole(1),
  journal_keep: duration(),
  drain_timeout: duration(),
  workers: whole(1, MAX_WORKERS),
  max_request_size_mb: whole(1, 1_000),
  max_request_bodies_mb: whole(1, 100_000),
  max_websockets_per_key: whole(1, 100_000),
  trusted_proxies: texts(),
  cors_origins: texts(),
  metrics_key: text(),
  enable_jwt_auth: flag(),
  litellm_jwtauth: z.unknown().optional(),
  metrics_label_values: whole(1, 100_000),
});

export const retention = z.object({
  spend_logs: durationOrNever(),
  audit_logs: durationOrNever(),
  responses: durationOrNever(),
});

export type ProviderParams = z.output<typeof providerParams>;
export type ModelInfo = z.output<typeof modelInfo>;
export type RouterSettings = z.output<typeof routerSettings>;
export type ProxySettings = z.output<typeof proxySettings>;
export type TracingSettings = z.output<typeof tracingSettings>;
export type CallWebhookSettings = z.output<typeof callWebhookSettings>;
export type CacheParams = z.output<typeof cacheParams>;
export type GeneralSettings = z.output<typeof generalSettings>;
export type Retention = z.output<typeof retention>;
