import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  formatProblem,
  type ConfigProblem,
} from "../../core/config/problem.ts";
import { loadConfig } from "./load.ts";
import { deploymentFromRow } from "./stored.ts";
import type { Deployment } from "./types.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "hearth-deployments-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function load(text: string, env: Record<string, string> = {}) {
  const file = join(root, "c.yaml");
  writeFileSync(file, text);
  return loadConfig({
    file,
    env: {
      PROXY_MASTER_KEY: "sk-0123456789abcdefghij",
      DATABASE_URL: "postgres://h/d",
      HEARTH_JOURNAL_DIR: "/j",
      ...env,
    },
    projectRoot: root,
  });
}

function models(
  entries: readonly object[],
  env: Record<string, string> = {},
): readonly Deployment[] {
  // JSON is YAML.
  const result = load(JSON.stringify({ model_list: entries }), env);
  if (!result.ok) {
    throw new Error(result.problems.map(formatProblem).join("\n"));
  }
  return result.config.models;
}

const one = (params: object, env: Record<string, string> = {}): Deployment => {
  const [first] = models([{ model_name: "a", provider_params: params }], env);
  if (first === undefined) {
    throw new Error("left out");
  }
  return first;
};

test.each([
  [
    "openai/gpt-5-mini",
    "openai",
    "openai",
    "https://api.openai.com/v1",
    "OPENAI_API_KEY",
  ],
  [
    "gpt-5-mini",
    "openai",
    "openai",
    "https://api.openai.com/v1",
    "OPENAI_API_KEY",
  ],
  [
    "anthropic/claude-sonnet-4-5",
    "anthropic",
    "anthropic",
    "https://api.anthropic.com",
    "ANTHROPIC_API_KEY",
  ],
  [
    "gemini/gemini-2.5-pro",
    "gemini",
    "gemini",
    "https://generativelanguage.googleapis.com/v1beta/openai",
    "GEMINI_API_KEY",
  ],
  [
    "mistral/mistral-large",
    "openai",
    "mistral",
    "https://api.mistral.ai/v1",
    "MISTRAL_API_KEY",
  ],
  [
    "groq/llama-3.3-70b",
    "openai",
    "groq",
    "https://api.groq.com/openai/v1",
    "GROQ_API_KEY",
  ],
  [
    "deepseek/deepseek-chat",
    "openai",
    "deepseek",
    "https://api.deepseek.com/v1",
    "DEEPSEEK_API_KEY",
  ],
  [
    "openrouter/anthropic/claude",
    "openai",
    "openrouter",
    "https://openrouter.ai/api/v1",
    "OPENROUTER_API_KEY",
  ],
  ["ollama/llama3.2", "ollama", "ollama", "http://127.0.0.1:11434/v1", null],
  [
    "ollama_chat/llama3.2",
    "ollama",
    "ollama",
    "http://127.0.0.1:11434/v1",
    null,
  ],
])(
  "%s goes to its provider's own address",
  (model, provider, providerName, apiBase, pending) => {
    expect(one({ model })).toMatchObject({
      provider,
      providerName,
      apiBase,
      pending,
    });
    if (pending !== null) {
      expect(one({ model }, { [pending]: "sk-1" })).toMatchObject({
        pending: null,
      });
    }
  },
);

test("the model id keeps its own slashes", () => {
  expect(one({ model: "openrouter/anthropic/claude-3.5" }).model).toBe(
    "anthropic/claude-3.5",
  );
  expect(
    one({ model: "anthropic/claude-3.5", custom_llm_provider: "openrouter" })
      .model,
  ).toBe("anthropic/claude-3.5");
});

test.each([
  ["openai/x", "http://b:1234", "http://b:1234/v1"],
  ["openai/x", "http://b:1234/v1/", "http://b:1234/v1"],
  ["ollama/x", "http://a:11434/", "http://a:11434/v1"],
  ["anthropic/x", "https://relay.example/v1/messages", "https://relay.example"],
  ["myserver/x", "http://c/api", "http://c/api"],
])("%s at %s is called under %s", (model, api_base, apiBase) => {
  expect(one({ model, api_base })).toMatchObject({ apiBase, pending: null });
});

