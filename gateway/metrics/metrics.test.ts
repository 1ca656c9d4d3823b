import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import {
  INPUT_PRICE,
  modelYaml,
  OUTPUT_PRICE,
  startStand,
  type Stand,
} from "../../test/servers/gateway.ts";

let stand: Stand;

const MORE = `
  - model_name: gone
    provider_params: { model: openai/gone, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 0 }
  - model_name: backed
    provider_params: { model: openai/b, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 1 }
proxy_settings: { cache: true, fallbacks: [{ backed: [mock] }] }
router_settings: { allowed_fails: 0 }
general_settings: { metrics_key: the-key-of-prometheus, metrics_label_values: 3 }
`;

beforeAll(async () => {
  stand = await startStand((url) => modelYaml(url, MORE));
});

afterAll(() => stand?.stop());

async function collected(): Promise<string> {
  const answer = await stand.gateway.request(
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

test("calls, tokens, cost, latency and cache are counted by alias, provider, team and key", async () => {
  const { gateway } = stand;
  await gateway.request("POST", "/team/new", {
    team_id: "t1",
    team_alias: "kitchen",
  });
  const key = await gateway.makeKey({ team_id: "t1", key_alias: "stove" });
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

test("failures, retries, fallbacks, rests and refusals are counted", async () => {
  const { gateway } = stand;
  const key = await gateway.makeKey({ key_alias: "unlucky" });
  await gateway.chat(key, "gone", { model: "gone" });
  await gateway.chat(key, "backed", { model: "backed" });
  const poor = await gateway.makeKey({ max_budget: 0 });
  await gateway.chat(poor, "poor");
  const text = await collected();
  expect(
    sample(text, "hearth_provider_failures_total", {
      provider: "openai",
      status: "502",
    }),
  ).toBeGreaterThanOrEqual(2);
  expect(
    sample(text, "hearth_calls_total", { alias: "gone", status: "failure" }),
  ).toBe(1);
  expect(sample(text, "hearth_fallbacks_total", { alias: "backed" })).toBe(1);
  expect(sample(text, "hearth_resting_deployments")).toBe(2);
  expect(
    sample(text, "hearth_refusals_total", { type: "budget_exceeded" }),
  ).toBe(1);
});

test("a label takes no more values than it may", async () => {
  const { gateway } = stand;
  for (let at = 0; at < 5; at++) {
    const key = await gateway.makeKey({ key_alias: `many-${at}` });
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

test("only those who may read everything collect, and the metrics key does nothing else", async () => {
  const { gateway } = stand;
  const key = await gateway.makeKey({});
  const as = (path: string, by: string) =>
    gateway.request("GET", path, undefined, by);
  expect((await as("/metrics", key)).status).toBe(403);
  expect((await as("/metrics", "")).status).toBe(401);
  expect((await as("/metrics", "the-key-of-prometheu")).status).toBe(401);
  expect((await gateway.request("GET", "/metrics")).status).toBe(200);
  expect((await as("/v1/models", "the-key-of-prometheus")).status).toBe(401);
});

test("every metric that the example dashboard and the alert rules name exists, with its labels", async () => {
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
    panels: { targets: { expr: string }[] }[];
  };
  const rules = parse(read("prometheus/alerts.yaml")) as {
    groups: { rules: { expr: string }[] }[];
  };
  const expressions = [
    ...dashboard.panels.flatMap(({ targets }) => targets),
    ...rules.groups.flatMap((group) => group.rules),
  ].map(({ expr }) => expr);
  const named = new Set(
    expressions.flatMap((expr) => [
      ...(expr.match(/\b(hearth|process|nodejs)_\w+/g) ?? []),
    ]),
  );
  // The label of our own job is no metric.
  named.delete("hearth_gateway");
  for (const name of named) {
    const family = name.replace(/_(bucket|sum|count)$/, "");
    expect(known.get(name) ?? known.get(family), name).toBeDefined();
  }
  const ours = [...known.keys()].filter((name) => name?.startsWith("hearth_"));
  const shown = [...named].map((name) => name.replace(/_bucket$/, ""));
  expect(ours.filter((name) => !shown.includes(String(name)))).toEqual([]);
});
