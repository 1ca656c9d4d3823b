import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  startTestbed,
  type Json,
  type Testbed,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import type { MockProvider } from "../../test/servers/provider.ts";

let testbed: Testbed;
let provider: MockProvider;
let gateway: TestGateway;

beforeAll(async () => {
  testbed = await startTestbed(yaml);
  ({ gateway, provider } = testbed);
});

afterAll(() => testbed?.stop());

const COLD = ["cold-1", "cold-2", "cold-3", "cold-4", "cold-5"];

function yaml(url: string): string {
  const deployment = (alias: string, model: string, id: string) =>
    `  - model_name: "${alias}"
    provider_params: { model: "openai/${model}", api_base: "${url}", api_key: x, max_retries: 1 }
    model_info: { id: ${id} }
`;
  const pair = (alias: string, model = "m") =>
    deployment(alias, model, `${alias.slice(0, 4)}-1`) +
    deployment(alias, model, `${alias.slice(0, 4)}-2`);
  return `model_list:
${deployment("only", "m", "only-1")}${pair("pair")}${pair("wild/*", "*")}${pair("fail")}${pair("torn")}${pair("mockable")}
${COLD.map((alias) => deployment(alias, "m", alias)).join("")}${deployment("slow", "m", "slow-1")}${deployment("backed", "m", "backed-1")}${deployment("spare", "m", "spare-1")}
router_settings:
  fallbacks: [{ backed: [spare] }]
`;
}

let key: string;
beforeEach(async () => {
  key = await gateway.createKey({
    metadata: { allow_client_mock_response: true },
  });
});

const FAILS = '[mock]{"status":500}';
const MALFORMED = '[mock]{"status":400}';

async function statuses(
  model: string,
  prompts: readonly string[],
  fields: Readonly<Record<string, unknown>> = {},
): Promise<readonly number[]> {
  const answers: number[] = [];
  for (const prompt of prompts) {
    answers.push(
      (await gateway.chat(key, prompt, { model, ...fields })).status,
    );
  }
  return answers;
}

const times = (count: number, prompt: string) =>
  Array.from({ length: count }, (_, at) => `${at} ${prompt}`);

test("two failing prompts do not make an alias unavailable to others", async () => {
  for (const model of ["only", "pair"]) {
    const calls = times(100, "fine").flatMap((fine, at) =>
      at % 25 === 0 ? [FAILS, MALFORMED, fine] : [fine],
    );
    const answers = await statuses(model, calls, { num_retries: 2 });
    expect(answers.filter((status) => status === 429)).toEqual([]);
    expect(answers.filter((status) => status === 200)).toHaveLength(100);
  }
});

test("the only deployment of an alias stays in use however often it fails", async () => {
  expect(
    await statuses("only", [...times(8, FAILS), "fine"], { num_retries: 0 }),
  ).toEqual([...Array<number>(8).fill(500), 200]);
});

test("the only deployment of an alias with a fallback cools down, and takes the calls that the fallback cannot take", async () => {
  const answeredBy = async (key: string) =>
    (await gateway.chat(key, "fine", { model: "backed" })).headers.get(
      "x-hearth-model-id",
    );
  expect(await answeredBy(key)).toBe("backed-1");
  await statuses("backed", times(8, FAILS), { num_retries: 0 });
  expect(await answeredBy(key)).toBe("spare-1");
  const restricted = await gateway.createKey({ models: ["backed"] });
  expect(await answeredBy(restricted)).toBe("backed-1");
});

test("a retried call counts once per deployment", async () => {
  // Five attempts each: two or three at each of the two deployments.
  expect(await statuses("pair", times(2, FAILS), { num_retries: 4 })).toEqual([
    500, 500,
  ]);
  expect(await statuses("pair", ["fine"])).toEqual([200]);
});

test("streams that break off after their first content count as failures", async () => {
  const torn = times(12, '[mock]{"chunks":3,"chunkDelayMs":30,"cutAfter":2}');
  const answers = await statuses("torn", torn, {
    num_retries: 0,
    stream: true,
  });
  expect(answers.slice(0, 5)).toEqual(Array(5).fill(200));
  expect(answers).toContain(429);
  expect(await statuses("torn", ["fine"])).toEqual([429]);
  const { text } = await gateway.request("GET", "/metrics");
  expect(text).toMatch(
    /hearth_provider_failures_total\{provider="openai",status="502"\} \d/,
  );
});

test("a name unknown to a provider blocks no other name of a wildcard", async () => {
  const unknown = '[mock]{"status":404}';
  expect(await statuses("wild/typo", times(6, unknown))).toEqual(
    Array(6).fill(404),
  );
  expect(await statuses("wild/good", ["fine"])).toEqual([200]);
  await statuses("wild/broken", times(12, FAILS), { num_retries: 0 });
  expect(await statuses("wild/broken", ["fine"])).toEqual([429]);
  expect(await statuses("wild/good", ["still fine"])).toEqual([200]);
});

test("failures caused by the request do not count: content filters, context length, its own timeout, test hooks", async () => {
  const failing = (status: number, message: string) =>
    `[mock]${JSON.stringify({ status, error: { message } })}`;
  for (const prompt of [
    failing(403, "Your input was flagged by moderation"),
    failing(500, "the request exceeds the available context size"),
    failing(429, "Request too large for m: limit 30000, requested 50000"),
  ]) {
    await statuses("mockable", times(12, prompt), { num_retries: 0 });
  }
  await statuses("mockable", times(12, '[mock]{"delayMs":500}'), {
    num_retries: 0,
    timeout: 0.02,
  });
  await statuses("mockable", times(12, "hooked"), {
    num_retries: 0,
    mock_timeout: true,
  });
  expect(await statuses("mockable", ["fine"])).toEqual([200]);
}, 30_000);

test("an only deployment cools down for a 429 that names a time; the call itself waits and is retried", async () => {
  const limited = '[mock]{"status":429,"retryAfter":1}';
  const before = provider.requests.length;
  expect(await statuses("slow", [limited], { num_retries: 1 })).toEqual([429]);
  expect(provider.requests.length - before).toBe(2);
  expect(await statuses("slow", ["fine"])).toEqual([429]);
});

test("fallbacks that cool down do not count towards the five that a call may go to", async () => {
  for (const alias of COLD) {
    await statuses(alias, ['[mock]{"status":429,"retryAfter":50}'], {
      num_retries: 0,
    });
  }
  const answer = await gateway.chat(key, "goes to the sixth", {
    model: "slow",
    mock_testing_fallbacks: true,
    fallbacks: [...COLD, "spare"],
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("x-hearth-attempted-fallbacks")).toBe("1");
});

test("rejections during a cooldown are counted by alias, and /health lists the deployments that are cooling down", async () => {
  await statuses("fail", times(12, FAILS), { num_retries: 0 });
  expect(await statuses("fail", ["one", "two", "three"])).toEqual([
    429, 429, 429,
  ]);
  const { text } = await gateway.request("GET", "/metrics");
  expect(text).toContain(
    'hearth_unavailable_rejections_total{alias="fail",reason="cooldown"} ',
  );
  const { json } = await gateway.request("GET", "/health?model=fail");
  // The mock is a local runner: checked by its model list, not by a call.
  const [endpoint] = json["healthy_endpoints"] as unknown as readonly Json[];
  expect(endpoint).toMatchObject({
    model_name: "fail",
    recent_failures: 5,
    recent_rejections: 5,
  });
  expect(Date.parse(String(endpoint?.["cooling_down_until"]))).toBeGreaterThan(
    Date.now(),
  );
});