test("a provider's own key never travels to another address", () => {
  expect(
    one(
      { model: "openai/x", api_base: "http://b:1" },
      { OPENAI_API_KEY: "sk-real" },
    ).apiKey,
  ).toBeNull();
  expect(
    one(
      { model: "openai/x", api_base: "os.environ/UNSET" },
      { OPENAI_API_KEY: "sk-real" },
    ),
  ).toMatchObject({
    apiKey: null,
    apiBase: "",
    pending: "UNSET",
  });
});

test("an unset variable in the provider's parameters makes the alias pending on it", () => {
  expect(one({ model: "openai/x", api_key: "os.environ/MY_KEY" }).pending).toBe(
    "MY_KEY",
  );
  expect(
    one({ model: "openai/x", api_key: "k", extra_headers: { a: "${TRACE}" } })
      .pending,
  ).toBe("TRACE");
});

test.each([
  ["openai/responses/gpt-5.5", "openai", "gpt-5.5", "responses"],
  ["azure/responses/mine", "azure", "mine", "responses"],
  ["azure/o_series/mine", "azure", "mine", "chat"],
  ["azure/gpt5_series/mine", "azure", "mine", "chat"],
  ["openrouter/responses/x", "openrouter", "responses/x", "chat"],
])(
  "LiteLLM's route of %s is not part of the id",
  (model, provider, id, mode) => {
    const params = { model, api_key: "k", api_base: "https://x.example.com" };
    expect(one(params)).toMatchObject({
      providerName: provider,
      model: id,
      mode,
    });
  },
);

test("azure requires an address, which may come from its variable", () => {
  expect(one({ model: "azure/mine", api_key: "k" }).pending).toBe(
    "AZURE_API_BASE",
  );
  expect(
    one({
      model: "azure/mine",
      api_key: "k",
      api_base: "https://x.openai.azure.com/",
      api_version: "2025-01-01",
    }),
  ).toMatchObject({
    provider: "azure",
    apiBase: "https://x.openai.azure.com",
    apiVersion: "2025-01-01",
    pending: null,
  });
});

test("limits, times, prices, headers and call defaults are typed", () => {
  const [first] = models([
    {
      model_name: "a",
      litellm_params: {
        model: "openai/x",
        api_key: "k",
        organization: "org-1",
        rpm: "6",
        tpm: 1000,
        weight: 2,
        timeout: 30,
        stream_timeout: "500ms",
        max_retries: 1,
        tags: ["paid"],
        extra_headers: { "X-Team": "kitchen" },
        drop_params: true,
        temperature: 0.2,
        input_cost_per_token: "1e-6",
      },
      model_info: {
        id: "mine",
        mode: "responses",
        base_model: "gpt-5",
        output_cost_per_token: 2e-6,
        note: "free",
      },
    },
  ]);
  expect(first).toMatchObject({
    id: "mine",
    rpm: 6,
    tpm: 1000,
    weight: 2,
    timeoutMs: 30_000,
    streamTimeoutMs: 500,
    maxRetries: 1,
    tags: ["paid"],
    dropParams: true,
    defaults: { temperature: 0.2 },
    mode: "responses",
    baseModel: "gpt-5",
    prices: { rates: { input: 1, output: 2 } },
    info: { note: "free" },
  });
  expect(first?.headers["x-team"]?.reveal()).toBe("kitchen");
  expect(first?.headers["openai-organization"]?.reveal()).toBe("org-1");
});

test("extra_body is sent with each call", () => {
  const defaultsOf = (model: string, extra_body: object) =>
    models([
      {
        model_name: "a",
        litellm_params: { model, api_key: "k", top_p: 1, extra_body },
      },
    ])[0]?.defaults;
  const order = { provider: { order: ["anthropic"] } };
  expect(defaultsOf("openrouter/x", order)).toEqual({ top_p: 1, ...order });
  const google = { google: { cached_content: "cachedContents/1" } };
  expect(defaultsOf("gemini/gemini-3-pro", google)).toEqual({
    top_p: 1,
    extra_body: google,
  });
});

test("of LiteLLM's effort with a summary, the effort is a default", () => {
  const reasoning_effort = { effort: "high", summary: "auto" };
  const params = { model: "openai/gpt-5", api_key: "k", reasoning_effort };
  const [model] = models([{ model_name: "a", litellm_params: params }]);
  expect(model?.defaults).toEqual({ reasoning_effort: "high" });
});

