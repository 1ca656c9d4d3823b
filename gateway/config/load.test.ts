import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { inspect } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { REQUIRED_VARIABLES } from "../../test/servers/gateway-config.ts";
import { formatProblem } from "../../core/config/problem.ts";
import { loadConfig, type LoadOptions } from "./load.ts";
import type { GatewayConfig } from "./types.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "hearth-config-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function write(name: string, text: string): string {
  const path = join(root, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

function load(
  text: string,
  env: Record<string, string> = {},
  options: Partial<LoadOptions> = {},
) {
  write("config/gateway.yaml", text);
  return loadConfig({
    env: { ...REQUIRED_VARIABLES, ...env },
    projectRoot: root,
    ...options,
  });
}

function loaded(...args: Parameters<typeof load>): GatewayConfig {
  const result = load(...args);
  if (!result.ok) {
    throw new Error(result.problems.map(formatProblem).join("\n"));
  }
  return result.config;
}

function problems(...args: Parameters<typeof load>): string[] {
  const result = load(...args);
  return result.ok ? [] : result.problems.map(formatProblem);
}

function warnings(...args: Parameters<typeof load>): string[] {
  const result = load(...args);
  if (!result.ok) {
    throw new Error(result.problems.map(formatProblem).join("\n"));
  }
  return result.warnings.map(formatProblem);
}

const model = (params: string, name = "a") =>
  `model_list:\n  - model_name: ${name}\n    provider_params: {${params}}\n`;

test("the shipped file has eleven aliases, all pending in an empty environment, and the documented settings", () => {
  const result = loadConfig({
    env: REQUIRED_VARIABLES,
    projectRoot: join(import.meta.dirname, "../.."),
    file: join(import.meta.dirname, "../../config/gateway.yaml"),
  });
  if (!result.ok) {
    throw new Error(result.problems.map(formatProblem).join("\n"));
  }
  const { models, router, cache, redis, server, timeouts, general } =
    result.config;
  expect(models.map((one) => one.pending)).toEqual([
    ...Array<string>(5).fill("LOCAL_RUNNER_A_URL"),
    ...Array<string>(2).fill("LOCAL_RUNNER_B_URL"),
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GEMINI_API_KEY",
  ]);
  expect(new Set(models.map((one) => one.alias)).size).toBe(11);
  expect(new Set(models.map((one) => one.id)).size).toBe(11);
  expect(router).toMatchObject({
    strategy: "usage-based-routing",
    allowedFails: 3,
    cooldownMs: 60_000,
    numRetries: 2,
  });
  expect(cache).toEqual({
    enabled: true,
    kind: "memory",
    ttlMs: 600_000,
    namespace: "proxy.cache",
    callTypes: ["acompletion", "aembedding"],
    mode: "default_on",
    scope: "tenant",
  });
  expect(redis).toBeNull();
  expect(timeouts).toEqual({
    connectMs: 5_000,
    firstByteMs: 300_000,
    idleMs: 120_000,
    requestMs: null,
  });
  expect(server).toMatchObject({
    host: "127.0.0.1",
    port: 4000,
    drainNoticeMs: 5_000,
    drainTimeoutMs: 120_000,
  });
  expect(general).toMatchObject({
    keyCacheMs: 3_600_000,
    timezone: "UTC",
    budgetMode: "admit-while-remaining",
    failClosed: false,
  });
  // Without Redis, a gateway alone lacks nothing.
  expect(result.warnings).toEqual([]);
});

test("an explicit Redis without a host is a warning", () => {
  expect(
    warnings(
      `${model("model: openai/x, api_key: k")}proxy_settings: { cache_params: { type: redis } }\n`,
    ),
  ).toEqual([
    expect.stringMatching(/cache_params.type: is redis, but no host is set/),
  ]);
});

test("every mistake is reported at once, with its line and what is allowed", () => {
  const text = `model_list:
  - provider_params:
      model: openai/gpt-5-mini
  - model_name: b
    provider_params:
      model: opnai/gpt-5-mini
      rpm: many
      input_cost_per_token: 1e306
      max_tokens: -5
      max_completion_tokens: 0.5
  - model_name: c
    provider_params:
      model: ollama/x
      api_base: 192.168.1.10:11434
      api_key: [sk-verysecret]
router_settings:
  routing_strategy: fastest
  allowed_fails: -1
proxy_settings:
  cache_params: {ttl: soon, port: 70000}
  max_budget: "-3"
general_settings:
  track_spend: false
  timezone: Mars/Olympus
`;
  expect(
    problems(text, { HEARTH_GATEWAY_PORT: "http", HEARTH_JOURNAL_DIR: "" }),
  ).toEqual([
    "config/gateway.yaml:2: model_list[0].model_name: is required and must be a name of at most 256 bytes",
    'config/gateway.yaml:6: model_list[1].provider_params.model: unknown provider "opnai" (did you mean "openai"?); for an OpenAI-compatible server, set api_base',
    'config/gateway.yaml:7: model_list[1].provider_params.rpm: must be a whole number from 0; it is "many"',
    "config/gateway.yaml:8: model_list[1].provider_params.input_cost_per_token: must be dollars, a number from 0 to 1000; it is 1e+306",
    "config/gateway.yaml:9: model_list[1].provider_params.max_tokens: must be a whole number from 1; it is -5",
    "config/gateway.yaml:10: model_list[1].provider_params.max_completion_tokens: must be a whole number from 1; it is 0.5",
    'config/gateway.yaml:14: model_list[2].provider_params.api_base: must be an address such as http://192.168.1.10:11434; it is "192.168.1.10:11434"',
    "config/gateway.yaml:15: model_list[2].provider_params.api_key: must be text; it is a list",
    'config/gateway.yaml:17: router_settings.routing_strategy: must be one of usage-based-routing, simple-shuffle, least-busy, latency-based-routing, cost-based-routing; it is "fastest"',
    "config/gateway.yaml:18: router_settings.allowed_fails: must be a whole number from 0; it is -1",
    "config/gateway.yaml:20: proxy_settings.cache_params.port: must be a whole number from 1 to 65535; it is 70000",
    'config/gateway.yaml:20: proxy_settings.cache_params.ttl: must be a duration such as 30 (seconds), 250ms, 5s, 2m, 1h or 7d; it is "soon"',
    'config/gateway.yaml:21: proxy_settings.max_budget: must be dollars, a number from 0; it is "-3"',
    "config/gateway.yaml:23: general_settings.track_spend: must be true or omitted: budgets depend on the ledger",
    'config/gateway.yaml:24: general_settings.timezone: must be a time zone such as UTC or Europe/Berlin; it is "Mars/Olympus"',
    "environment: HEARTH_JOURNAL_DIR: is required: spend is written there before it reaches Postgres; set it to a directory that survives restarts",
    "environment: HEARTH_GATEWAY_PORT: must be a whole number from 0 to 65535",
  ]);
});

test("a master key and a database are required", () => {
  expect(problems("", { PROXY_MASTER_KEY: "", DATABASE_URL: "" })).toEqual([
    "environment: DATABASE_URL: is required for keys and spend: set DATABASE_URL (or DATABASE_URL_FILE) to postgresql://user:password@host:5432/database",
    "environment: PROXY_MASTER_KEY: is required: set PROXY_MASTER_KEY (or PROXY_MASTER_KEY_FILE) to a long random value",
  ]);
});

test("a short master key causes a warning that does not contain it", () => {
  expect(
    warnings("general_settings: {master_key: sk-1234}", {
      PROXY_MASTER_KEY: "",
    }),
  ).toEqual([
    "config/gateway.yaml:1: general_settings.master_key: the master key has less than 20 characters and can be guessed; use a long random value",
  ]);
});

test.each(["a key with spaces of 30 chars", "ein-schlüssel-mit-umlaut"])(
  "the master key %s causes a warning, as many clients cannot send it",
  (PROXY_MASTER_KEY) => {
    expect(warnings("", { PROXY_MASTER_KEY })).toEqual([
      "environment: PROXY_MASTER_KEY: the master key has characters that many clients cannot send in a header; use printable ASCII characters without spaces",
    ]);
  },
);

test.each([
  ["general_settings", "master_key", "database_url"],
  ["environment_variables", "PROXY_MASTER_KEY", "DATABASE_URL"],
])(
  "a master key or a database URL in %s that differs from the environment is rejected",
  (section, keyName, urlName) => {
    const literal = (key: string, url: string) =>
      `${section}:\n  ${keyName}: ${key}\n  ${urlName}: ${url}\n`;
    expect(
      problems(literal("sk-1234", "postgres://litellm@db/litellm")).toSorted(),
    ).toEqual([
      `config/gateway.yaml:2: ${section}.${keyName}: differs from PROXY_MASTER_KEY: remove it here (a stack started by Hearth has its own), or unset PROXY_MASTER_KEY`,
      `config/gateway.yaml:3: ${section}.${urlName}: differs from DATABASE_URL: remove it here (a stack started by Hearth has its own), or unset DATABASE_URL`,
    ]);
    const { PROXY_MASTER_KEY: key, DATABASE_URL: url } = REQUIRED_VARIABLES;
    expect(problems(literal(key, url))).toEqual([]);
  },
);

test("a provider's budget has both of LiteLLM's names, and mistakes are reported", () => {
  const budgets = (lines: string) =>
    `${model("model: ollama/x, api_base: http://h:1")}router_settings:\n  provider_budget_config:\n${lines}`;
  const loaded = load(
    budgets(
      "    openai: { budget_limit: 5, time_period: 1d }\n    ollama: { max_budget: 0.5 }\n",
    ),
  );
  expect(loaded.ok && [...loaded.config.router.providerBudgets]).toEqual([
    ["openai", { maxBudget: 5, budgetDuration: "1d" }],
    ["ollama", { maxBudget: 0.5, budgetDuration: null }],
  ]);
  expect(
    problems(budgets("    opnai: { max_budget: 5 }\n    openai: {}\n")),
  ).toEqual([
    'config/gateway.yaml:6: router_settings.provider_budget_config.opnai: unknown provider "opnai" (did you mean "openai"?)',
    "config/gateway.yaml:7: router_settings.provider_budget_config.openai: max_budget is required, in dollars",
  ]);
});

test("a budget of a provider whose models are skipped is a warning", () => {
  const text = `${model("model: openai/x, api_key: x")}router_settings:
  provider_budget_config:
    vertex_ai: { budget_limit: 5, time_period: 30d }
`;
  expect(warnings(text)).toEqual([
    "config/gateway.yaml:6: router_settings.provider_budget_config.vertex_ai: has no effect: the provider has no model",
  ]);
});

test("unknown settings cause warnings with the nearest known one", () => {
  const text = `${model("model: ollama/x, api_bse: http://h:1")}router_settings:
  colldown_time: 5
  zzzzzz: 1
genral_settings: {}
`;
  expect(warnings(text)).toEqual([
    'config/gateway.yaml:7: unknown setting "genral_settings" (did you mean "general_settings"?); it has no effect',
    'config/gateway.yaml:3: model_list[0].provider_params: unknown setting "api_bse" (did you mean "api_base"?); it has no effect',
    'config/gateway.yaml:5: router_settings: unknown setting "colldown_time" (did you mean "cooldown_time"?); it has no effect',
    'config/gateway.yaml:6: router_settings: unknown setting "zzzzzz"; it has no effect',
  ]);
});

test("a setting of LiteLLM's that resembles one of Hearth's is not taken for a misspelling", () => {
  const text = `${model("model: ollama/x")}general_settings:
  database_type: prisma_client
  maximum_health_check_retention_period: 7d
`;
  expect(warnings(text)).toEqual([
    expect.stringContaining(
      '"database_type" has no effect: write options of the connection into DATABASE_URL',
    ),
    expect.stringContaining(
      '"maximum_health_check_retention_period" has no effect: expired rows are deleted regularly',
    ),
  ]);
});

test("LiteLLM's settings that have no effect are named with what to use instead", () => {
  const text = `${model("model: ollama/x, max_parallel_requests: 5")}litellm_settings:
  upperbound_key_generate_params: { max_budget: 100 }
  cache_params: { ssl: true }
router_settings:
  routing_strategy_args: { ttl: 10 }
general_settings:
  max_parallel_requests: 5
credential_list: []
`;
  const place = "config/gateway.yaml";
  expect(warnings(text)).toEqual([
    `${place}:11: setting "credential_list" has no effect: set \`api_key: os.environ/NAME\` in each model, or use credentials with POST /model/new`,
    `${place}:3: model_list[0].provider_params: setting "max_parallel_requests" has no effect: set \`slots\` in models of local runners, \`rpm\` in others`,
    `${place}:8: router_settings: setting "routing_strategy_args" has no effect: the window of a strategy is fixed`,
    `${place}:5: litellm_settings: setting "upperbound_key_generate_params" has no effect: set it on users, teams and keys when they are created: their limits apply to every call`,
    `${place}:6: litellm_settings.cache_params: setting "ssl" has no effect: set the variable REDIS_URL, with rediss:// for TLS`,
    `${place}:10: general_settings: setting "max_parallel_requests" has no effect: set the rate limits of keys, users and teams, or \`rpm\` and \`tpm\` in models`,
  ]);
});

test("LiteLLM's limits of a model that have no effect cause warnings, unless they limit nothing", () => {
  const yaml = (info: string) => `model_list:
  - model_name: a
    litellm_params: { model: openai/x, api_key: x }
    model_info: ${info}
`;
  expect(
    warnings(
      yaml(
        "{ blocked: true, discoverable: false, access_windows: [{}], team_model_rpm_limit: 5, policies: x }",
      ),
    ).map((warning) => /"(\w+)" has no effect: (\w+)/.exec(warning)?.slice(1)),
  ).toEqual([
    ["blocked", "switch"],
    ["discoverable", "a"],
    ["access_windows", "a"],
    ["team_model_rpm_limit", "set"],
  ]);
  expect(
    warnings(yaml("{ blocked: false, discoverable: true, policies: x }")),
  ).toEqual([]);
});

test("prices of model_info that have no effect cause warnings, its free fields do not", () => {
  const text = `model_list:
  - model_name: a
    provider_params: { model: ollama/x }
    model_info: { input_cost_per_tokens: 1, input_cost_per_pixel: 1, output_cost_per_token: 1, cost_center: 7, output_cost_per_character: null }
`;
  const place = "config/gateway.yaml:4: model_list[0].model_info: unknown";
  expect(warnings(text)).toEqual([
    `${place} setting "input_cost_per_tokens" (did you mean "input_cost_per_token"?); it has no effect`,
    `${place} setting "input_cost_per_pixel" (did you mean "input_cost_per_token"?); it has no effect`,
  ]);
});

test.each([
  ["one mapping", "<<: *house", "<<: *house"],
  ["a list of them", "<<: [*house]", "<<: [*other, *house]"],
])(
  "what a mapping merges (%s) is in it, unless it has its own",
  (_, ...merges) => {
    const [first, second] = merges;
    const text = `model_list:
  - model_name: a
    litellm_params: &house { model: openai/a, api_key: os.environ/KEY, rpm: 5, timeout: 9 }
  - model_name: b
    litellm_params: &other { ${first}, model: openai/b, rpm: 6 }
  - model_name: c
    litellm_params:
      ${second}
      model: openai/c
`;
    expect(warnings(text, { KEY: "secret" })).toEqual([]);
    const { models } = loaded(text, { KEY: "secret" });
    expect(
      models.map(({ model, apiKey, timeoutMs, rpm }) => [
        model,
        apiKey?.reveal(),
        timeoutMs,
        rpm,
      ]),
    ).toEqual([
      ["a", "secret", 9_000, 5],
      ["b", "secret", 9_000, 6],
      ["c", "secret", 9_000, second?.includes("other") ? 6 : 5],
    ]);
  },
);

test("Gemini's safety settings are defaults of its models, and a warning of others", () => {
  const settings = "[{ category: HARM_CATEGORY_HARASSMENT, threshold: OFF }]";
  const text = `model_list:
  - model_name: a
    litellm_params: { model: gemini/gemini-3.8-flash, api_key: x, safety_settings: ${settings} }
  - model_name: b
    litellm_params: { model: openai/gpt-5, api_key: x, safety_settings: ${settings} }
`;
  expect(loaded(text).models.map(({ defaults }) => defaults)).toEqual([
    {
      safety_settings: [
        { category: "HARM_CATEGORY_HARASSMENT", threshold: "OFF" },
      ],
    },
    {},
  ]);
  expect(warnings(text)).toEqual([
    "config/gateway.yaml:5: model_list[1].litellm_params.safety_settings: has no effect: only Gemini has such settings",
  ]);
});

test("a setting in the wrong section is named with the right one", () => {
  const text = `model_list:
  - model_name: a
    rpm: 5
    litellm_params: { model: ollama/x, base_model: y, supports_vision: true, request_timeout: 5, cooldown_time: 5 }
general_settings:
  max_budget: 2
  success_callback: [langfuse_otel]
litellm_settings:
  master_key_header: x
  allowed_fails: 3
  routing_strategy: least-busy
`;
  expect(
    warnings(text).map((one) => /(unknown )?setting ".*/.exec(one)?.[0]),
  ).toEqual([
    'setting "rpm" has no effect: move it to `model_list[0].litellm_params`',
    'setting "base_model" has no effect: move it to `model_list[0].model_info`',
    'setting "supports_vision" has no effect: move it to `model_info`',
    'setting "request_timeout" has no effect: set `timeout`',
    'setting "cooldown_time" has no effect: move it to `litellm_settings`',
    'unknown setting "master_key_header"; it has no effect',
    'setting "routing_strategy" has no effect: move it to `router_settings`',
    'setting "max_budget" has no effect: move it to `litellm_settings`',
    'setting "success_callback" has no effect: move it to `litellm_settings`',
  ]);
});

test("a model of Bedrock is skipped with where it can be called instead", () => {
  const params = "model: bedrock/anthropic.claude-v2, aws_region_name: x";
  expect(warnings(model(params))).toEqual([
    expect.stringContaining(
      'provider "bedrock" is not supported, the model is skipped; call it at Bedrock\'s endpoint',
    ),
  ]);
});

test("a required setting whose variable is not set names the variable", () => {
  const text =
    "model_list:\n  - model_name: os.environ/NAME\n    litellm_params: { model: os.environ/MODEL }\n";
  expect(problems(text)).toEqual([
    "config/gateway.yaml:2: model_list[0].model_name: NAME is not set: set it, or write the value here",
    "config/gateway.yaml:3: model_list[0].litellm_params.model: MODEL is not set: set it, or write the value here",
  ]);
});

test.each([
  "router_settings: { redis_host: redis }",
  "litellm_settings: { cache_params: { type: redis, host: redis } }",
])("a Redis of the file beside that of the stack is named: %s", (section) => {
  const text = `${model("model: ollama/x")}${section}\n`;
  for (const variable of ["REDIS_URL", "REDIS_SENTINELS"]) {
    expect(problems(text, { [variable]: "redis://stack" })).toEqual([
      expect.stringMatching(
        `^config/gateway.yaml:4: .*host: differs from ${variable}: remove it here`,
      ),
    ]);
  }
});

test("a parameter for the provider is named with where it belongs, one of Ollama's own API with where to set it", () => {
  const own = "chat_template_kwargs: {}, num_ctx: 16384, think: false";
  const text = model(`model: ollama/x, ${own}, extra_body: { stream: true }`);
  expect(problems(text)).toEqual([
    expect.stringMatching(/extra_body: must be a mapping of parameters other/),
  ]);
  const known = model(`model: ollama/x, ${own}, extra_body: { min_p: 0.1 }`);
  expect(loaded(known).models[0]?.defaults).toEqual({ min_p: 0.1 });
  expect(warnings(known)).toEqual([
    expect.stringContaining("for the provider belong in `extra_body`"),
    expect.stringContaining("`PARAMETER num_ctx 16384`"),
    expect.stringContaining("`none` turns thinking off"),
  ]);
});

test("a setting of a family or of a section is named with what to use instead, another section's is not", () => {
  const text = `${model("model: ollama/x, tpd: 5, auto_router_config: {}, cache_control_injection_points: []")}litellm_settings:
  api_version: "1"
  mcp_anything: true
  cache_params: { type: azure-blob, s3_bucket_name: x }
  s3_bucket_name: x
router_settings:
  routing_strategy: provider-budget-routing
  tpd: 5
`;
  expect(loaded(text).router.strategy).toBe("simple-shuffle");
  const hints = warnings(text).map((one) => one.replace(/^[^ ]+ /, ""));
  expect(hints).toEqual([
    expect.stringContaining('"tpd" has no effect: set the rate limits'),
    expect.stringContaining(
      '"auto_router_config" has no effect: callers name the model in each call',
    ),
    expect.stringContaining(
      '"cache_control_injection_points" has no effect: set `cache: auto`',
    ),
    expect.stringContaining('unknown setting "tpd"'),
    expect.stringContaining('"api_version" has no effect: set `api_base`'),
    expect.stringContaining('"mcp_anything" has no effect: there are no MCP'),
    expect.stringContaining('unknown setting "s3_bucket_name"; it has no'),
    expect.stringContaining(
      '"s3_bucket_name" has no effect: answers are cached in memory or in Redis, for equal calls',
    ),
    expect.stringContaining(
      '"azure-blob" is not supported, the cache uses memory',
    ),
  ]);
});

test("a setting of LiteLLM's that restricts access or spend is never ignored without an alternative", () => {
  const text = `${model("model: ollama/x")}litellm_settings:
  max_user_budget: 5
  blocked_user_list: [anna]
  block_requests_for_models_without_pricing: true
  key_alias_pattern: "^a"
  max_tokens: 5
  user_url_validation: true
  api_base: http://127.0.0.1:1
general_settings:
  allowed_ips: [10.0.0.1]
  disable_requester_ip_address_logging: true
  enforce_rbac: true
  fail_closed_budget_enforcement: true
  max_response_size_mb: 1
  max_in_flight_requests_per_worker: 5
  trusted_proxy_ranges: [10.0.0.0/8]
  user_url_allowed_hosts: [example.com]
policies: { strict: { guardrails: { add: [secrets] } } }
policy_attachments: [{ policy: strict, scope: "*" }]
`;
  const found = warnings(text);
  expect(found).toHaveLength(17);
  for (const warning of found) {
    expect(warning).toMatch(/setting "\w+" has no effect: /);
  }
  expect(found).toContainEqual(
    expect.stringContaining(
      '"allowed_ips" has no effect: calls are accepted from every address; restrict addresses in the firewall or the proxy in front',
    ),
  );
});

test("a budget of the whole gateway may reset by LiteLLM's words", () => {
  const text = `${model("model: ollama/x")}litellm_settings: { max_budget: 5, budget_duration: monthly }\n`;
  expect(loaded(text).general.budgetDuration).toBe("30d");
});

test("a model of LiteLLM's provider without an address here is skipped, unless it has one", () => {
  expect(warnings(model("model: dashscope/qwen-max"))).toEqual([
    'config/gateway.yaml:3: model_list[0].provider_params.model: provider "dashscope" has no address here, the model is skipped; set api_base to its OpenAI-compatible one',
  ]);
  expect(warnings(model("model: elevenlabs/eleven"))).toEqual([
    expect.stringContaining('provider "elevenlabs" is not supported'),
  ]);
  const addressed = model(
    'model: dashscope/qwen-max, api_base: "https://dash.example/v1", api_key: x',
  );
  expect(warnings(addressed)).toEqual([]);
  expect(loaded(addressed).models).toMatchObject([{ model: "qwen-max" }]);
  expect(problems(model("model: dashscop/qwen-max"))).toHaveLength(1);
});

test("a wildcard of all providers is rejected with what to write instead", () => {
  expect(problems(model('model: "*"', '"*"'))).toEqual([
    "config/gateway.yaml:3: model_list[0].provider_params.model: must name a provider: write an entry for each, such as openai/* and anthropic/*",
  ]);
});

test.each([
  [
    "  - { model_name: m, provider_parms: { model: openai/x } }",
    'model_list[0]: unknown setting "provider_parms" (did you mean "provider_params"?)',
  ],
  [
    "  - { model_name: m, litellm_parms: { model: openai/x } }",
    'model_list[0]: unknown setting "litellm_parms" (did you mean "litellm_params"?)',
  ],
  [
    "  - { modelname: m, provider_params: { model: openai/x } }",
    'model_list[0]: unknown setting "modelname" (did you mean "model_name"?)',
  ],
  [
    "  - { model_name: m, provider_params: { modle: openai/x } }",
    'model_list[0].provider_params: unknown setting "modle" (did you mean "model"?)',
  ],
  [
    '  - { model_name: m, provider_params: { model: vllm/x, api_bas: "http://h:1" } }',
    'model_list[0].provider_params: unknown setting "api_bas" (did you mean "api_base"?)',
  ],
  [
    "  - { model_name: m, provider_params: { tpm: 3 } }",
    "model_list[0].provider_params.model: is required and must be a name of at most 256 bytes",
  ],
])(
  "a misspelled setting is reported in place of the one that it leaves missing: %s",
  (entry, problem) => {
    expect(problems(`model_list:\n${entry}\n`)).toEqual([
      `config/gateway.yaml:2: ${problem}`,
    ]);
  },
);

test.each([
  ["a: 1\nb: 2\na: 3\n", 'config/gateway.yaml:3: duplicate key "a"; keep one'],
  [
    "a:\n\tb: 1\n",
    "config/gateway.yaml:2: tab used for indentation; YAML allows only spaces",
  ],
  [
    "model_list: [\n",
    'config/gateway.yaml:2: missing "]"; every line before it must be indented',
  ],
  [
    'general_settings:\n  master_key: "sk-secret\n',
    "config/gateway.yaml:3: missing closing quote, bracket, brace or colon",
  ],
  [
    "a: *nothing\n",
    "config/gateway.yaml:1: this alias (*name) has no anchor (&name) before it; put a value that starts with * in quotes",
  ],
  [
    "- model_name: a\n",
    "config/gateway.yaml:1: the top level must be a mapping of settings to values",
  ],
  [
    "a: &a [*a]\n",
    "config/gateway.yaml:1: this alias (*name) is inside its own anchor; write the value out",
  ],
  [
    "litellm_settings: {}\nproxy_settings: {}\n",
    "config/gateway.yaml:2: proxy_settings: duplicates litellm_settings above; keep one of the two",
  ],
  [
    "model_list: {}\n",
    "config/gateway.yaml:1: model_list: must be a list; start each model with - model_name:",
  ],
])("YAML mistake %j has a line", (text, sentence) => {
  expect(problems(text)).toEqual([sentence]);
});

test("no message contains a secret", () => {
  const secret = "sk-ThisMustNeverBeShown1234567890";
  const text = `model_list:
  - model_name: a
    provider_params: {model: openai/x, api_key: {value: ${secret}}, rpm: ${secret}, timeout: os.environ/LEAK}
general_settings: {master_key: [${secret}], database_url: "mysql://u:${secret}@h/d"}
`;
  const all = problems(text, { LEAK: secret, DATABASE_URL: "" });
  expect(all).toHaveLength(5);
  expect(all.join("\n")).not.toContain(secret);
  expect(
    problems(`general_settings:\n  x: "${secret}\n  y: ${secret}`).join("\n"),
  ).not.toContain(secret);

  const config = loaded(
    model(
      `model: openai/x, api_key: ${secret}, extra_headers: {X-Auth: ${secret}}`,
    ),
    {
      PROXY_MASTER_KEY: secret,
      DATABASE_URL: `postgres://u:${secret}@h/d`,
      REDIS_HOST: "r",
      REDIS_PASSWORD: secret,
      HEARTH_SALT_KEY: secret,
    },
  );
  expect(
    JSON.stringify(config) +
      inspect(config, { depth: null }) +
      String(config.models[0]?.apiKey),
  ).not.toContain(secret);
  expect(config.models[0]?.apiKey?.reveal()).toBe(secret);
  expect(config.models[0]?.headers["x-auth"]?.reveal()).toBe(secret);
  expect(config.general.masterKey.reveal()).toBe(secret);
});

test("values come from the environment, from files, and from defaults", () => {
  const file = write("key", "  sk-from-a-file\n");
  const text = `${model("model: openai/x, api_key: os.environ/MY_KEY, api_base: 'http://${HOST}:8000/v1'")}proxy_settings:
  cache: os.environ/CACHE
  cache_params: {host: "\${REDIS:-cache.local}", port: os.environ/PORT}
`;
  const config = loaded(text, {
    MY_KEY_FILE: file,
    HOST: "b.local",
    CACHE: "True",
    PORT: "6380",
    REDIS_HOST: "cache.local",
    REDIS_CA_FILE: write("ca", "the authority\n"),
  });
  expect(config.models[0]).toMatchObject({
    apiBase: "http://b.local:8000/v1",
    pending: null,
  });
  expect(config.models[0]?.apiKey?.reveal()).toBe("sk-from-a-file");
  expect(config.cache).toMatchObject({ enabled: true, kind: "redis" });
  expect(config.redis).toMatchObject({
    nodes: [{ host: "cache.local", port: 6380 }],
    password: null,
    ca: "the authority",
  });
});

test("a secret file that cannot be read is reported once", () => {
  expect(
    problems(model("model: openai/x"), { OPENAI_API_KEY_FILE: "/nowhere/key" }),
  ).toEqual([
    "environment: OPENAI_API_KEY_FILE: cannot read /nowhere/key (ENOENT); correct the path or set OPENAI_API_KEY",
  ]);
});

test("the master key and the database can come from files", () => {
  const config = loaded("", {
    PROXY_MASTER_KEY: "",
    PROXY_MASTER_KEY_FILE: write("master", "sk-master-from-a-file-1\n"),
    DATABASE_URL: "",
    DATABASE_URL_FILE: write("url", "postgres://h/d\n"),
  });
  expect(config.general.masterKey.reveal()).toBe("sk-master-from-a-file-1");
  expect(config.database.url.reveal()).toBe("postgres://h/d");
});

test("the direct address of the database is read from its variable or file, and is null where it is the only one", () => {
  const direct = (env: Record<string, string>) =>
    loaded("", env).database.directUrl?.reveal();
  expect(direct({})).toBeUndefined();
  expect(
    direct({ DATABASE_DIRECT_URL: REQUIRED_VARIABLES.DATABASE_URL }),
  ).toBeUndefined();
  expect(
    direct({ DATABASE_DIRECT_URL_FILE: write("direct", "postgres://h/d\n") }),
  ).toBe("postgres://h/d");
  expect(problems("", { DATABASE_DIRECT_URL: "db:5432" })).toEqual([
    "environment: DATABASE_DIRECT_URL: must be an address such as postgresql://user:password@host:5432/database",
  ]);
});

test("a previous master key requires an expiry", () => {
  const env = { PROXY_MASTER_KEY_PREVIOUS: "sk-the-one-before-it-1" };
  expect(problems("", env)).toEqual([
    "environment: PROXY_MASTER_KEY_PREVIOUS_UNTIL: is required with PROXY_MASTER_KEY_PREVIOUS and must be its expiry, such as 2027-01-31T12:00:00Z",
  ]);
  const { previousMasterKey } = loaded("", {
    ...env,
    PROXY_MASTER_KEY_PREVIOUS_UNTIL: "2027-01-31T12:00:00Z",
  }).general;
  expect(previousMasterKey?.key.reveal()).toBe("sk-the-one-before-it-1");
  expect(previousMasterKey?.until).toBe(Date.UTC(2027, 0, 31, 12));
  expect(loaded("").general.previousMasterKey).toBeNull();
});

test("an unset variable of a setting leaves the default, with a warning", () => {
  expect(
    warnings("proxy_settings: {request_timeout: os.environ/SLOW}"),
  ).toEqual([
    "config/gateway.yaml:1: proxy_settings.request_timeout: SLOW is not set; the default is used",
  ]);
});

test("the operator's file overrides the shipped one, with the file of hearth up between them", () => {
  write(
    "config/gateway.local.yaml",
    `model_list:
  - {model_name: b, provider_params: {model: ollama/local-b}}
  - {model_name: mine, provider_params: {model: ollama/mine}}
litellm_settings: {cache_params: {ttl: 5}}
router_settings: {num_retries: 0}
`,
  );
  const extra = write(
    "echo.yaml",
    "model_list:\n  - {model_name: hearth-echo, provider_params: {model: openai/echo, api_base: 'http://127.0.0.1:9'}}\n",
  );
  const config = loaded(
    `model_list:
  - {model_name: a, provider_params: {model: ollama/a}}
  - {model_name: b, provider_params: {model: ollama/b1}}
  - {model_name: b, provider_params: {model: ollama/b2}}
proxy_settings: {cache: true, cache_params: {ttl: 600, namespace: ours}}
router_settings: {num_retries: 2, allowed_fails: 7}
`,
    { HEARTH_EXTRA_CONFIG: extra },
  );
  expect(config.models.map((one) => `${one.alias}=${one.model}`)).toEqual([
    "a=a",
    "hearth-echo=echo",
    "b=local-b",
    "mine=mine",
  ]);
  expect(config.cache).toMatchObject({
    enabled: true,
    ttlMs: 5_000,
    namespace: "ours",
  });
  expect(config.router).toMatchObject({ numRetries: 0, allowedFails: 7 });
  expect(config.files).toEqual([
    "config/gateway.yaml",
    "echo.yaml",
    "config/gateway.local.yaml",
  ]);
});

test("an explicit file is read alone, and reported when it is missing", () => {
  write("config/gateway.local.yaml", model("model: ollama/x", "local"));
  const file = write("other.yaml", model("model: ollama/x", "other"));
  expect(
    loaded(model("model: ollama/x", "shipped"), {}, { file }).models.map(
      (one) => one.alias,
    ),
  ).toEqual(["other"]);
  expect(
    loaded("", { HEARTH_GATEWAY_CONFIG: file }).models.map((one) => one.alias),
  ).toEqual(["other"]);
  expect(problems("", {}, { file: join(root, "none.yaml") })).toEqual([
    "none.yaml: file not found",
  ]);
});

test("a mistake in the operator's file is reported with that file and its line", () => {
  write(
    "config/gateway.local.yaml",
    "\nrouter_settings:\n  num_retries: twice\n",
  );
  expect(problems("router_settings: {num_retries: 2}")).toEqual([
    'config/gateway.local.yaml:3: router_settings.num_retries: must be a whole number from 0 to 10; it is "twice"',
  ]);
});

test("a mistake in a model is counted in its own file, also after models that another file replaces", () => {
  write(
    "config/gateway.local.yaml",
    "model_list:\n  - {model_name: a, provider_params: {model: openai/x, api_key: k}}\n  - {model_name: c, provider_params: {model: opnai/x, api_key: k}}\n",
  );
  const shipped = `model_list:
  - {model_name: a, provider_params: {model: openai/x, api_key: k}}
  - {model_name: b, provider_params: {model: opnai/x, api_key: k}}
`;
  expect(problems(shipped)).toEqual([
    expect.stringMatching(
      /^config\/gateway.yaml:3: model_list\[1\].provider_params.model: /,
    ),
    expect.stringMatching(
      /^config\/gateway.local.yaml:3: model_list\[1\].provider_params.model: /,
    ),
  ]);
});

test("included files extend lists and replace other sections, as in LiteLLM", () => {
  write(
    "config/models/more.yaml",
    `include: [deeper.yaml, ../gateway.yaml, shared.yaml]\nrouter_settings: {num_retries: 3}\n${model(
      "model: openai/m",
      "b",
    )}`,
  );
  write("config/models/deeper.yaml", model("model: openai/m", "c"));
  write("config/shared.yaml", model("model: openai/m", "d"));
  const config = loaded(
    `include:\n  - models/more.yaml\n  - shared.yaml\nrouter_settings: {cooldown_time: 5s}\n${model(
      "model: openai/m",
    )}`,
  );
  expect(config.models.map(({ alias }) => alias)).toEqual(["a", "b", "d", "c"]);
  expect(config.router).toMatchObject({ numRetries: 3, cooldownMs: 60_000 });
  expect(config.files).toEqual([
    "config/gateway.yaml",
    "config/models/more.yaml",
    "config/shared.yaml",
    "config/models/deeper.yaml",
  ]);
});

test("models of an included file replace those of the shipped one, and its mistakes are reported there", () => {
  write("config/models.yaml", model("model: 5", "b"));
  write("config/gateway.local.yaml", "include: [models.yaml]\n");
  expect(problems(model("model: openai/m", "b"))).toEqual([
    expect.stringContaining(
      "config/models.yaml:3: model_list[0].provider_params.model: ",
    ),
  ]);
});

test.each([
  [
    "[none.yaml]",
    "config/gateway.yaml:1: include: config/none.yaml: file not found",
  ],
  [
    "models.yaml",
    "config/gateway.yaml:1: include: must be a list of files such as [models.yaml], relative to this file",
  ],
  [
    "[5]",
    "config/gateway.yaml:1: include: must be a list of files such as [models.yaml], relative to this file",
  ],
])("an include of %s is rejected", (include, problem) => {
  expect(problems(`include: ${include}\n${model("model: openai/m")}`)).toEqual([
    problem,
  ]);
});

test("port and host: the argument, then the variable, then the default", () => {
  expect(
    loaded("", {
      HEARTH_GATEWAY_PORT: "4001",
      HEARTH_GATEWAY_HOST: "0.0.0.0",
      HEARTH_DRAIN_NOTICE: "0s",
    }).server,
  ).toMatchObject({
    port: 4001,
    host: "0.0.0.0",
    drainNoticeMs: 0,
  });
  expect(
    loaded("", { HEARTH_GATEWAY_PORT: "4001" }, { port: "0" }).server.port,
  ).toBe(0);
  expect(problems("", {}, { port: "x" })).toEqual([
    "environment: --port: must be a whole number from 0 to 65535",
  ]);
});
