/**
 * What to write instead of LiteLLM's settings that have no effect here, and what is in force without them:
 * https://docs.litellm.ai/docs/proxy/config_settings. With a section before the name it is about the setting of that section only, and
 * with a star at its end about all that begin so.
 */
const ALTERNATIVES: ReadonlyMap<string, string> = new Map(
  (
    [
      [
        "set it on users, teams and keys when they are created: their limits apply to every call",
        [
          "default_internal_user_params",
          "default_max_internal_user_budget",
          "default_soft_budget",
          "default_key_generate_params",
          "default_team_params",
          "default_team_settings",
          "internal_user_budget_duration",
          "max_internal_user_budget",
          "max_user_budget",
          "upperbound_key_generate_params",
          "personal_key_model_access_from_teams",
        ],
      ],
      [
        "users create keys for themselves, members of a team as its `team_member_permissions` say",
        [
          "key_generation_settings",
          "disable_key_generate_for_org_admin",
          "default_team_disabled",
          "self_serve_budget_policy",
        ],
      ],
      [
        "give end users a tier with POST /customer/new",
        ["max_end_user_budget", "max_end_user_budget_id"],
      ],
      [
        "give tags a budget with POST /tag/new",
        ["tag_budget_config", "extra_spend_tag_headers"],
      ],
      [
        "a key names the header of its end users in `metadata.end_user_header`",
        ["user_header_name", "user_header_mappings"],
      ],
      [
        "calls are not checked for parameters that must be set",
        [
          "enforce_user_param",
          "enforced_params",
          "service_account_settings",
          "missing_session_id",
          "validate_end_user_id_in_db",
        ],
      ],
      [
        "only virtual keys and the tokens of the section `jwt` are accepted",
        [
          "custom_auth",
          "custom_auth_settings",
          "allow_user_auth",
          "enable_oauth2_auth",
          "enable_oauth2_proxy_auth",
          "oauth2_config_mappings",
        ],
      ],
      [
        "people sign in to the console (docs/sign-in.md)",
        [
          "custom_sso",
          "ui_access_mode",
          "auto_redirect_ui_login_to_sso",
          "disable_env_credential_login",
          "disable_password_login_when_sso_enabled",
          "failed_login_block_seconds",
          "failed_login_window_seconds",
          "max_failed_login_attempts_per_source",
          "password_policy_require_uppercase",
          "control_plane_url",
          "custom_ui_sso_sign_in_handler",
          "max_ui_session_budget",
          "password_policy_*",
        ],
      ],
      [
        "Python code is not loaded: use guardrails, or a proxy in front of the gateway",
        [
          "custom_auth_run_common_checks",
          "custom_key_generate",
          "custom_key_policy",
          "custom_key_update",
          "custom_team_metadata_validate",
          "post_call_rules",
          "pre_call_rules",
          "custom_provider_map",
          "plugins",
        ],
      ],
      [
        "calls are accepted from every address; restrict addresses in the firewall or the proxy in front",
        ["allowed_ips"],
      ],
      ["block end users with POST /customer/block", ["blocked_user_list"]],
      [
        "set up guardrails (docs/guardrails.md)",
        [
          "banned_keywords_list",
          "guardrail_name_config_map",
          "llamaguard_model_name",
          "llamaguard_unsafe_content_categories",
          "llm_guard_mode",
          "openai_moderations_model_name",
          "output_parse_pii",
          "presidio_ad_hoc_recognizers",
          "router_settings.guardrail_list",
          "presidio_logging_only",
          "skip_system_message_in_guardrail",
          "skip_tool_message_in_guardrail",
          "policies",
          "policy_attachments",
        ],
      ],
      [
        "tags that callers send count, too",
        ["reject_clientside_metadata_tags", "request_tag_mappings"],
      ],
      [
        "calls of models without a price are answered; GET /health shows their deployments as `unpriced`",
        ["block_requests_for_models_without_pricing"],
      ],
      [
        "set `allowed_routes` or `key_type` on keys",
        [
          "allowed_routes",
          "admin_only_routes",
          "public_routes",
          "role_permissions",
          "enforce_rbac",
        ],
      ],
      [
        "a key is read from x-litellm-api-key, Authorization, x-api-key, api-key or x-goog-api-key",
        ["litellm_key_header_name"],
      ],
      [
        "provider keys are variables (`os.environ/NAME`), files (NAME_FILE) or stored encrypted with POST /model/new",
        [
          "key_management_system",
          "key_management_settings",
          "use_azure_key_vault",
          "use_google_kms",
        ],
      ],
      [
        "set `api_key: os.environ/NAME` in each model, or use credentials with POST /model/new",
        ["credential_list", "litellm_credentials"],
      ],
      [
        "known keys are served without the database",
        ["allow_requests_on_db_unavailable", "database_connection_timeout"],
      ],
      [
        "every call is a row of the ledger",
        [
          "disable_spend_logs",
          "disable_spend_updates",
          "disable_error_logs",
          "disable_end_user_cost_tracking",
          "proxy_batch_write_at",
          "use_redis_transaction_buffer",
          "disable_budget_reservation",
          "use_spend_logs_ledger",
        ],
      ],
      [
        "`tpm_limit` counts the tokens of input and output",
        ["token_rate_limit_type"],
      ],
      [
        "windows of budgets end by the calendar, without a job",
        [
          "disable_reset_budget",
          "proxy_budget_rescheduler_max_time",
          "proxy_budget_rescheduler_min_time",
          "budget_rollover",
        ],
      ],
      [
        "prompts are stored only with `general_settings.store_prompts_in_spend_logs` and sent only with `content: true`",
        [
          "turn_off_message_logging",
          "redact_user_api_key_info",
          "spend_logs_prompt_storage",
          "log_raw_request_response",
          "redact_messages_in_exceptions",
        ],
      ],
      [
        "every row of the ledger has the address of its caller; set `maximum_spend_logs_retention_period`",
        ["disable_requester_ip_address_logging"],
      ],
      [
        "expired rows are deleted regularly",
        [
          "maximum_spend_logs_retention_interval",
          "maximum_autorouter_session_retention_period",
          "maximum_daily_tag_spend_retention_period",
          "maximum_health_check_retention_period",
          "maximum_spend_logs_size",
          "maximum_spend_logs_size_check_interval",
          "use_spend_logs_partitioning",
          "maximum_spend_logs_cleanup_*",
        ],
      ],
      [
        "the supervisor sends alerts and reports (docs/operate.md)",
        [
          "alert_to_webhook_url",
          "alert_types",
          "alerting",
          "alerting_args",
          "alerting_config",
          "alerting_threshold",
          "spend_report_frequency",
          "alert_type_config",
          "default_key_max_budget_alert_emails",
          "email",
        ],
      ],
      [
        "GET /health checks the models when it is called",
        [
          "background_health_checks",
          "background_health_check_model_groups",
          "health_check_skip_disabled_background_models",
          "enable_health_check_routing",
          "use_shared_health_check",
          "health_check_*",
        ],
      ],
      [
        "the log is JSON, at one level",
        ["debug_level", "json_logs", "set_verbose"],
      ],
      [
        "list the addresses of the proxies in `general_settings.trusted_proxies`",
        ["trusted_proxy_ranges", "use_x_forwarded_for"],
      ],
      [
        "GET /metrics requires a key that may read everything, or `general_settings.metrics_key`",
        ["require_auth_for_metrics_endpoint"],
      ],
      [
        "certificates are always checked; NODE_EXTRA_CA_CERTS names further authorities",
        [
          "ssl_certificate",
          "ssl_verify",
          "ssl_ecdh_curve",
          "ssl_security_level",
        ],
      ],
      [
        "only anthropic-version and anthropic-beta of a client are sent to providers; set `extra_headers` in models",
        [
          "forward_client_headers_to_llm_api",
          "forward_openai_org_id",
          "add_user_information_to_llm_headers",
          "model_group_settings",
          "proxy_settings.headers",
        ],
      ],
      [
        "there are no pass-through routes",
        [
          "pass_through_endpoints",
          "use_client_credentials_pass_through_routes",
          "provider_params.use_in_pass_through",
          "enable_openai_websocket_passthrough",
          "pass_through_request_timeout",
          "passthrough_managed_object_ids",
        ],
      ],
      [
        "set the rate limits of keys, users and teams, or `rpm` and `tpm` in models",
        [
          "global_max_parallel_requests",
          "general_settings.max_parallel_requests",
          "router_settings.default_max_parallel_requests",
          "provider_params.default_api_key_rpm_limit",
          "provider_params.default_api_key_tpm_limit",
          "provider_params.itpm",
          "provider_params.otpm",
          "provider_params.rpd",
          "provider_params.tpd",
        ],
      ],
      [
        "set `max_parallel_requests` on keys, users and teams, `slots` in models of local runners",
        [
          "admission_queue_timeout_seconds",
          "max_in_flight_requests_per_worker",
          "max_queued_requests_per_worker",
        ],
      ],
      [
        "set `slots` in models of local runners, `rpm` in others",
        ["provider_params.max_parallel_requests"],
      ],
      [
        "set `provider_budget_config` in `router_settings`, or budgets on keys and teams",
        ["provider_params.max_budget", "provider_params.budget_duration"],
      ],
      [
        "deployments of an alias are chosen by `weight` and the routing strategy",
        ["provider_params.order", "router_settings.weights"],
      ],
      [
        "prices are those of the provider: set those of a model in its parameters",
        ["cost_discount_config", "cost_margin_config"],
      ],
      [
        "`num_retries` applies to all errors that can be retried",
        [
          "model_group_retry_policy",
          "retry_after",
          "retry_policy",
          "num_retries_per_request",
        ],
      ],
      [
        "`allowed_fails` counts all failures of a deployment",
        ["allowed_fails_policy", "disable_cooldowns"],
      ],
      [
        "`context_window_fallbacks` follow the provider's answer that a prompt is too long",
        ["enable_pre_call_checks"],
      ],
      [
        "a user's budget counts the calls of a team's key once the membership is accepted (POST /team/member_accept)",
        ["apply_user_budget_to_team_keys"],
      ],
      [
        "with `general_settings.fail_closed` calls are rejected while limits cannot be checked",
        [
          "fail_closed_budget_enforcement",
          "fail_closed_rate_limit_enforcement",
        ],
      ],
      [
        "each fallback is checked against the models of the key",
        [
          "enforce_fallback_model_access",
          "fallback_access_check",
          "fallback_budget_check",
        ],
      ],
      [
        "callers send `return_wildcard_routes` with GET /v1/models",
        ["return_wildcard_routes"],
      ],
      [
        "callers send `ready=true` with GET /v1/models",
        ["model_list_healthy_only"],
      ],
      [
        "errors have the header x-hearth-call-id",
        ["include_call_id_in_error_body"],
      ],
      [
        "write options of the connection into DATABASE_URL",
        [
          "database_args",
          "database_connect_timeout",
          "database_disable_prepared_statements",
          "database_extra_connection_params",
          "database_max_idle_connection_lifetime",
          "database_socket_timeout",
          "database_type",
          "database_connection_pool_timeout",
        ],
      ],
      [
        "the answers to cache are set in `cache_params`",
        [
          "router_settings.cache_responses",
          "router_settings.caching_groups",
          "caching",
          "caching_with_models",
          "cache_kwargs",
        ],
      ],
      ["a call takes at most five fallbacks", ["max_fallbacks"]],
      ["the window of a strategy is fixed", ["routing_strategy_args"]],
      [
        "`session_affinity` keeps the calls of a session at one deployment; budgets of providers are always checked",
        [
          "deployment_affinity_ttl_seconds",
          "optional_pre_call_checks",
          "model_group_affinity_config",
          "session_affinity_repin_on_failover",
        ],
      ],
      [
        "set `stream_timeout` in each model",
        [
          "router_settings.stream_timeout",
          "provider_params.timeout_by_service_tier",
          "provider_params.stream_timeout_by_service_tier",
        ],
      ],
      [
        "set it in each model",
        [
          "default_litellm_params",
          "proxy_settings.default_params",
          "proxy_settings.anthropic_key",
          "proxy_settings.azure_key",
          "proxy_settings.groq_key",
          "proxy_settings.openai_key",
          "proxy_settings.openrouter_key",
          "proxy_settings.api_key",
          "proxy_settings.organization",
          "proxy_settings.project",
          "proxy_settings.max_tokens",
          "proxy_settings.vertex_project",
          "proxy_settings.vertex_location",
        ],
      ],
      [
        "set the variable REDIS_URL, with rediss:// for TLS",
        [
          "redis_url",
          "cache_params.ssl",
          "cache_params.url",
          "coordination_redis",
          "router_settings.redis_db",
          "cache_params.redis_startup_nodes",
        ],
      ],
      ["use `model_group_alias` of `router_settings`", ["model_alias_map"]],
      [
        "set `rpm_limit` and `tpm_limit` on keys and teams",
        ["priority_reservation", "priority_reservation_settings"],
      ],
      ["no telemetry is sent", ["telemetry"]],
      [
        "clients get the reasoning as `reasoning_content`",
        ["merge_reasoning_content_in_choices"],
      ],
      [
        "Messages reach OpenAI's models as chats, unless a model takes only Responses",
        ["use_chat_completions_url_for_anthropic_messages"],
      ],
      [
        "set `supports_responses: false` in `model_info`",
        ["provider_params.use_chat_completions_api"],
      ],
      [
        "write prices of long calls such as `input_cost_per_token_above_128k_tokens`",
        ["tiered_pricing"],
      ],
      ["set `api_key`: Entra ID is not used", ["provider_params.azure_*"]],
      ["set `timeout`", ["provider_params.request_timeout"]],
      ["move it to `model_info`", ["provider_params.supports_*"]],
      [
        "a call goes to one deployment at a time",
        ["provider_params.silent_model"],
      ],
      [
        "set LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY and LANGFUSE_HOST in the environment (docs/tracing.md)",
        ["proxy_settings.langfuse_*"],
      ],
      [
        "a deployment that is not valid fails the start, and names the line",
        ["router_settings.ignore_invalid_deployments"],
      ],
      [
        "callers send `priority`, for local runners",
        [
          "router_settings.default_priority",
          "router_settings.polling_interval",
        ],
      ],
      ["list the models in `model_list`", ["infer_model_from_keys"]],
      [
        "reload the file with POST /config/reload or SIGHUP",
        ["proxy_config_reload_interval_seconds"],
      ],
      [
        "set `api_base` and `api_version` in each model",
        ["proxy_settings.api_base", "proxy_settings.api_version"],
      ],
      [
        "every change of an admin is in the audit log (GET /audit)",
        ["store_audit_logs", "audit_log_callbacks"],
      ],
      [
        "there are no MCP servers, agents, skills, vector stores, files, batches, search tools or prompts",
        [
          "files_settings",
          "finetune_settings",
          "prompts",
          "search_tools",
          "allowed_file_extensions",
          "blocked_file_extensions",
          "max_batch_file_records",
          "max_batch_file_size_mb",
          "max_batch_file_uploads_per_day",
          "max_file_downloads_per_minute",
          "max_file_size_mb",
          "search_tool_deny_by_default",
          "vector_store_deny_by_default",
          "assistants_config",
          "disable_batch_input_file_rate_limiting",
          "enable_mcp_registry",
          "public_mcp_servers",
          "require_end_user_mcp_access_defined",
          "require_key_mcp_access_defined",
          "user_mcp_management_mode",
          "mcp_*",
          "vector_store_*",
          "agent_access_default_deny",
          "skill_scanner",
          "public_agent_groups",
          "public_skills_index",
          "agents",
          "agent_list",
          "assistant_settings",
          "sandbox_tools",
        ],
      ],
      [
        "answers are cached in memory or in Redis, for equal calls",
        [
          "cache_params.disk_cache_dir",
          "cache_params.similarity_threshold",
          "cache_params.azure_*",
          "cache_params.gcs_*",
          "cache_params.qdrant_*",
          "cache_params.redis_semantic_*",
          "cache_params.s3_*",
          "cache_params.semantic_cache_*",
          "cache_params.valkey_*",
        ],
      ],
      [
        "set `ttl` in `cache_params`",
        ["default_in_memory_ttl", "default_in_redis_ttl", "default_redis_ttl"],
      ],
      [
        "changes of keys are in effect within a second; `key_cache_seconds` is how long known keys are served without the database",
        [
          "user_api_key_cache_ttl",
          "user_api_key_cache_max_size",
          "enable_redis_auth_cache",
        ],
      ],
      [
        "a call over a budget is a 400",
        ["budget_exceeded_status_code", "budget_exceeded_throttle_percentage"],
      ],
      [
        "names of keys are not checked",
        ["enable_key_alias_format_validation", "key_alias_pattern"],
      ],
      [
        "metadata of teams is not checked",
        [
          "team_metadata_schema",
          "team_metadata_validation_error_message",
          "team_metadata_validation_timeout",
        ],
      ],
      ["an answer of a provider may have 256 MiB", ["max_response_size_mb"]],
      [
        "answers are not compared with their schema",
        ["enable_json_schema_validation"],
      ],
      [
        "addresses in messages are read by the provider, not by the gateway",
        ["user_url_allowed_hosts", "user_url_validation"],
      ],
      [
        "set `configurable_clientside_auth_params` in models",
        [
          "allow_client_side_credentials",
          "provider_url_destination_allowed_hosts",
        ],
      ],
      [
        "all models and credentials of the database are served",
        ["supported_db_objects"],
      ],
      [
        "callers name the model in each call",
        [
          "completion_model",
          "default_model",
          "router_settings.default_deployment",
          "routing_groups",
          "provider_params.adaptive_router_*",
          "provider_params.auto_router_*",
          "provider_params.complexity_router_*",
          "provider_params.quality_router_*",
        ],
      ],
      ["messages are translated as each provider requires", ["modify_params"]],
      [
        "Ollama does not take it in calls of OpenAI's API: set it in a Modelfile (`PARAMETER num_ctx 16384`), or the context of all models with OLLAMA_CONTEXT_LENGTH where Ollama runs",
        [
          "provider_params.num_ctx",
          "provider_params.num_gpu",
          "provider_params.num_thread",
          "provider_params.mirostat*",
          "provider_params.options",
          "provider_params.repeat_*",
          "provider_params.tfs_z",
        ],
      ],
      [
        "set `reasoning_effort`: `none` turns thinking off",
        ["provider_params.think"],
      ],
      [
        "parameters that a provider accepts are passed on",
        ["provider_params.allowed_openai_params"],
      ],
      [
        "set `cache: auto` in models of Anthropic, or let callers send `cache_control`",
        [
          "anthropic_prompt_caching_ttl",
          "enable_anthropic_prompt_caching",
          "provider_params.cache_control_injection_points",
        ],
      ],
      [
        "callers send `stream_options`",
        ["always_include_stream_usage", "include_cost_in_streaming_usage"],
      ],
      [
        "callers send `mock_response`, with a key that `metadata.allow_client_mock_response` permits it",
        ["provider_params.mock_response"],
      ],
      [
        "write it beside the parameters of the model",
        ["provider_params.model_info"],
      ],
      [
        "a response is read and continued by its owner alone",
        ["allow_unmanaged_response_ids", "disable_responses_id_security"],
      ],
      [
        "the master key is PROXY_MASTER_KEY, and required",
        ["dangerously_permit_weak_or_unset_master_key"],
      ],
      [
        "the models of a key are listed by GET /v1/models, which requires it",
        [
          "enable_public_model_hub",
          "public_model_groups",
          "public_model_groups_links",
        ],
      ],
      [
        "set `tracing` or `call_webhook` (docs/tracing.md)",
        [
          "aws_sqs_callback_params",
          "callback_settings",
          "cold_storage_custom_logger",
          "datadog_llm_observability_params",
          "datadog_params",
          "generic_logger_headers",
          "input_callback",
          "langfuse_default_tags",
          "newrelic_params",
          "otel",
          "pointfive_params",
          "s3_audit_callback_params",
          "s3_callback_params",
          "service_callback",
          "standard_logging_payload_excluded_fields",
          "zerobus_params",
        ],
      ],
      [
        "a chosen `key` is accepted from 20 characters on",
        ["disable_custom_api_keys"],
      ],
      ["switch the model off with POST /model/block", ["model_info.blocked"]],
      ["set `rpm` of its parameters", ["model_info.team_model_rpm_limit"]],
      ["set `tpm` of its parameters", ["model_info.team_model_tpm_limit"]],
      [
        "a model is served at all times; list it in `models` of the keys and teams that may call it",
        ["model_info.access_windows", "model_info.discoverable"],
      ],
      [
        "deployments of an alias that lack an endpoint are called with a translation, or answer 400",
        ["model_info.enforce_supported_endpoints"],
      ],
      [
        "set it in `router_settings`, for all models",
        ["model_info.enable_tag_filtering"],
      ],
      [
        "clients split their inputs themselves",
        ["model_info.max_embedding_batch_size"],
      ],
    ] as const
  ).flatMap(([text, names]) =>
    names.map((name): readonly [string, string] => [name, text]),
  ),
);

/** Those of a family, by what their names begin with. */
const FAMILIES = [...ALTERNATIVES]
  .filter(([name]) => name.endsWith("*"))
  .map(([name, text]) => [name.slice(0, -1), text] as const);

/** What to do instead of a setting of LiteLLM's that has no effect; undefined: not one of those. `path` is under Hearth's names. */
export function alternativeOf(
  path: readonly (string | number)[],
): string | undefined {
  const name = String(path.at(-1));
  const names = [`${String(path.at(-2))}.${name}`, name];
  const [alternative] = names.flatMap((one) => ALTERNATIVES.get(one) ?? []);
  return (
    alternative ??
    FAMILIES.find(([start]) => names.some((one) => one.startsWith(start)))?.[1]
  );
}
