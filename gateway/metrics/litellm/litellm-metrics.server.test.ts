import { afterEach, expect, test, vi } from "vitest";
import {
  modelYaml,
  startTestbed,
  type Testbed,
} from "../../../test/servers/gateway.ts";
import { query } from "../../database/pool.ts";

let testbed: Testbed | undefined;

afterEach(async () => {
  await testbed?.stop();
  testbed = undefined;
});

async function start(settings: string, general = ""): Promise<Testbed> {
  testbed = await startTestbed((url) =>
    modelYaml(url, `litellm_settings: { ${settings} }\n${general}`),
  );
  return testbed;
}

async function scrape({ gateway }: Testbed): Promise<string> {
  // A call is counted after its answer.
  const { activeCalls } = gateway.running.gateway;
  await expect.poll(() => activeCalls.count(), { timeout: 10_000 }).toBe(0);
  const { status, text } = await gateway.request("GET", "/metrics");
  expect(status).toBe(200);
  return text;
}

/** The samples of a metric. */
function linesOf(text: string, name: string): readonly string[] {
  return text
    .split("\n")
    .filter(
      (line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `),
    );
}

test("without the callback there are no metrics of LiteLLM, and nothing is counted for them", async () => {
  const bed = await start("cache: false");
  await bed.gateway.chat(await bed.gateway.createKey(), "hello");
  expect(await scrape(bed)).not.toContain("litellm_");
  expect(bed.gateway.running.gateway.metrics.litellm).toBeNull();
});

test("litellm_metrics decides whatever the callbacks say", async () => {
  const off = await start("litellm_metrics: false, callbacks: [prometheus]");
  expect(await scrape(off)).not.toContain("litellm_");
  await off.stop();
  const on = await start("litellm_metrics: true");
  await on.gateway.chat(await on.gateway.createKey(), "hello");
  const text = await scrape(on);
  expect(linesOf(text, "litellm_requests_metric_total")).toHaveLength(1);
  expect(text).toContain("hearth_calls_total");
});

test("end users are no label unless that is enabled", async () => {
  const bed = await start("success_callback: [prometheus]");
  const key = await bed.gateway.createKey();
  await bed.gateway.request("POST", "/customer/new", {
    user_id: "guest",
    max_budget: 1,
  });
  const answer = await bed.gateway.chat(key, "hello", { user: "guest" });
  expect(answer.text).toContain("four words in here");
  const text = await scrape(bed);
  const [line] = linesOf(text, "litellm_requests_metric_total");
  expect(line).toContain('end_user="None"');
  expect(linesOf(text, "litellm_customer_max_budget_metric")).toEqual([]);
});

test("prometheus_metrics_config selects metrics and labels; what then coincides is summed", async () => {
  const bed = await start(
    `callbacks: [prometheus], prometheus_exclude_labels: [route],
    prometheus_metrics_config: [
      { group: spend, metrics: [litellm_spend_metric], include_labels: [model] },
      { group: calls, metrics: [litellm_proxy_total_requests_metric, litellm_requests_metric] },
      { group: latency, metrics: [litellm_request_total_latency_metric], include_labels: [team] },
      { group: state, metrics: [litellm_deployment_state], include_labels: [api_provider] } ],
    prometheus_exclude_metrics: [litellm_requests_metric]`,
  );
  for (const key_alias of ["one", "two"]) {
    const key = await bed.gateway.createKey({ key_alias });
    await bed.gateway.chat(key, `of ${key_alias}`);
  }
  const text = await scrape(bed);
  const types = [...text.matchAll(/^# TYPE (litellm_\w+)/gm)].map(
    ([, name]) => name,
  );
  expect(types.toSorted()).toEqual([
    "litellm_deployment_state",
    "litellm_proxy_total_requests_metric_total",
    "litellm_request_total_latency_metric",
    "litellm_spend_metric_total",
  ]);
  const [spend, ...more] = linesOf(text, "litellm_spend_metric_total");
  expect(more).toEqual([]);
  expect(spend).toMatch(/^litellm_spend_metric_total\{model="mock-model"\} /);
  expect(
    linesOf(text, "litellm_proxy_total_requests_metric_total"),
  ).toHaveLength(2);
  expect(text).not.toContain("route=");
  expect(linesOf(text, "litellm_deployment_state")).toEqual([
    'litellm_deployment_state{api_provider="openai"} 0',
  ]);
  expect(linesOf(text, "litellm_request_total_latency_metric_count")).toEqual([
    'litellm_request_total_latency_metric_count{team="None"} 2',
  ]);
});

test("labels take a limited number of values, and nothing is lost", async () => {
  const bed = await start(
    "callbacks: [prometheus]",
    "general_settings: { metrics_label_values: 2 }\n",
  );
  for (let at = 0; at < 8; at++) {
    const key = await bed.gateway.createKey({ key_alias: `many-${at}` });
    await bed.gateway.chat(key, `of ${at}`);
  }
  const lines = linesOf(await scrape(bed), "litellm_requests_metric_total");
  const sum = lines.reduce(
    (total, line) => total + Number(line.split(" ").at(-1)),
    0,
  );
  expect(sum).toBe(8);
  const keys = lines.map((line) => /hashed_api_key="(\w+)"/.exec(line)?.[1]);
  expect(keys.toSorted()).toHaveLength(3);
  expect(keys).toContain("other");
});

test("guessed keys and names of models do not become series", async () => {
  const bed = await start("callbacks: [prometheus]");
  const key = await bed.gateway.createKey({ key_alias: "curious" });
  for (const name of ["no-such-model-1", "no-such-model-2"]) {
    expect((await bed.gateway.chat(key, "x", { model: name })).status).toBe(
      400,
    );
  }
  await bed.gateway.chat("sk-guessed-guessed-guessed", "hello");
  const text = await scrape(bed);
  expect(text).not.toContain("no-such-model");
  const failed = linesOf(text, "litellm_proxy_failed_requests_metric_total");
  expect(failed).toHaveLength(1);
  expect(failed[0]).toMatch(
    /api_key_alias="curious".*requested_model="None".* 2$/,
  );
});

test("a scrape with 10,000 keys takes a constant number of statements and shows those that used most of their budget", async () => {
  const bed = await start("callbacks: [prometheus]");
  const { pool } = bed.gateway.running.gateway;
  await query(
    pool,
    `INSERT INTO keys (token, key_name, key_alias, max_budget)
       SELECT md5(n::text) || md5(n::text), 'sk-...' || n, 'key-' || n, 10 FROM generate_series(1, 10000) n`,
  );
  await query(
    pool,
    `INSERT INTO spend_totals (entity, window_name, window_start, window_end, spend, version)
       SELECT 'key:' || token, 'all', '-infinity', 'infinity', substr(key_alias, 5)::numeric / 1000, 1 FROM keys`,
  );
  const statements = vi.spyOn(pool, "query");
  const text = await scrape(bed);
  expect(statements.mock.calls.length).toBeLessThan(10);
  const remaining = linesOf(text, "litellm_remaining_api_key_budget_metric");
  expect(remaining).toHaveLength(200);
  expect(remaining[0]).toMatch(/api_key_alias="key-10000"\} 0$/);
  expect(remaining[199]).toMatch(/api_key_alias="key-9801"\} 0.199$/);
});

test("metrics are served while Postgres is unavailable, without budgets", async () => {
  const bed = await start("callbacks: [prometheus]");
  const key = await bed.gateway.createKey({ max_budget: 1 });
  await bed.gateway.chat(key, "hello");
  const { gateway } = bed.gateway.running;
  vi.spyOn(gateway.database, "connected").mockReturnValue(false);
  const text = await scrape(bed);
  expect(linesOf(text, "litellm_requests_metric_total")).toHaveLength(1);
  expect(linesOf(text, "litellm_remaining_api_key_budget_metric")).toEqual([]);
});
