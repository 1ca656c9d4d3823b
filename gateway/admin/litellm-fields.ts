/**
 * Fields that LiteLLM's admin routes take and Hearth does not use. Clients of LiteLLM send them, often empty.
 * Documented in docs/litellm.md.
 */

/** Accepted with any value: ignoring them grants no rights and saves no cost. */
const UNUSED: ReadonlySet<string> = new Set([
  "auto_rotate",
  "budget_reset_at",
  "config",
  "default_estimated_output_tokens",
  "default_estimated_output_tokens_per_model",
  "disable_global_guardrails",
  "enable_prompt_caching",
  "expand",
  "include_created_by_keys",
  "model_info",
  "prompts",
  "router_settings",
  "rotation_interval",
  "rpm_limit_type",
  "secret_manager_settings",
  "send_invite_email",
  "throttle_on_budget_exceeded",
  "timezone",
  "tpm_limit_type",
]);

/** Each restricts, protects, charges or selects rows in LiteLLM: accepted while empty, else rejected. */
const MISSED: Readonly<Record<string, string>> = {
  access_agent_ids: "there are no agents",
  access_group_ids: "set it on keys or teams",
  access_mcp_server_ids: "there are no MCP servers",
  access_skill_names: "there are no skills",
  additional: "the parameters of a model belong in `litellm_params`",
  admins: "use `members_with_roles`",
  agent_id: "there are no agents",
  aliases: "set it on keys, of a team `model_aliases`",
  allowed_cache_controls: "callers say Cache-Control themselves",
  allowed_model_region: "use `models` and an alias for each region",
  allowed_models: "use `models`, for a member POST /team/member_update",
  allowed_passthrough_routes: "there are no pass-through routes",
  allowed_vector_store_indexes: "there are no vector stores",
  blocked:
    "block its keys with POST /key/block, a model with POST /model/block",
  budget_fallbacks: "calls over their budget are rejected",
  budget_limits: "use `model_max_budget` of its keys",
  default_model: "callers name the model themselves",
  default_team_member_models:
    "set `allowed_models` of a member with POST /team/member_update",
  denied_passthrough_routes: "there are no pass-through routes",
  duration: "set it on keys",
  end_user_budget_id: "give the end user a tier with POST /customer/update",
  enforced_batch_output_expires_after: "there are no batches",
  enforced_file_expires_after: "there are no files",
  enforced_params: "there are no enforced parameters",
  guardrails: "set it on keys or teams",
  key_alias: "set it on keys",
  max_budget_in_organization: "give the user a budget with POST /user/update",
  mcp_rpm_limit: "there are no MCP servers",
  mcp_tool_permissions: "there are no MCP servers",
  members: "use `members_with_roles`",
  model_max_budget: "set it on its keys",
  model_rpm_limit: "set it on its keys",
  model_tpm_limit: "set it on its keys",
  models: "set it on keys, users or teams",
  new_master_key:
    "run `hearth rotate master`, on two hosts `npm run deploy -- rotate master`",
  object_permission: "there are no MCP servers, agents or vector stores",
  password: "people sign in with their keys",
  permissions: "set it on its keys",
  policies: "there are no policies",
  project_id: "there are no projects",
  require_trace_id: "callers name the session themselves",
  spend: "set it with the route that updates",
  tag_rpm_limit: "set `rpm_limit` on the tag with POST /tag/update",
  team_id: "use `teams`",
  team_member_key_duration: "set `duration` on each key",
  team_member_model_max_budget: "set `model_max_budget` on each key",
  temp_budget_expiry: "set it on keys",
  temp_budget_increase: "set it on keys",
  tpd_limit: "use `tpm_limit` or a budget",
};

/** What to do instead of sending a field of LiteLLM's with a value; null: not such a field, or nothing is lost. */
export function insteadOf(field: string, value: unknown): string | null {
  return isEmpty(value) || !Object.hasOwn(MISSED, field)
    ? null
    : (MISSED[field] ?? null);
}

/** Whether a field that a route does not take may be sent anyway. */
export function isLitellmField(field: string): boolean {
  return UNUSED.has(field) || Object.hasOwn(MISSED, field);
}

/** For the documents: names, sorted, with what to do instead where a value would be lost. */
export const LITELLM_FIELDS: readonly {
  readonly field: string;
  readonly instead: string | null;
}[] = [
  ...[...UNUSED].map((field) => ({ field, instead: null })),
  ...Object.entries(MISSED).map(([field, instead]) => ({ field, instead })),
].sort((one, other) => one.field.localeCompare(other.field));

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined) {
    return true;
  }
  if (value === "" || value === 0 || value === false) {
    return true;
  }
  if (typeof value !== "object") {
    return false;
  }
  return Object.keys(value).length === 0;
}
