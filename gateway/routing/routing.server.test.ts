import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  MASTER_KEY,
  startPairTestbed,
  type PairTestbed,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import type { MockProvider } from "../../test/servers/provider.ts";
import { query } from "../database/pool.ts";

let testbed: PairTestbed;
let good: MockProvider;
let bad: MockProvider;
let gateway: TestGateway;

beforeAll(async () => {
  testbed = await startPairTestbed({ alwaysStatus: 500 }, yaml);
  ({ gateway, provider: good, other: bad } = testbed);
});

afterAll(() => testbed?.stop());

/** Nothing listens there. */
const CLOSED_URL = "http://127.0.0.1:1/v1";

function yaml(goodUrl: string, badUrl: string): string {
  const deployment = (alias: string, url: string, more = "") =>
    `  - model_name: ${alias}\n    provider_params: { model: openai/m, api_base: "${url}", api_key: x, input_cost_per_token: 0.000001, output_cost_per_token: 0.000002${more} }\n`;
  return `model_list:
${deployment("mixed", badUrl)}${deployment("mixed", goodUrl)}
${deployment("broken", badUrl, ", max_retries: 0")}
${deployment("broken-first", badUrl, ", max_retries: 1")}
${deployment("cools", badUrl, ", max_retries: 0")}${deployment("cools", badUrl, ", max_retries: 0")}
${deployment("gone", CLOSED_URL, ", max_retries: 0")}${deployment("gone", CLOSED_URL, ", max_retries: 0")}
${deployment("works", goodUrl)}
${deployment("dear", goodUrl.replace("127.0.0.1", "localhost"), ", weight: 1")}
${deployment("limited", goodUrl, ", rpm: 2")}
${deployment("limited-first", goodUrl, ", rpm: 1")}
${deployment("long", goodUrl)}
${deployment("pauses", goodUrl)}
  - model_name: either
    provider_params: { model: anthropic/claude, api_base: "${badUrl}", api_key: x }
${deployment("either", goodUrl)}
${deployment("lacks-second", badUrl, ", max_retries: 0")}
  - model_name: lacks
    provider_params: { model: anthropic/claude, api_base: "${goodUrl}", api_key: x, rpm: 2 }
router_settings:
  routing_strategy: usage-based-routing
  allowed_fails: 3
  cooldown_time: 60
  num_retries: 2
  model_group_alias: { works-too: works }
  fallbacks: [{ broken-first: [broken, works-too] }, { lacks-second: [lacks, works] }, { limited-first: [works] }]
  context_window_fallbacks: [{ long: [works] }]
`;
}

let key: string;
beforeEach(async () => {
  key = await gateway.createKey({});
});

test("after a failure another deployment answers at once, as the headers show", async () => {
  for (let call = 0; call < 6; call++) {
    const answer = await gateway.chat(key, `question ${call}`, {
      model: "mixed",
    });
    expect(answer.status).toBe(200);
  }
  const [row] = await query<{ count: number }>(
    gateway.running.gateway.pool,
    "SELECT count(*) FROM spend_log WHERE model_group = 'mixed' AND status = 'failure'",
  );
  expect(row?.count).toBe(0);
});

