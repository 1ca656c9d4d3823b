import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import {
  INPUT_PRICE,
  MASTER_KEY,
  modelYaml,
  OUTPUT_PRICE,
  startTestbed,
  startTestGateway,
  type Testbed,
} from "../../test/servers/gateway.ts";

let testbed: Testbed;

const MORE = `
  - model_name: gone
    provider_params: { model: openai/gone, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 1 }
    model_info: { id: gone-1 }
  - model_name: gone
    provider_params: { model: openai/gone, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 1 }
    model_info: { id: gone-2 }
  - model_name: backed
    provider_params: { model: openai/b, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 0 }
    model_info: { id: backed-1 }
  - model_name: slotted
    provider_params: { model: openai/s, api_base: "http://127.0.0.1:9/v1", api_key: x, slots: 1 }
  - model_name: slow
    provider_params: { model: openai/s, api_base: URL, api_key: x, hedge_after: 10ms }
  - model_name: slow
    provider_params: { model: openai/s, api_base: URL, api_key: x, hedge_after: 10ms }
proxy_settings: { cache: true, fallbacks: [{ backed: [mock] }] }
router_settings: { allowed_fails: 0, cooldown_minimum_calls: 1 }
general_settings: { metrics_key: the-key-of-prometheus, metrics_label_values: 3 }
guardrails:
  - guardrail_name: no-secrets
    litellm_params: { guardrail: hide-secrets, mode: pre_call }
`;

beforeAll(async () => {
  testbed = await startTestbed((url) =>
    modelYaml(url, MORE.replaceAll("URL", url)),
  );
});

afterAll(() => testbed?.stop());

async function collected(): Promise<string> {
  const answer = await testbed.gateway.request(
    "GET",
    "/metrics",
    undefined,
    "the-key-of-prometheus",
  );
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toContain("text/plain");
  return answer.text;
}

