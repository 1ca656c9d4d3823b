import { afterAll, beforeAll, expect, test } from "vitest";
import {
  INPUT_PRICE,
  modelYaml,
  OUTPUT_PRICE,
  type TestGateway,
} from "../../servers/gateway.ts";
import { hasRedisServer } from "../../servers/redis.ts";
import dashboards from "./dashboard-queries.json" with { type: "json" };
import { startTwoInstances, type TwoInstances } from "./two-instances.ts";

// LiteLLM's metrics: https://docs.litellm.ai/docs/proxy/prometheus
const withRedis = hasRedisServer();
let instances: TwoInstances;
let gateway: TestGateway;
let key: string;
let hash: string;

const MODELS = (url: string) => `
  - model_name: gone
    litellm_params: { model: openai/gone, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 1, rpm: 100, tpm: 9000 }
    model_info: { id: gone-1 }
  - model_name: gone
    litellm_params: { model: openai/gone, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 1 }
    model_info: { id: gone-2 }
  - model_name: backed
    litellm_params: { model: openai/backed, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 0 }
    model_info: { id: backed-1 }
  - model_name: lone
    litellm_params: { model: openai/lone, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 0 }
    model_info: { id: lone-1 }
  - model_name: doomed
    litellm_params: { model: openai/doomed, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 0 }
    model_info: { id: doomed-1 }
  - model_name: drawn
    litellm_params: { model: openai/drawn, api_base: "${url}", api_key: x, output_cost_per_image: 0.01 }
    model_info: { mode: image_generation }
litellm_settings:
  callbacks: [prometheus]
  cache: true
  fallbacks: [{ backed: [mock] }, { doomed: [gone] }]
  enable_end_user_cost_tracking_prometheus_only: true
router_settings: { allowed_fails: 0, cooldown_minimum_calls: 1 }
general_settings: { metrics_label_values: 20 }
`;

const CACHE_USAGE = {
  prompt_tokens: 10,
  completion_tokens: 4,
  total_tokens: 14,
  prompt_tokens_details: {
    cached_tokens: 3,
    cache_write_tokens: 2,
    audio_tokens: 1,
  },
  completion_tokens_details: { reasoning_tokens: 2, audio_tokens: 1 },
};

beforeAll(async () => {
  if (!withRedis) {
    return;
  }
  instances = await startTwoInstances((url) => modelYaml(url, MODELS(url)));
  gateway = instances.one;
  await gateway.request("POST", "/organization/new", {
    organization_id: "o1",
    organization_alias: "house",
    max_budget: 50,
    budget_duration: "30d",
  });
  await gateway.request("POST", "/team/new", {
    team_id: "t1",
    team_alias: "kitchen",
    organization_id: "o1",
    max_budget: 20,
    budget_duration: "1d",
  });
  await gateway.request("POST", "/user/new", {
    user_id: "anna",
    max_budget: 5,
    budget_duration: "7d",
    auto_create_key: false,
  });
  await gateway.request("POST", "/customer/new", {
    user_id: "guest",
    max_budget: 2,
    budget_duration: "30d",
  });
  key = await gateway.createKey({
    team_id: "t1",
    key_alias: "stove",
    max_budget: 1,
    budget_duration: "1d",
  });
  const { json } = await gateway.request("GET", `/key/info?key=${key}`);
  hash = String(json["info"]?.["token"]);
  await makeCalls();
});

afterAll(() => instances?.stop());

/** Success, cache, stream, failure, cooldown, fallbacks, an exhausted budget, images. */
async function makeCalls(): Promise<void> {
  await gateway.chat(key, "one", { user: "guest" });
  await gateway.chat(key, "two");
  await gateway.chat(key, "two");
  await gateway.chat(key, "streamed", { stream: true });
  await gateway.chat(
    key,
    `[mock]${JSON.stringify({
      usage: CACHE_USAGE,
      headers: {
        "x-ratelimit-remaining-requests": "99",
        "x-ratelimit-remaining-tokens": "4321",
      },
    })}`,
  );
  const drawn = await gateway.request(
    "POST",
    "/v1/images/generations",
    { model: "drawn", prompt: "a stove", n: 2 },
    key,
  );
  expect(drawn.status).toBe(200);
  await gateway.chat(key, "doomed", { model: "doomed" });
  await gateway.chat(key, "gone", { model: "gone" });
  await gateway.chat(key, "lone", { model: "lone" });
  const backed = await gateway.chat(key, "backed", { model: "backed" });
  expect(backed.status).toBe(200);
  const poor = await gateway.createKey({ key_alias: "poor", max_budget: 0 });
  expect((await gateway.chat(poor, "poor")).status).toBe(400);
  const used = await gateway.createKey({
    key_alias: "used",
    user_id: "anna",
    max_budget: 3,
  });
  await gateway.chat(used, "of anna");
  await gateway.running.gateway.ledger.flush();
}

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