test("a deployment that does not support a parameter of a call is skipped", async () => {
  const fields = { n: 2, logit_bias: { "1": 1 } };
  const fallen = await gateway.chat(key, "fall over", {
    model: "lacks-second",
    ...fields,
  });
  expect(fallen.status).toBe(200);
  expect(fallen.headers.get("x-hearth-attempted-fallbacks")).toBe("1");
  for (let call = 0; call < 6; call++) {
    const answer = await gateway.chat(key, `other ${call}`, {
      model: "either",
      ...fields,
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-hearth-provider")).toBe("openai");
  }
  const none = await gateway.chat(key, "none", { model: "lacks", ...fields });
  expect(none.status).toBe(400);
  expect(none.json["error"]?.["param"]).toBe("n");
});

test("a call that goes to a fallback because its alias is at its limit counts no retries", async () => {
  const ask = () => gateway.chat(key, "limited", { model: "limited-first" });
  await ask();
  const answer = await ask();
  const attempted = (what: string) =>
    answer.headers.get(`x-hearth-attempted-${what}`);
  expect([attempted("retries"), attempted("fallbacks")]).toEqual(["0", "1"]);
  const metrics = await gateway.request("GET", "/metrics");
  expect(metrics.text).not.toMatch(/^hearth_\w*retries\w*\{.*\} -/m);
});

test("fallbacks are tried in order until one answers; the row names that one", async () => {
  const answer = await gateway.chat(key, "fall back", {
    model: "broken-first",
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("x-hearth-attempted-fallbacks")).toBe("2");
  await gateway.running.gateway.ledger.flush();
  const [row] = await query<Record<string, unknown>>(
    gateway.running.gateway.pool,
    "SELECT * FROM spend_log WHERE request_id = $1",
    [answer.headers.get("x-hearth-call-id")],
  );
  expect(row).toMatchObject({ status: "success", model_group: "broken-first" });
  expect(row?.["model_id"]).toBe(answer.headers.get("x-hearth-model-id"));
  expect((row?.["metadata"] as { attempts: unknown[] }).attempts.length).toBe(
    3,
  );
});

test.each([
  ["may not use", { models: ["broken-first", "broken"] }],
  ["has a budget for", { model_max_budget: { works: 1 } }],
  [
    "has a budget for under the configured name",
    { model_max_budget: { "works-too": 1 } },
  ],
  ["has a limit for", { model_rpm_limit: { works: 100 } }],
])("a fallback that the key %s is skipped", async (_, fields) => {
  const answer = await gateway.chat(await gateway.createKey(fields), "narrow", {
    model: "broken-first",
  });
  expect(answer.status).toBe(500);
  expect(answer.json["error"]?.["type"]).toBe("upstream_error");
});

test.each([
  { status: 402, error: { message: "Insufficient Balance" } },
  { status: 400, error: { message: "Your credit balance is too low." } },
  { status: 498, error: { message: "capacity_exceeded" } },
])("a fallback answers after $status $error.message", async (failure) => {
  const answer = await gateway.chat(key, `[mock]${JSON.stringify(failure)}`, {
    model: "works",
    num_retries: 0,
    fallbacks: [{ model: "dear", messages: [{ role: "user", content: "x" }] }],
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("x-hearth-attempted-fallbacks")).toBe("1");
});

test("deployments that failed too often cool down, and the rejection states until when and why", async () => {
  // Five failures each, in any order.
  for (let call = 0; call < 10; call++) {
    expect(
      (await gateway.chat(key, `fails ${call}`, { model: "cools" })).status,
    ).toBe(500);
  }
  const seen = bad.requests.length;
  const refused = await gateway.chat(key, "cooling down", { model: "cools" });
  expect(refused.status).toBe(429);
  expect(refused.json["error"]).toMatchObject({
    type: "no_deployments_available",
  });
  // The address is shown to administrators only.
  expect(refused.json["error"]?.["message"]).toContain("(the provider: the");
  const shownToAdmin = await gateway.chat(MASTER_KEY, "x", { model: "cools" });
  expect(shownToAdmin.json["error"]?.["message"]).toContain(bad.url);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(50);
  expect(bad.requests.length).toBe(seen);
});

test("the rejection names an unreachable deployment once", async () => {
  for (let call = 0; call < 10; call++) {
    await gateway.chat(key, `gone ${call}`, { model: "gone" });
  }
  const refused = await gateway.chat(key, "gone", { model: "gone" });
  expect(refused.json["error"]?.["message"]).toContain(
    "is available (the provider cannot be reached",
  );
});

test("a prompt that is too long is sent to the alias for long ones", async () => {
  const answer = await gateway.chat(
    key,
    '[mock]{"status":400,"error":{"message":"maximum context length is 8192"}}',
    { model: "long" },
  );
  // The mock fails the same way for the other alias: it was called, and its error is the answer.
  expect(answer.status).toBe(400);
  expect(answer.headers.get("x-hearth-attempted-fallbacks")).toBe("1");
});

test("a backend's requests per minute are limited", async () => {
  const answers = [];
  for (let call = 0; call < 3; call++) {
    answers.push(
      (await gateway.chat(key, `limited ${call}`, { model: "limited" })).status,
    );
  }
  expect(answers).toEqual([200, 200, 429]);
});

test("the caller's retries, fallbacks and timeout take precedence", async () => {
  const before = bad.requests.length;
  const alone = await gateway.chat(key, "no retries", {
    model: "broken-first",
    num_retries: 0,
    fallbacks: [],
  });
  expect(alone.status).not.toBe(200);
  expect(bad.requests.length - before).toBeLessThanOrEqual(1);
  const other = await gateway.chat(key, "own fallback", {
    model: "broken-first",
    fallbacks: ["works"],
  });
  expect(other.status).toBe(200);
  const late = await gateway.chat(key, '[mock]{"delayMs":2000}', {
    model: "works",
    timeout: 0.1,
  });
  expect(late.status).toBe(408);
  const nonsense = await gateway.chat(key, "x", {
    timeout: "soon",
    model: "works",
  });
  expect(nonsense.json["error"]?.["param"]).toBe("timeout");
});

test("mock hooks work for keys that may use them, and for no others", async () => {
  const may = await gateway.createKey({
    metadata: { allow_client_mock_response: true },
  });
  const mocked = await gateway.chat(may, "x", {
    model: "works",
    mock_response: "canned",
  });
  expect(mocked.json["choices"]?.["0"]?.["message"]?.["content"]).toBe(
    "canned",
  );
  const real = await gateway.chat(key, "x", {
    model: "works",
    mock_response: "canned",
  });
  expect(real.json["choices"]?.["0"]?.["message"]?.["content"]).not.toBe(
    "canned",
  );
  const failed = await gateway.chat(may, "y", {
    model: "works",
    mock_testing_fallbacks: true,
    num_retries: 0,
    fallbacks: ["dear"],
  });
  expect(failed.headers.get("x-hearth-attempted-fallbacks")).toBe("1");
});

test("a call that has no time for the pause before a retry goes to its fallback, else ends with the failure", async () => {
  const before = good.requests.length;
  const ask = (fallbacks: readonly string[]) =>
    gateway.chat(key, `${fallbacks} [mock]{"status":503,"retryAfter":4}`, {
      model: "pauses",
      num_retries: 1,
      timeout: 2,
      fallbacks,
    });
  const failed = await ask([]);
  expect(failed.status).toBe(503);
  expect(good.requests.length).toBe(before + 1);
  const fellBack = await ask(["dear"]);
  expect(fellBack.headers.get("x-hearth-attempted-fallbacks")).toBe("1");
  expect(good.requests.length).toBe(before + 3);
});

test.each([
  ["while it is called", { delayMs: 300, status: 500 }, 0],
  ["in the pause before the retry", { status: 503, retryAfter: 3 }, 300],
])(
  "a call whose client has left is not retried: %s",
  async (_when, mock, ms) => {
    const aborter = new AbortController();
    const before = good.requests.length;
    const left = fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({
        model: "works",
        num_retries: 3,
        messages: [{ role: "user", content: `[mock]${JSON.stringify(mock)}` }],
      }),
      signal: aborter.signal,
    });
    const failed = expect(left).rejects.toThrow();
    await expect.poll(() => good.requests.length).toBe(before + 1);
    await sleep(ms);
    aborter.abort();
    await failed;
    await expect
      .poll(() => gateway.running.gateway.activeCalls.count(), {
        timeout: 10_000,
      })
      .toBe(0);
    expect(good.requests.length).toBe(before + 1);
  },
);

test("an invented answer has the shape of its route", async () => {
  const ask = (path: string, fields: object) =>
    gateway.request("POST", path, {
      model: "works",
      mock_response: "invented",
      ...fields,
    });
  const response = await ask("/v1/responses", { input: "x" });
  expect(response.json).toMatchObject({
    object: "response",
    output: [{ content: [{ text: "invented" }] }],
  });
  const stream = await ask("/v1/responses", { input: "x", stream: true });
  expect(stream.text).toContain("event: response.completed");
  const completion = await ask("/v1/completions", { prompt: "x" });
  expect(completion.json).toMatchObject({
    object: "text_completion",
    choices: [{ text: "invented" }],
  });
  const embedding = await ask("/v1/embeddings", { input: "x" });
  expect(embedding.status).toBe(400);
  expect(embedding.json["error"]?.["param"]).toBe("mock_response");
});

test("calls that a deployment does not support do not count towards its requests", async () => {
  for (let call = 0; call < 4; call++) {
    const rejected = await gateway.chat(key, `many ${call}`, {
      model: "lacks",
      n: 2,
    });
    expect(rejected.status).toBe(400);
  }
});