test("cache: auto is for Anthropic's models", () => {
  const entry = (model: string) => ({
    model_name: "a",
    provider_params: { model, api_key: "x", cache: "auto" },
  });
  expect(
    models([entry("anthropic/claude"), entry("openai/gpt")]).map(
      ({ cacheMarks }) => cacheMarks,
    ),
  ).toEqual([true, false]);
  const result = load(JSON.stringify({ model_list: [entry("openai/gpt")] }));
  expect(result.ok && result.warnings.map(({ message }) => message)).toEqual([
    "has no effect: other providers than Anthropic cache prompts without marks",
  ]);
});

test("settings of local runners are typed, and each has its default", () => {
  const { runner } = one({
    model: "ollama/a",
    slots: "2",
    queue_limit: 5,
    queue_timeout: "1m",
    cold_load_timeout: "15m",
    preload: ["7:05", "0 13 * * 1-5", true],
  });
  expect(runner).toEqual({
    slots: 2,
    queueLimit: 5,
    queueTimeoutMs: 60_000,
    coldLoadTimeoutMs: 900_000,
    preload: { atStart: true, crons: ["5 7 * * *", "0 13 * * 1-5"] },
  });
  const api_base = "http://runner:8080";
  expect(one({ model: "openai/a", api_base, slots: "auto" }).runner).toEqual({
    slots: "auto",
    queueLimit: 100,
    queueTimeoutMs: null,
    coldLoadTimeoutMs: 600_000,
    preload: { atStart: false, crons: [] },
  });
  expect(one({ model: "ollama/a" }).runner).toBeNull();
});

test.each([
  [{ slots: 0 }, "slots: must be a whole number from 1 to 10000, or auto"],
  [
    { preload: "25:00" },
    'preload: must be true (at the start), a time such as "07:30"',
  ],
  [{ preload: ["07:30", "0 0 31 2 *"] }, "preload: must be true"],
  [{ cold_load_timeout: "long" }, "cold_load_timeout: must be a duration"],
])("%j is rejected", (params, message) => {
  const result = load(
    JSON.stringify({
      model_list: [
        { model_name: "a", provider_params: { model: "ollama/a", ...params } },
      ],
    }),
  );
  expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([
    expect.stringContaining(message),
  ]);
});

test("settings of local runners have no effect at a cloud, and a misspelled one suggests the right name", () => {
  const result = load(
    JSON.stringify({
      model_list: [
        {
          model_name: "a",
          provider_params: { model: "anthropic/a", slots: 1 },
        },
        { model_name: "b", provider_params: { model: "ollama/b", slot: 1 } },
      ],
    }),
  );
  expect(result.ok && result.config.models.map(({ runner }) => runner)).toEqual(
    [null, null],
  );
  const warnings = result.ok ? result.warnings.map(formatProblem) : [];
  expect(warnings).toContainEqual(
    expect.stringContaining(
      "slots: has no effect: it is for runners of your own",
    ),
  );
  expect(warnings).toContainEqual(
    expect.stringContaining('(did you mean "slots"?)'),
  );
});

test("ids stay when an address changes behind its variable, and differ between entries", () => {
  const entry = {
    model_name: "a",
    provider_params: { model: "ollama/x", api_base: "os.environ/RUNNER" },
  };
  const [before] = models([entry], { RUNNER: "http://one:1" });
  const [after, twin] = models([entry, entry], { RUNNER: "http://two:2" });
  expect(after?.id).toBe(before?.id);
  expect(twin?.id).toBe(`${before?.id}-2`);
  const result = load(
    JSON.stringify({
      model_list: [1, 2].map(() => ({ ...entry, model_info: { id: "same" } })),
    }),
  );
  expect(
    result.ok ? [] : result.problems.map((problem) => problem.message),
  ).toEqual(["already exists; ids must be unique"]);
});

test("wildcards keep their asterisk", () => {
  const [wild] = models([
    {
      model_name: "openai/*",
      provider_params: { model: "openai/*", api_key: "k" },
    },
  ]);
  expect(wild).toMatchObject({ alias: "openai/*", model: "*" });
});