/** The value of a sample whose labels include these. */
function sample(
  text: string,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | null {
  const line = text
    .split("\n")
    .filter(
      (each) => each.startsWith(`${name}{`) || each.startsWith(`${name} `),
    )
    .find((each) =>
      Object.entries(labels).every(([label, value]) =>
        each.includes(`${label}="${value}"`),
      ),
    );
  return line === undefined ? null : Number(line.split(" ").at(-1));
}

/** Labels that Prometheus adds to each sample. */
const OF_PROMETHEUS = ["instance", "job"];

/** The names of the labels that the samples of a metric have. */
function labelsOf(text: string, name: string): readonly string[] {
  const samples = text
    .split("\n")
    .filter(
      (line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `),
    );
  expect(samples, name).not.toEqual([]);
  return [
    ...new Set(
      samples.flatMap((line) =>
        [...line.matchAll(/[{,](\w+)="/g)].map(([, label = ""]) => label),
      ),
    ),
  ];
}

test("calls, tokens, cost, latency and cache are counted by alias, provider, team and key", async () => {
  const { gateway } = testbed;
  await gateway.request("POST", "/team/new", {
    team_id: "t1",
    team_alias: "kitchen",
  });
  const key = await gateway.createKey({ team_id: "t1", key_alias: "stove" });
  await gateway.chat(key, "one");
  await gateway.chat(key, "two");
  await gateway.chat(key, "two");
  await gateway.chat(key, "streamed", { stream: true });
  await expect
    .poll(async () =>
      sample(await collected(), "hearth_first_token_seconds_count", {
        provider: "openai",
      }),
    )
    .toBe(1);
  const text = await collected();
  const of = {
    alias: "mock",
    provider: "openai",
    team: "kitchen",
    key_alias: "stove",
    status: "success",
  };
  expect(sample(text, "hearth_calls_total", of)).toBe(3);
  expect(sample(text, "hearth_tokens_total", { ...of, kind: "input" })).toBe(
    30,
  );
  expect(sample(text, "hearth_cost_dollars_total", of)).toBeCloseTo(
    3 * (10 * INPUT_PRICE + 4 * OUTPUT_PRICE),
    12,
  );
  expect(
    sample(text, "hearth_saved_dollars_total", { ...of, provider: "" }),
  ).toBeCloseTo(10 * INPUT_PRICE + 4 * OUTPUT_PRICE, 12);
  expect(sample(text, "hearth_cache_hits_total")).toBe(1);
  expect(sample(text, "hearth_cache_misses_total")).toBe(3);
  expect(
    sample(text, "hearth_call_duration_seconds_bucket", {
      alias: "mock",
      provider: "openai",
      le: "+Inf",
    }),
  ).toBe(3);
  expect(sample(text, "hearth_added_latency_seconds_count")).toBe(3);
});

test("failures, retries, fallbacks, cooldowns and rejections are counted", async () => {
  const { gateway } = testbed;
  const key = await gateway.createKey({ key_alias: "unlucky" });
  await gateway.chat(key, "gone", { model: "gone" });
  await gateway.chat(key, "rejected", { model: "gone" });
  await gateway.chat(key, "backed", { model: "backed" });
  const poor = await gateway.createKey({ max_budget: 0 });
  await gateway.chat(poor, "poor");
  const text = await collected();
  expect(
    sample(text, "hearth_provider_failures_total", {
      provider: "openai",
      status: "502",
    }),
  ).toBe(3);
  expect(
    sample(text, "hearth_calls_total", { alias: "gone", status: "failure" }),
  ).toBe(1);
  expect(sample(text, "hearth_retries_total", { alias: "gone" })).toBe(1);
  expect(sample(text, "hearth_retries_total", { alias: "backed" })).toBeNull();
  expect(sample(text, "hearth_fallbacks_total", { alias: "backed" })).toBe(1);
  expect(sample(text, "hearth_fallbacks_total", { alias: "gone" })).toBeNull();
  const coolingDown = ["gone-1", "gone-2", "backed-1"];
  for (const model_id of coolingDown) {
    expect(sample(text, "hearth_cooldowns_total", { model_id })).toBe(1);
  }
  expect(sample(text, "hearth_resting_deployments")).toBe(coolingDown.length);
  expect(
    sample(text, "hearth_unavailable_rejections_total", {
      alias: "gone",
      reason: "cooldown",
    }),
  ).toBe(1);
  expect(
    sample(text, "hearth_refusals_total", { type: "budget_exceeded" }),
  ).toBe(1);
});

test("a label takes a limited number of values", async () => {
  const { gateway } = testbed;
  for (let at = 0; at < 5; at++) {
    const key = await gateway.createKey({ key_alias: `many-${at}` });
    await gateway.chat(key, `of ${at}`);
  }
  const text = await collected();
  expect(
    sample(text, "hearth_calls_total", { key_alias: "other" }),
  ).toBeGreaterThanOrEqual(3);
  const values = new Set(
    [...text.matchAll(/key_alias="([^"]*)"/g)].map(([, value]) => value),
  );
  expect(values.size).toBe(4);
});

test("a name matched by a wildcard is counted as the wildcard, so that labels stay bounded", async () => {
  const wild = await startTestbed((url) =>
    modelYaml(
      url,
      `
  - model_name: "wild/*"
    provider_params: { model: "openai/*", api_base: ${url}, api_key: x }
  - model_name: flaky
    provider_params: { model: openai/f, api_base: ${url}, api_key: x, max_retries: 1 }
general_settings: { metrics_label_values: 3 }
`,
    ),
  );
  try {
    const key = await wild.gateway.createKey({});
    for (let at = 0; at < 5; at++) {
      await wild.gateway.chat(key, "hello", { model: `wild/${at}` });
    }
    await wild.gateway.chat(key, "hello");
    await wild.gateway.chat(key, '[mock]{"status":500}', { model: "flaky" });
    const { text } = await wild.gateway.request("GET", "/metrics");
    const calls = (alias: string) =>
      sample(text, "hearth_calls_total", { alias });
    expect(calls("wild/*")).toBe(5);
    expect(calls("mock")).toBe(1);
    expect(calls("flaky")).toBe(1);
    expect(calls("other")).toBeNull();
    expect(sample(text, "hearth_retries_total", { alias: "flaky" })).toBe(1);
  } finally {
    await wild.stop();
  }
});

test("reached soft budgets are counted by kind of payer, each present from the start", async () => {
  const { gateway } = testbed;
  const reached = async (payer: string) =>
    sample(await collected(), "hearth_soft_budgets_reached_total", { payer });
  for (const payer of [
    "key",
    "user",
    "team",
    "member",
    "organization",
    "tag",
  ]) {
    expect(await reached(payer)).toBe(0);
  }
  const key = await gateway.createKey({ soft_budget: 0.00001 });
  await gateway.chat(key, "softly");
  await gateway.chat(key, "softly on");
  await gateway.running.gateway.ledger.flush();
  expect(await reached("key")).toBe(1);
  expect(await reached("end_user")).toBe(0);
});

test("only roles that may read everything can scrape, and the metrics key does nothing else", async () => {
  const { gateway } = testbed;
  const key = await gateway.createKey({});
  const as = (path: string, by: string) =>
    gateway.request("GET", path, undefined, by);
  expect((await as("/metrics", key)).status).toBe(403);
  expect((await as("/metrics", "")).status).toBe(401);
  expect((await as("/metrics", "the-key-of-prometheu")).status).toBe(401);
  expect((await gateway.request("GET", "/metrics")).status).toBe(200);
  expect((await as("/v1/models", "the-key-of-prometheus")).status).toBe(401);
});

test("metrics and health are served from the start, even before the database was ever available", async () => {
  const gateway = await startTestGateway({
    databaseUrl: "postgresql://nobody:none@127.0.0.1:9/none",
    providerUrl: testbed.provider.url,
    yaml: `${modelYaml(testbed.provider.url)}general_settings: { metrics_key: the-key-of-prometheus }\n`,
    atOnce: true,
  });
  try {
    for (const key of ["the-key-of-prometheus", MASTER_KEY]) {
      const { status, text } = await gateway.request(
        "GET",
        "/metrics",
        undefined,
        key,
      );
      expect(status).toBe(200);
      expect(sample(text, "hearth_database_connected")).toBe(0);
    }
    const health = await gateway.request("GET", "/health?deep=true");
    expect([health.status, health.json["healthy_count"]]).toEqual([200, 1]);
    const unknown = await gateway.request("GET", "/metrics", undefined, "sk-x");
    expect([unknown.status, unknown.json["error"]?.["type"]]).toEqual([
      503,
      "database_unavailable",
    ]);
    for (const key of ["", "x"]) {
      expect(
        (await gateway.request("GET", "/metrics", undefined, key)).status,
      ).toBe(401);
    }
    expect((await gateway.request("GET", "/v1/models")).status).toBe(503);
    // Its call to the provider waits in the journal.
    expect(gateway.running.gateway.journal.state().pendingRecords).toBe(1);
  } finally {
    await gateway.stop();
  }
});

test("every metric that the example dashboard and the alert rules name exists, with its labels", async () => {
  const checked = await testbed.gateway.chat(MASTER_KEY, "checked", {
    guardrails: ["no-secrets"],
  });
  expect(checked.status).toBe(200);
  await testbed.gateway.chat(MASTER_KEY, '[mock]{"delayMs":200}', {
    model: "slow",
  });
  const text = await collected();
  const known = new Map(
    [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [
      name,
      type,
    ]),
  );
  const read = (file: string) =>
    readFileSync(new URL(`../../config/${file}`, import.meta.url), "utf8");
  const dashboard = JSON.parse(read("grafana/hearth.json")) as {
    panels: { targets: { expr: string; legendFormat: string }[] }[];
  };
  const rules = parse(read("prometheus/alerts.yaml")) as {
    groups: { rules: { expr: string; annotations: { summary: string } }[] }[];
  };
  const shownBy = [
    ...dashboard.panels
      .flatMap(({ targets }) => targets)
      .map(({ expr, legendFormat }) => ({ expr, says: legendFormat })),
    ...rules.groups
      .flatMap((group) => group.rules)
      .map(({ expr, annotations }) => ({ expr, says: annotations.summary })),
  ];
  const expressions = shownBy.map(({ expr }) => expr);
  for (const { expr, says } of shownBy) {
    const metrics = [
      ...expr.matchAll(/\b((?:hearth|process|nodejs)_\w+)(?:\{([^}]*)\})?/g),
    ];
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(
      ([, labels = ""]) => labels.split(/,\s*/),
    );
    const shownLabels = [
      ...says.matchAll(/\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}/g),
    ].map(([, label = ""]) => label);
    // A sum has no labels other than those of its grouping.
    if (grouped.length > 0) {
      expect(
        shownLabels.filter((label) => !grouped.includes(label)),
        expr,
      ).toEqual([]);
    }
    for (const [, name = "", matchers = ""] of metrics) {
      const matched = [...matchers.matchAll(/(\w+)\s*(?:=|!=)/g)].map(
        ([, label = ""]) => label,
      );
      const there = [...labelsOf(text, name), ...OF_PROMETHEUS];
      for (const label of [...matched, ...grouped, ...shownLabels]) {
        expect(there, `${label} of ${expr}`).toContain(label);
      }
    }
  }
  const named = new Set(
    expressions.flatMap((expr) => [
      ...(expr.match(/\b(hearth|process|nodejs)_\w+/g) ?? []),
    ]),
  );
  // The label of the gateway's own job is not a metric.
  named.delete("hearth_gateway");
  for (const name of named) {
    const family = name.replace(/_(bucket|sum|count)$/, "");
    expect(known.get(name) ?? known.get(family), name).toBeDefined();
  }
  const ours = [...known.keys()].filter((name) => name?.startsWith("hearth_"));
  const shown = [...named].map((name) => name.replace(/_bucket$/, ""));
  expect(ours.filter((name) => !shown.includes(String(name)))).toEqual([]);
});