async function scrape(of = gateway): Promise<readonly Sample[]> {
  const { status, text } = await of.request("GET", "/metrics/");
  expect(status).toBe(200);
  const samples = text
    .split("\n")
    .filter((line) => line.startsWith("litellm_"))
    .map((line) => {
      const [, name = "", labels = "", value = ""] =
        /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      return {
        name,
        labels: Object.fromEntries(
          [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
            ([, label = "", text = ""]) => [label, text],
          ),
        ),
        value: Number(value),
      };
    });
  const names = samples.map(({ name, labels }) =>
    JSON.stringify([name, labels]),
  );
  expect(new Set(names).size).toBe(names.length);
  return samples;
}

/** The sum of the samples with these labels; null: there are none. */
function sumOf(
  samples: readonly Sample[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | null {
  const found = samples.filter(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(
        ([label, value]) => sample.labels[label] === value,
      ),
  );
  return found.length === 0
    ? null
    : found.reduce((sum, { value }) => sum + value, 0);
}

test.skipIf(!withRedis)(
  "every series and every label that LiteLLM's dashboards query exists",
  async () => {
    const samples = await scrape();
    const { dashboard_v2, dashboard_all_metrics } = dashboards;
    const queries = [...dashboard_v2, ...dashboard_all_metrics];
    expect(queries.length).toBeGreaterThan(70);
    for (const query of queries) {
      const names = [...query.matchAll(/\blitellm_\w+/g)]
        .map(([name]) => name)
        // `by (litellm_model_name)` is a label.
        .filter((name) => name !== "litellm_model_name");
      const labels = [...query.matchAll(/\bby \(([^)]*)\)/g)].flatMap(
        ([, list = ""]) => list.split(/,\s*/),
      );
      expect(names.length, query).toBeGreaterThan(0);
      for (const name of names) {
        const found = samples.filter((sample) => sample.name === name);
        expect(found.length, `${name} of ${query}`).toBeGreaterThan(0);
        for (const label of labels) {
          for (const sample of found) {
            expect(sample.labels[label], `${label} of ${query}`).toBeTruthy();
          }
        }
      }
    }
  },
);

test.skipIf(!withRedis)(
  "calls, tokens, spend and cache have LiteLLM's labels",
  async () => {
    const samples = await scrape();
    const caller = {
      hashed_api_key: hash,
      api_key_alias: "stove",
      team: "t1",
      team_alias: "kitchen",
      user: "None",
      org_id: "o1",
    };
    const ofModel = {
      ...caller,
      requested_model: "mock",
      model: "mock-model",
      api_provider: "openai",
    };
    expect(
      sumOf(samples, "litellm_proxy_total_requests_metric_total", {
        ...caller,
        requested_model: "mock",
        status_code: "200",
        route: "/v1/chat/completions",
      }),
    ).toBe(5);
    expect(sumOf(samples, "litellm_requests_metric_total", ofModel)).toBe(4);
    expect(sumOf(samples, "litellm_input_tokens_metric_total", ofModel)).toBe(
      40,
    );
    expect(sumOf(samples, "litellm_total_tokens_metric_total", ofModel)).toBe(
      56,
    );
    expect(
      sumOf(samples, "litellm_input_cached_tokens_metric_total", ofModel),
    ).toBe(3);
    expect(
      sumOf(samples, "litellm_output_reasoning_tokens_metric_total", ofModel),
    ).toBe(2);
    expect(
      sumOf(samples, "litellm_requests_metric_total", { end_user: "guest" }),
    ).toBe(1);
    expect(
      sumOf(samples, "litellm_cache_hits_metric_total", {
        api_key_alias: "stove",
      }),
    ).toBe(1);
    expect(sumOf(samples, "litellm_cached_tokens_metric_total", caller)).toBe(
      14,
    );
    expect(
      sumOf(samples, "litellm_images_generated_metric_total", caller),
    ).toBe(2);
    const { json } = await gateway.request("GET", `/key/info?key=${key}`);
    expect(
      sumOf(samples, "litellm_spend_metric_total", { hashed_api_key: hash }),
    ).toBeCloseTo(Number(json["info"]?.["spend"]), 12);
    expect(
      sumOf(samples, "litellm_spend_metric_total", { user: "anna" }),
    ).toBeCloseTo(10 * INPUT_PRICE + 4 * OUTPUT_PRICE, 12);
  },
);

test.skipIf(!withRedis)(
  "failures, fallbacks, cooldowns and deployments have the classes and states that LiteLLM gives them",
  async () => {
    const samples = await scrape();
    const failed = "litellm_proxy_failed_requests_metric_total";
    expect(
      sumOf(samples, failed, {
        api_key_alias: "poor",
        exception_class: "BudgetExceededError",
        exception_status: "400",
        requested_model: "mock",
      }),
    ).toBe(1);
    const deployment = "litellm_deployment_failure_responses_total";
    expect(
      sumOf(samples, deployment, {
        litellm_model_name: "gone",
        exception_class: "Openai.BadGatewayError",
        exception_status: "502",
      }),
    ).toBe(2);
    const fallback = { api_key_alias: "stove", team: "t1" };
    expect(
      sumOf(samples, "litellm_deployment_successful_fallbacks_total", {
        ...fallback,
        requested_model: "backed",
        fallback_model: "mock",
        exception_class: "Openai.BadGatewayError",
      }),
    ).toBe(1);
    expect(
      sumOf(samples, "litellm_deployment_failed_fallbacks_total", {
        ...fallback,
        requested_model: "doomed",
        fallback_model: "gone",
      }),
    ).toBe(1);
    for (const model_id of ["gone-1", "gone-2"]) {
      expect(
        sumOf(samples, "litellm_deployment_cooled_down_total", {
          model_id,
          exception_status: "502",
        }),
      ).toBe(1);
      expect(sumOf(samples, "litellm_deployment_state", { model_id })).toBe(2);
    }
    expect(
      sumOf(samples, "litellm_deployment_state", { model_id: "lone-1" }),
    ).toBe(1);
    // Other than in LiteLLM: its calls can go to a fallback.
    expect(
      sumOf(samples, "litellm_deployment_state", { model_id: "backed-1" }),
    ).toBe(2);
    expect(
      sumOf(samples, "litellm_deployment_state", {
        litellm_model_name: "mock-model",
      }),
    ).toBe(0);
    expect(
      sumOf(samples, "litellm_deployment_rpm_limit", { model_id: "gone-1" }),
    ).toBe(100);
    expect(
      sumOf(samples, "litellm_remaining_tokens_metric", {
        litellm_model_name: "mock-model",
      }),
    ).toBe(4321);
    // Its deployments were cooling down after the call to `doomed`.
    expect(
      sumOf(samples, failed, {
        requested_model: "gone",
        exception_class: "RouterRateLimitError",
        exception_status: "429",
      }),
    ).toBe(1);
  },
);

test.skipIf(!withRedis)("latencies have LiteLLM's bounds", async () => {
  const samples = await scrape();
  const bounds = new Set(
    samples
      .filter(
        ({ name }) => name === "litellm_request_total_latency_metric_bucket",
      )
      .map(({ labels }) => labels["le"]),
  );
  expect([...bounds]).toEqual(
    "0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2 5 10 30 60 120 300 420 600 +Inf".split(
      " ",
    ),
  );
  expect(
    sumOf(samples, "litellm_llm_api_time_to_first_token_metric_count", {
      api_key_alias: "stove",
    }),
  ).toBe(1);
});

test.skipIf(!withRedis)(
  "remaining budgets agree with the ledger on both instances",
  async () => {
    await instances.other.chat(key, "on the other one");
    await instances.other.running.gateway.ledger.flush();
    const { json } = await gateway.request("GET", `/key/info?key=${key}`);
    const spend = Number(json["info"]?.["spend"]);
    expect(spend).toBeGreaterThan(0);
    const team = await gateway.request("GET", "/team/info?team_id=t1");
    const ofTeam = Number(team.json["team_info"]?.["spend"]);
    for (const instance of [gateway, instances.other]) {
      // Results are kept for five seconds.
      await expect
        .poll(
          async () =>
            sumOf(
              await scrape(instance),
              "litellm_remaining_api_key_budget_metric",
              { hashed_api_key: hash, api_key_alias: "stove" },
            ),
          { timeout: 10_000, interval: 500 },
        )
        .toBeCloseTo(1 - spend, 12);
      const samples = await scrape(instance);
      expect(
        sumOf(samples, "litellm_remaining_team_budget_metric", {
          team: "t1",
          team_alias: "kitchen",
        }),
      ).toBeCloseTo(20 - ofTeam, 12);
      expect(
        sumOf(samples, "litellm_remaining_org_budget_metric", {
          org_alias: "house",
        }),
      ).toBeCloseTo(50 - ofTeam, 12);
      expect(
        sumOf(samples, "litellm_api_key_max_budget_metric", {
          api_key_alias: "poor",
        }),
      ).toBe(0);
      const hours = sumOf(
        samples,
        "litellm_api_key_budget_remaining_hours_metric",
        { api_key_alias: "stove" },
      );
      expect(hours).toBeGreaterThan(0);
      expect(hours).toBeLessThanOrEqual(24);
      expect(
        sumOf(samples, "litellm_api_key_budget_remaining_hours_metric", {
          api_key_alias: "used",
        }),
      ).toBeNull();
    }
  },
);