test("a realistic LiteLLM file parses; settings without a meaning here cause warnings", () => {
  const result = load(
    `model_list:
  - model_name: gpt-4o
    litellm_params:
      model: azure/gpt-4o-eu
      api_base: os.environ/AZURE_API_BASE
      api_key: "os.environ/AZURE_API_KEY"
      api_version: "2024-07-01-preview"
      rpm: 6
  - model_name: gpt-4o
    litellm_params: {model: openai/gpt-4o, api_key: os.environ/OPENAI_API_KEY, max_parallel_requests: 10}
  - model_name: claude
    litellm_params: {model: bedrock/anthropic.claude-v2, aws_region_name: us-east-1}
  - model_name: "*"
    litellm_params: {model: "openrouter/*", api_key: os.environ/OPENROUTER_API_KEY}
litellm_settings:
  drop_params: True
  set_verbose: False
  num_retries: 3
  request_timeout: 10
  success_callback: ["langfuse"]
  fallbacks: [{"gpt-4o": ["claude"]}]
  context_window_fallbacks: [{"gpt-4o": ["long"]}]
  content_policy_fallbacks: [{"gpt-4o": ["claude"]}]
  cache: yes
  cache_params: {type: redis, supported_call_types: [acompletion, atext_completion, embedding]}
router_settings:
  routing_strategy: usage-based-routing-v2
  redis_host: os.environ/REDIS_HOST
  redis_port: os.environ/REDIS_PORT
  model_group_alias: {"gpt-4": "gpt-4o", "old": {"model": "gpt-4o", "hidden": true}}
general_settings:
  master_key: sk-1234
  database_url: "postgresql://llmproxy:dbpassword@db:5432/litellm"
  alerting: ["slack"]
environment_variables:
  REDIS_HOST: redis.internal
  REDIS_PORT: "6390"
`,
    {
      AZURE_API_BASE: "https://eu.openai.azure.com",
      DATABASE_URL: "",
      PROXY_MASTER_KEY: "",
    },
  );
  if (!result.ok) {
    throw new Error(result.problems.map(formatProblem).join("\n"));
  }
  const { config } = result;
  expect(
    config.models.map((one) => [
      one.alias,
      one.provider,
      one.model,
      one.pending,
    ]),
  ).toEqual([
    ["gpt-4o", "azure", "gpt-4o-eu", "AZURE_API_KEY"],
    ["gpt-4o", "openai", "gpt-4o", "OPENAI_API_KEY"],
    ["*", "openai", "*", "OPENROUTER_API_KEY"],
  ]);
  expect(config.router).toMatchObject({
    strategy: "usage-based-routing",
    numRetries: 3,
    fallbacks: { "gpt-4o": ["claude"] },
    contextWindowFallbacks: { "gpt-4o": ["long"] },
    contentPolicyFallbacks: { "gpt-4o": ["claude"] },
    modelGroupAlias: {
      "gpt-4": { model: "gpt-4o", hidden: false },
      old: { model: "gpt-4o", hidden: true },
    },
  });
  expect(config.redis).toMatchObject({
    nodes: [{ host: "redis.internal", port: 6390 }],
    password: null,
    ca: null,
  });
  expect(config.cache).toMatchObject({
    enabled: true,
    kind: "redis",
    callTypes: ["acompletion", "aembedding"],
  });
  expect(config.general.dropParams).toBe(true);
  const unknown = ({ message }: ConfigProblem) =>
    /^(?:unknown )?setting "(\w+)"/.exec(message)?.[1];
  expect(
    result.warnings
      .map((each) => [each.path, unknown(each)].filter(Boolean).join("."))
      .sort(),
  ).toEqual([
    "general_settings.alerting",
    "general_settings.master_key",
    "litellm_settings.set_verbose",
    "litellm_settings.success_callback",
    "model_list[1].litellm_params.max_parallel_requests",
    "model_list[2].litellm_params.model",
  ]);
});

test("an address with a login is rejected without showing it: it would be in logs, and not be sent", () => {
  const api_base = "http://user:pa55word@runner:8080";
  const [model, hook] = [{ model: "openai/a", api_base }, { api_base }];
  const result = load(
    JSON.stringify({
      model_list: [{ model_name: "a", provider_params: model }],
      guardrails: [
        {
          guardrail_name: "g",
          litellm_params: {
            guardrail: "generic_guardrail_api",
            mode: "pre_call",
            ...hook,
          },
        },
      ],
    }),
  );
  const problems = result.ok ? [] : result.problems.map(formatProblem);
  expect(problems).toEqual(
    expect.arrayContaining([
      expect.stringContaining(
        "provider_params.api_base: must be an address without user and password",
      ),
      expect.stringContaining(
        "litellm_params.api_base: must be an address without user and password",
      ),
    ]),
  );
  expect(problems.join()).not.toContain("pa55word");
});

