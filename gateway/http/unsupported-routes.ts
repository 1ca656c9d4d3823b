/**
 * APIs of OpenAI, Anthropic, Google, Cohere, Mistral, local runners and LiteLLM's proxy that clients call and Hearth does not have, and
 * what to do instead. Paths without `/v1`.
 */
const UNSUPPORTED: readonly (readonly [RegExp, string])[] = [
  [
    /^\/messages\/batches(\/|$)/,
    "Message batches are not supported: send each message to POST /v1/messages.",
  ],
  [/^\/batches(\/|$)/, "Batches are not supported: send each call by itself."],
  [
    /^\/(files|uploads)(\/|$)/,
    "Files are not supported: send their content in the message that refers to them.",
  ],
  [
    /^\/(vector_stores?|rag|indexes)(\/|$)/,
    "Vector stores are not supported: use one of your own with POST /v1/embeddings.",
  ],
  [
    /^\/(assistants|threads)(\/|$)/,
    "Assistants and threads are not supported: use POST /v1/responses with `previous_response_id` or `conversation`.",
  ],
  [
    /^\/(realtime|live)(\/|$)/,
    "Realtime sessions are not supported: use POST /v1/audio/transcriptions and /v1/audio/speech, or call the provider itself.",
  ],
  [
    /^\/(fine_tuning|evals|containers|videos|skills|ocr|search|search_tools|interactions)(\/|$)/,
    "Only calls of models go through the gateway: for this API call the provider itself.",
  ],
  [
    /^\/(mcp|mcp-rest|[^/]+\/mcp|toolset)(\/|$)/,
    "MCP servers are not supported: connect the client to each server itself, and send its tools with the call.",
  ],
  [/^\/(a2a|agents)(\/|$)/, "Agents are not supported: call the agent itself."],
  [
    /^\/(v1beta|upload|cachedContents)(\/|$)/,
    "Of Gemini's own API only calls and lists of models are supported (POST /v1beta/models/MODEL:generateContent): use the routes of /v1, such as POST /v1/embeddings.",
  ],
  [
    /^\/v2\/(chat|embed)$/,
    "Of Cohere's API only rerank is supported: use POST /v1/chat/completions or /v1/embeddings.",
  ],
  [
    /^\/(fim\/completions|infill)$/,
    "Code is completed by one route: use POST /v1/completions with `suffix`.",
  ],
  [
    /^\/api\/(tags|ps|version|show|chat|generate|embed|embeddings|v\d+\/models)$/,
    "The APIs of Ollama and LM Studio are not supported: choose an OpenAI-compatible provider in the client, and give it the address with /v1.",
  ],
  [
    /^\/projects?(\/|$)/,
    "Projects are not supported: use a team for each (POST /team/new).",
  ],
  [
    /^\/prompts(\/|$)/,
    "Stored prompts are not supported: send the messages with each call.",
  ],
  [
    /^\/(v2\/)?(guardrails|policy|policies)(\/|$)/,
    "Guardrails are not changed by requests: write them into the section `guardrails` of the configuration file and send POST /config/reload.",
  ],
  [
    /^\/(fallback|config|config_overrides|settings|cache\/settings|alerting|(add|delete)\/allowed_ip|router|callbacks|get|team\/[^/]+\/(callback|disable_logging))(\/|$)/,
    "Settings are not changed by requests: write fallbacks, callbacks and other settings into the configuration file and send POST /config/reload.",
  ],
  [
    /^\/jwt\/key\/mapping(\/|$)/,
    "Tokens are not mapped to keys: the section `jwt` of the configuration file says which user and team a token belongs to.",
  ],
  [
    /^\/(invitation|onboarding|scim|sso|ui|login)(\/|$)/,
    "People do not sign in here: use Hearth's console, or POST /user/new and POST /key/generate.",
  ],
  [
    /^\/management\/v1(\/|$)/,
    "LiteLLM's newer routes of this kind do not exist here: use those of /user, /team, /key and /budget, such as POST /user/bulk_update or POST /team/bulk_member_add.",
  ],
  [
    /^\/team\/[^/]+\/members\/me$/,
    "A member's own figures have one route: GET /me/usage returns its budgets, limits and spend.",
  ],
  [
    /^\/team\/[^/]+\/member\/[^/]+\/reset_budget$/,
    "The budget of a member has one reset: POST /team/TEAM/member/USER/reset_spend.",
  ],
  [
    /^\/v2\/organization\/[^/]+$/,
    "An organization is changed by one route: PATCH /organization/update with its `organization_id`.",
  ],
  [
    /^\/access_group\/[^/]+\/budget$/,
    "Groups of models have no budget: give the keys or teams a `model_max_budget`.",
  ],
  [
    /^\/(utils\/model_info|model\/(deprecations|settings)|model-insights)(\/|$)/,
    "Models are described by two routes: GET /model/info and GET /model_group/info.",
  ],
  [
    /^\/team\/available$/,
    "Teams are not open to all: an admin adds members with POST /team/member_add.",
  ],
  [
    /^\/active\/callbacks$/,
    "Callbacks are not listed: GET /health/services?service=NAME shows whether one delivers.",
  ],
  [
    /^\/(test|health\/(readiness\/details|shared-status))$/,
    "Health has three routes: GET /health/liveliness, GET /health/readiness and, with checks of the models, GET /health.",
  ],
  [
    /^\/(queue|engines)\//,
    "Calls have one form of path: use POST /v1/chat/completions, /v1/completions or /v1/embeddings with `model` in the body.",
  ],
  [
    /^\/((reload|schedule)\/model_cost_map|model\/cost_map)(_reload)?(\/|$)/,
    "Prices are not loaded from the network: write them into `prices_file` and restart the gateway.",
  ],
  [
    /^\/((key|user|team|organization)\/spend\/report|team\/spend\/by_user)$/,
    "Reports of spend have one route: GET /global/spend/report with `group_by`, such as team, user or key.",
  ],
  [
    /^\/(public\/)?model_hub(\/|$)/,
    "Models have no public page: GET /model_group/info describes those of a key.",
  ],
  [
    /^\/provider\/budgets$/,
    "Budgets of providers are not listed: read GET /metrics or GET /global/spend/provider.",
  ],
  [
    /^\/health\/(history|latest)$/,
    "Results of checks are not kept: GET /health checks the models now.",
  ],
  [
    /^\/(model\/(metrics|streaming_metrics)|global\/activity\/exceptions)(\/|$)/,
    "Charts of models have one route: GET /model/statistics returns calls, failures and latency; GET /spend/calls?status=failure lists failed calls.",
  ],
  [
    /^\/(global\/all_end_users|global\/spend\/end_users)$/,
    "End users have routes of their own: GET /customer/list returns them with their spend, GET /customer/daily/activity by day.",
  ],
  [
    /^\/(global\/spend\/all_tag_names|tag\/(distinct|summary|dau|wau|mau|user-agent\/.*))$/,
    "Tags have fewer routes: GET /spend/tags returns their names and spend, GET /tag/daily/activity the same by day.",
  ],
  [
    /^\/global\/spend\/reset$/,
    "Spend is not reset for all at once: use POST /key/KEY/reset_spend for each key.",
  ],
  [
    /^\/spend\/logs\/session\/ui$/,
    "Sessions have no route of their own: GET /spend/logs/v2?session_id=ID returns their calls.",
  ],
  [
    /^\/(user|team)\/filter\/ui$/,
    "Searches have no route of their own: use GET /user/list or GET /v2/team/list with a filter.",
  ],
  [
    /^\/budget\/settings$/,
    "Fields of tiers are not described by requests: POST /budget/info returns a tier, /openapi.json its fields.",
  ],
  [
    /^\/(cost\/estimate|utils\/transform_request)$/,
    "Calls are neither estimated nor translated without being made: POST /spend/calculate returns the cost of a call.",
  ],
  [
    /^\/(anthropic|assemblyai|azure|azure_ai|bedrock|cohere|cursor|deepgram|fal_ai|gemini|mistral|nvidia_nim|openai|openai_passthrough|openrouter|vertex[-_]ai|vllm)\//,
    "Pass-through routes are not supported: call the model by its alias with a route of /v1, such as POST /v1/chat/completions or POST /v1/messages.",
  ],
];

/** What to do instead of calling a path; null: it belongs to no known API. */
export function insteadOfRoute(path: string): string | null {
  const rest = path.replace(/^\/v1(?=\/)/, "");
  return UNSUPPORTED.find(([pattern]) => pattern.test(rest))?.[1] ?? null;
}
