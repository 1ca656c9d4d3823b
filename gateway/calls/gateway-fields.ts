import { type CallError, invalidParam } from "../http/errors.ts";
import { isRecord, listOf, recordOf } from "../../core/json.ts";
import type { CallBody } from "./body.ts";

/**
 * Fields of a body that are for the gateway: Hearth's own and those of LiteLLM, whose clients send them to any gateway.
 * None reaches a provider. Where a field is not named in `docs/litellm.md`, it has no effect.
 */
const GATEWAY_FIELDS = new Set([
  "fallbacks",
  "num_retries",
  "timeout",
  "priority",
  "cache",
  "tags",
  // Routing and retries
  "max_retries",
  "request_timeout",
  "stream_timeout",
  "force_timeout",
  "context_window_fallbacks",
  "content_policy_fallbacks",
  "context_window_fallback_dict",
  "default_fallbacks",
  "disable_fallbacks",
  "fallback_depth",
  "max_fallbacks",
  "fastest_response",
  "cooldown_time",
  "retry_policy",
  "retry_strategy",
  "specific_deployment",
  "model_group",
  "include_fallback_errors",
  "custom_llm_provider",
  "region_name",
  // Cache, logs and traces
  "caching",
  "caching_groups",
  "cache_key",
  "preset_cache_key",
  "no-log",
  "turn_off_message_logging",
  "logger_fn",
  "log_delegator",
  "callbacks",
  "success_callback",
  "failure_callback",
  "call_id",
  "id",
  "proxy_server_request",
  "secret_fields",
  "verbose",
  // Parameters of requests
  "drop_params",
  "additional_drop_params",
  "allowed_openai_params",
  "supports_system_message",
  "ensure_alternating_roles",
  "user_continue_message",
  "assistant_continue_message",
  "roles",
  "merge_reasoning_content_in_choices",
  "search_tool_name",
  "disable_add_transform_inline_image_block",
  "model_file_id_mapping",
  "prompt_label",
  "prompt_version",
  "prompt_variables",
  "final_prompt_value",
  "bos_token",
  "eos_token",
  "hf_model_name",
  "complete_response",
  "use_in_pass_through",
  "use_litellm_proxy",
  "guardrails",
  "disable_global_guardrail",
  "disable_global_guardrails",
  // Settings of deployments and keys
  "base_model",
  "model_info",
  "model_config",
  "rpm",
  "tpm",
  "weight",
  "max_parallel_requests",
  "max_budget",
  "budget_duration",
  "configurable_clientside_auth_params",
  "tiered_pricing",
  // Arguments of LiteLLM's own functions
  "acompletion",
  "aembedding",
  "aimg_generation",
  "atext_completion",
  "text_completion",
  "azure",
  "client",
  "use_client",
  "self",
  "shared_session",
  // Read by readClientAccess
  "api_key",
  "api_base",
  "base_url",
]);

/** LiteLLM's own fields and those for its callbacks, with the credentials of such services. */
const GATEWAY_PREFIX =
  /^(litellm|mock|langfuse|langsmith|humanloop|arize|phoenix|posthog|wandb|weave|gcs|lunary|braintrust)_/;
/** Prices are the operator's; a caller cannot set them. */
const PRICE = /_cost(_|$)/;

/** Whether a field of a body is for the gateway, not for a provider. */
function isGatewayField(name: string): boolean {
  return (
    GATEWAY_FIELDS.has(name) || GATEWAY_PREFIX.test(name) || PRICE.test(name)
  );
}

/** Whether a field says something to the gateway, or must not be sent: of a form, those are read as in a JSON body. */
export function isForGateway(name: string): boolean {
  return (
    name === "metadata" ||
    isGatewayField(name) ||
    reasonAgainst(name) !== undefined
  );
}

const OWN_CREDENTIALS =
  "the credentials of a provider belong in the gateway's configuration";
const OWN_MODELS = "models are those of `/v1/models`";
const NO_HEADERS = "headers of callers do not reach providers";

/** Fields whose omission would leave a call unprotected or answer another question than the one asked, and the reason. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  guardrail_config: "name configured guardrails in `guardrails` instead",
  policies: "this gateway has no policies, and the call would be unguarded",
  allowed_model_region: "name a model of that region instead",
  prompt_id: "there are no stored prompts; send the messages instead",
  user_config: OWN_MODELS,
  model_list: OWN_MODELS,
  extra_headers: NO_HEADERS,
  headers: NO_HEADERS,
  provider_specific_header: NO_HEADERS,
  extra_body: "send its fields in the body itself",
  litellm_credential_name: OWN_CREDENTIALS,
  api_version: OWN_CREDENTIALS,
  tenant_id: OWN_CREDENTIALS,
  client_id: OWN_CREDENTIALS,
  client_secret: OWN_CREDENTIALS,
};
/** Access to a provider's account: `aws_access_key_id`, `azure_ad_token`, `vertex_credentials`, … */
const ACCOUNT = /^(aws|azure|vertex|watsonx|oci|sagemaker)_/;

/** Whether a field of a chat has parameters of Gemini's own, as Google documents it: https://ai.google.dev/gemini-api/docs/openai */
function isGeminis(name: string, value: unknown): boolean {
  return (
    name === "extra_body" &&
    isRecord(recordOf(value)["google"]) &&
    Object.keys(recordOf(value)).length === 1
  );
}

/** Throws 400 for a field that the gateway does not support and must not ignore; empty values are ignored. */
export function rejectUnsupportedFields(
  body: CallBody,
  callType: string,
): void {
  for (const [name, value] of Object.entries(body)) {
    const reason = reasonAgainst(name);
    const isMeant = callType === "acompletion" && isGeminis(name, value);
    if (reason !== undefined && !isMeant && !isEmpty(value)) {
      throw unsupported(name, reason);
    }
  }
  for (const place of ["metadata", "litellm_metadata"]) {
    const inner = recordOf(body[place]);
    for (const name of ["guardrail_config", "policies"]) {
      if (!isEmpty(inner[name])) {
        throw unsupported(`${place}.${name}`, reasonAgainst(name) ?? "");
      }
    }
  }
}

function reasonAgainst(name: string): string | undefined {
  if (Object.hasOwn(UNSUPPORTED, name)) {
    return UNSUPPORTED[name];
  }
  return ACCOUNT.test(name) ? OWN_CREDENTIALS : undefined;
}

function unsupported(field: string, reason: string): CallError {
  return invalidParam(field, `is not supported: ${reason}. Omit it.`);
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) {
    return value.length === 0;
  }
  return isRecord(value)
    ? Object.keys(value).length === 0
    : value === undefined || value === null || value === false || value === "";
}

/** The body without fields for the gateway, and without those of `additional_drop_params`; the same object if there are none. */
export function providerBody(body: CallBody): CallBody {
  const dropped = new Set(listOf(body["additional_drop_params"]));
  return bodyWithout(
    body,
    (name) =>
      isGatewayField(name) ||
      (reasonAgainst(name) !== undefined && !isGeminis(name, body[name])) ||
      dropped.has(name),
  );
}

/** The body without certain fields, but always with its model; the same object if it has none of them. */
export function bodyWithout(
  body: CallBody,
  isDropped: (name: string) => boolean,
): CallBody {
  const isSent = (name: string) => name === "model" || !isDropped(name);
  return Object.keys(body).every(isSent)
    ? body
    : ({
        ...Object.fromEntries(
          Object.entries(body).filter(([name]) => isSent(name)),
        ),
        model: body.model,
      } satisfies CallBody);
}