test("fallbacks to unknown models cause warnings", () => {
  const result =
    load(`model_list: [{model_name: a, provider_params: {model: ollama/a}}]
router_settings: {fallbacks: [{a: [b]}], default_fallbacks: [a]}
`);
  expect(result.ok && result.warnings.map(formatProblem)).toEqual([
    'c.yaml:2: router_settings.fallbacks: unknown model_name "b": correct or remove it, or add the model',
  ]);
});

test("fallbacks in both sections cause a warning: those of the router replace the others", () => {
  const result =
    load(`model_list: [{model_name: a, provider_params: {model: ollama/a}}]
router_settings: {fallbacks: [{a: [a]}]}
litellm_settings: {fallbacks: [{b: [a]}], context_window_fallbacks: [{a: [a]}]}
`);
  expect(result.ok && result.warnings.map(formatProblem)).toEqual([
    "c.yaml:3: litellm_settings.fallbacks: has no effect beside that of router_settings: write all entries there",
  ]);
});

test("fallbacks with other than names say what they have to be", () => {
  const result =
    load(`model_list: [{model_name: a, provider_params: {model: ollama/a}}]
router_settings: {fallbacks: [{a: [{model: a}]}]}
`);
  expect(!result.ok && result.problems.map(formatProblem)).toEqual([
    expect.stringContaining(
      "must be names of models by alias, such as - alias: [other, another]",
    ),
  ]);
});

test("a stored model follows the same rules and may not read the environment", () => {
  const env = { OPENAI_API_KEY: "sk-real", PROXY_MASTER_KEY: "sk-master" };
  const row = (params: object) =>
    deploymentFromRow({ model_name: "a", litellm_params: params }, env);
  const own = row({ model: "openai/x", api_key: "os.environ/OPENAI_API_KEY" });
  expect(own.ok && own.deployment.apiKey?.reveal()).toBe("sk-real");
  for (const stolen of [
    {
      model: "openai/x",
      api_base: "http://evil",
      api_key: "os.environ/OPENAI_API_KEY",
    },
    {
      model: "openai/x",
      api_key: "${PROXY_MASTER_KEY}",
      api_base: "http://evil",
    },
    { model: "openai/x", api_base: "http://evil/${PROXY_MASTER_KEY}" },
  ]) {
    const refused = row(stolen);
    expect(
      refused.ok ? [] : refused.problems.map((problem) => problem.message),
    ).toEqual([
      "must not refer to a variable, which only the configuration file may: use the value itself",
    ]);
  }
  const wrong = row({ model: "openai/x", rpm: "x" });
  expect(
    wrong.ok
      ? []
      : wrong.problems.map((problem) => [problem.path, problem.message]),
  ).toEqual([
    ["litellm_params.rpm", 'must be a whole number from 0; it is "x"'],
  ]);
});

test("names of built-in object properties are ordinary names", () => {
  const result = load(`
model_list:
- {model_name: constructor, provider_params: {model: openai/m, api_key: k}}
- {model_name: odd, provider_params: {model: toString/m}}
router_settings: {fallbacks: [{constructor: [valueOf]}], model_group_alias: {valueOf: constructor}}
`);
  expect(!result.ok && result.problems.map(formatProblem)).toEqual([
    'c.yaml:4: model_list[1].provider_params.model: unknown provider "toString"; for an OpenAI-compatible server, set api_base',
  ]);
});

test("names in a text are separated by commas, also in one whose spaces take minutes to search", () => {
  const tagsOf = (tags: string) => {
    const read = deploymentFromRow(
      { model_name: "m", provider_params: { model: "ollama/m", tags } },
      {},
    );
    return read.ok ? read.deployment.tags : null;
  };
  expect(tagsOf(" paid , free ")).toEqual(["paid", "free"]);
  expect(tagsOf(`paid${" ".repeat(500_000)}x`)).toHaveLength(1);
});
