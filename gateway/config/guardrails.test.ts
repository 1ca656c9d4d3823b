import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { formatProblem } from "../../core/config/problem.ts";
import { loadConfig } from "./load.ts";

const directory = mkdtempSync(join(tmpdir(), "hearth-guardrails-"));
afterAll(() => rmSync(directory, { recursive: true }));

const MODELS = `model_list:
  - model_name: judge
    litellm_params: { model: openai/omni, api_key: x, guardrails: [a] }
`;

function load(yaml: string, env: Readonly<Record<string, string>> = {}) {
  const file = join(directory, "gateway.yaml");
  writeFileSync(file, MODELS + yaml);
  return loadConfig({
    file,
    projectRoot: directory,
    env: {
      DATABASE_URL: "postgres://x@127.0.0.1/x",
      PROXY_MASTER_KEY: "sk-a-long-master-key-of-tests",
      HEARTH_JOURNAL_DIR: directory,
      ...env,
    },
  });
}

function problemsOf(yaml: string): readonly string[] {
  const loaded = load(yaml);
  return loaded.ok
    ? []
    : loaded.problems.map((problem) =>
        formatProblem(problem).replace(/^gateway\.yaml:/, ""),
      );
}

const guardrail = (params: string, name = "a") => `
  - { guardrail_name: ${name}, litellm_params: { ${params} } }`;
const FILTER =
  "guardrail: litellm_content_filter, mode: pre_call, patterns: [{ pattern_type: prebuilt, pattern_name: email }]";

test("guardrails in LiteLLM's form are read, in a section of their own or in litellm_settings", () => {
  const loaded = load(
    `guardrails:
  - guardrail_name: a
    litellm_params:
      guardrail: litellm_content_filter
      mode: [post_call, pre_call]
      default_on: true
      patterns:
        - { pattern_type: prebuilt, pattern_name: email, action: MASK }
        - { pattern_type: regex, pattern: 'X-\\d+', name: project }
      blocked_words: [{ keyword: a.b, action: MASK, description: about }]
      pattern_redaction_format: "<{pattern_name}>"
litellm_settings:
  guardrails:
    - guardrail_name: b
      litellm_params: { guardrail: generic_guardrail_api, mode: during_call, api_base: "http://127.0.0.1:1/", api_key: os.environ/GUARD_KEY, unreachable_fallback: fail_open }
      guardrail_info: { params: [] }
    - { guardrail_name: c, litellm_params: { guardrail: hide-secrets, mode: pre_call } }
    - { guardrail_name: d, litellm_params: { guardrail: openai_moderation, mode: pre_call, model: judge } }
`,
    { GUARD_KEY: "secret" },
  );
  expect(loaded.ok && loaded.warnings).toEqual([]);
  expect(
    loaded.ok && JSON.parse(JSON.stringify(loaded.config.guardrails)),
  ).toEqual([
    {
      name: "a",
      modes: ["pre_call", "post_call"],
      defaultOn: true,
      failOpen: false,
      streamWindow: 200,
      info: null,
      check: {
        kind: "patterns",
        patterns: [
          {
            name: "email",
            source: expect.any(String),
            isWord: false,
            action: "mask",
            replacement: "<EMAIL>",
          },
          {
            name: "project",
            source: "X-\\d+",
            isWord: false,
            action: "block",
            replacement: "<PROJECT>",
          },
          {
            name: "a.b",
            source: "a.b",
            isWord: true,
            action: "mask",
            replacement: "[KEYWORD_REDACTED]",
          },
        ],
      },
    },
    {
      name: "b",
      modes: ["during_call"],
      defaultOn: false,
      failOpen: true,
      streamWindow: 1_000,
      info: { params: [] },
      check: {
        kind: "service",
        url: "http://127.0.0.1:1/beta/litellm_basic_guardrail_api",
        headers: { "x-api-key": "[secret]" },
        params: {},
        timeoutMs: 10_000,
      },
    },
    expect.objectContaining({
      name: "c",
      streamWindow: 4_000,
      check: { kind: "secrets", action: "mask" },
    }),
    expect.objectContaining({
      name: "d",
      check: { kind: "moderation", model: "judge" },
    }),
  ]);
});

test.each([
  ["guardrails: {}", /guardrails: must be a list/],
  [
    `guardrails:${guardrail("guardrail: presidio, mode: pre_call")}`,
    /guardrail: unknown guardrail "presidio".*generic_guardrail_api/,
  ],
  [
    `guardrails:${guardrail("mode: pre_call")}`,
    /guardrail: is required and must be one of litellm_content_filter/,
  ],
  [
    `guardrails:${guardrail("guardrail: hide-secrets")}`,
    /mode: is required and must be one of pre_call, during_call, post_call/,
  ],
  [
    `guardrails:${guardrail("guardrail: hide-secrets, mode: logging_only")}`,
    /mode: must be one of pre_call/,
  ],
  [
    `guardrails:${guardrail("guardrail: hide-secrets, mode: during_call")}`,
    /mode: during_call cannot mask a prompt/,
  ],
  [
    `guardrails:${guardrail("guardrail: hide-secrets, mode: pre_call, detectors: x")}`,
    /unknown setting "detectors"/,
  ],
  [
    `guardrails:${guardrail("guardrail: litellm_content_filter, mode: pre_call")}`,
    /`patterns` or `blocked_words` is required/,
  ],
  [
    `guardrails:${guardrail("guardrail: litellm_content_filter, mode: pre_call, patterns: [{ pattern_type: prebuilt, pattern_name: emial }]")}`,
    /pattern_name: unknown pattern "emial" \(did you mean "email"\?\)/,
  ],
  [
    `guardrails:${guardrail("guardrail: litellm_content_filter, mode: pre_call, patterns: [{ pattern_type: regex, pattern: '(?=a)b' }]")}`,
    /pattern: is not a regular expression of RE2/,
  ],
  [
    `guardrails:${guardrail("guardrail: litellm_content_filter, mode: pre_call, patterns: [{ pattern_type: regex, pattern: 'a*' }]")}`,
    /pattern: must not match an empty text/,
  ],
  [
    `guardrails:${guardrail("guardrail: generic_guardrail_api, mode: pre_call")}`,
    /api_base is required/,
  ],
  [
    `guardrails:${guardrail('guardrail: generic_guardrail_api, mode: pre_call, api_base: "http://a", api_key: os.environ/UNSET_KEY')}`,
    /UNSET_KEY is not set/,
  ],
  [
    `guardrails:${guardrail("guardrail: openai_moderation, mode: pre_call, model: jugde")}`,
    /model: unknown model "jugde" \(did you mean "judge"\?\)/,
  ],
  [
    `guardrails:${guardrail(FILTER)}${guardrail(FILTER)}`,
    /guardrail_name: already exists/,
  ],
  [
    `guardrails:${guardrail(FILTER, "b")}`,
    /model_list: judge: unknown guardrail "a"/,
  ],
])("%s is rejected in one clear sentence", (yaml, message) => {
  const problems = problemsOf(yaml);
  expect(problems.filter((problem) => message.test(problem))).toHaveLength(1);
  expect(problems[0]).toMatch(/^\d+: /);
});

const FOUND: Readonly<Record<string, readonly string[]>> = {
  us_ssn: ["123-45-6789"],
  email: ["anna.b+c@example.co.uk"],
  phone: ["+1-555-123-4567", "(555) 123-4567"],
  visa: ["4532-1234-5678-9010"],
  mastercard: ["5425-2334-3010-9903", "2720990000000000"],
  amex: ["3782-822463-10005", "378282246310005"],
  aws_access_key: ["AKIAIOSFODNN7EXAMPLE"],
  github_token: [`ghp_${"a1B2".repeat(9)}`],
};

test.each(Object.entries(FOUND))(
  "the prebuilt pattern %s finds its kind",
  async (name, texts) => {
    const loaded = load(
      `guardrails:${guardrail(FILTER.replace("email", name))}`,
    );
    expect(loaded.ok).toBe(true);
    const check = loaded.ok ? loaded.config.guardrails[0]?.check : undefined;
    const { patternsChecking } = await import("../guardrails/patterns.ts");
    const checking = patternsChecking(
      check?.kind === "patterns" ? check.patterns : [],
    );
    for (const text of texts) {
      const found =
        checking.kind === "local"
          ? await checking.find(`see ${text}, or 12-34`, 0)
          : [];
      expect(found.map(({ start, end }) => [start, end])).toEqual([
        [4, 4 + text.length],
      ]);
    }
  },
);
