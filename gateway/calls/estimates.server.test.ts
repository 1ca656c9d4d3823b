import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import {
  startPairTestbed,
  type PairTestbed,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import type { MockProvider } from "../../test/servers/provider.ts";

let testbed: PairTestbed;
let good: MockProvider;
let gateway: TestGateway;

beforeAll(async () => {
  testbed = await startPairTestbed({ alwaysStatus: 500 }, yaml);
  ({ gateway, provider: good } = testbed);
});

afterAll(() => testbed?.stop());

/** Dollars. */
const PER_TOKEN = 0.000_01;
const PER_IMAGE = 0.04;
const PER_AUDIO_TOKEN = 0.000_04;

function yaml(goodUrl: string, badUrl: string): string {
  const alias = (
    name: string,
    url: string,
    params: string,
    { retries = 0, input = 0 } = {},
  ) =>
    `  - { model_name: ${name}, provider_params: { model: openai/m, api_base: "${url}", api_key: x, max_retries: ${retries}, input_cost_per_token: ${input}, ${params} } }\n`;
  const byToken = `output_cost_per_token: ${PER_TOKEN}`;
  return `model_list:
${alias("short", badUrl, `${byToken}, max_tokens: 10`)}
${alias("long", goodUrl, `${byToken}, max_tokens: 1000`)}
${alias("by-image", badUrl, `output_cost_per_token: 0, output_cost_per_image: ${PER_IMAGE}`)}
${alias("by-token", goodUrl, byToken)}
${alias("cuts", goodUrl, "output_cost_per_token: 0", { retries: 2, input: PER_TOKEN })}
${alias("hears", goodUrl, `input_cost_per_audio_token: ${PER_AUDIO_TOKEN}, output_cost_per_token: 0`)}
router_settings:
  allowed_fails: 100000
  fallbacks: [{ short: [long] }, { by-image: [by-token] }]
general_settings: { budget_mode: strict }
`;
}

let sent = 0;
beforeEach(() => {
  sent = good.requests.length;
});

async function spendOf(key: string): Promise<number> {
  await gateway.running.gateway.ledger.flush();
  const { json } = await gateway.request("GET", "/key/info", undefined, key);
  return Number(json["info"]?.["spend"]);
}

test("a fallback reserves the output of its own model", async () => {
  const ask = async (maxBudget: number) =>
    gateway.chat(await gateway.createKey({ max_budget: maxBudget }), "hello", {
      model: "short",
    });
  const held = await ask(100 * PER_TOKEN);
  expect(held.json["error"]?.["type"]).toBe("upstream_error");
  expect(good.requests.length).toBe(sent);
  expect((await ask(1_000 * PER_TOKEN)).status).toBe(200);
});

test("a fallback is not skipped because the total of a budget is unknown, as when its window has just begun", async () => {
  const key = await gateway.createKey({ max_budget: 1 });
  const { limits } = gateway.running.gateway;
  const admit = limits.admit.bind(limits);
  vi.spyOn(limits, "admit").mockImplementationOnce(async (call) => {
    const admission = await admit(call);
    await limits.forgetTotals();
    return admission;
  });
  const answer = await gateway.chat(key, "hello", { model: "short" });
  vi.restoreAllMocks();
  expect(answer.status).toBe(200);
});

test("a fallback that bills images by token reserves their tokens", async () => {
  const key = await gateway.createKey({ max_budget: 1.5 * PER_IMAGE });
  const answer = await gateway.request(
    "POST",
    "/v1/images/generations",
    { model: "by-image", prompt: "a house" },
    key,
  );
  expect(answer.json["error"]?.["type"]).toBe("upstream_error");
  expect(good.requests.length).toBe(sent);
});

test("audio in a message is reserved, and billed where no usage is reported, at its own price", async () => {
  const tokens = 100;
  const clip = {
    type: "input_audio",
    input_audio: { data: "A".repeat(tokens * 500), format: "mp3" },
  };
  const ask = async (maxBudget: number, prompt: string) => {
    const key = await gateway.createKey({ max_budget: maxBudget });
    const answer = await gateway.request(
      "POST",
      "/v1/chat/completions",
      {
        model: "hears",
        max_tokens: 1,
        stream: true,
        messages: [
          { role: "user", content: [clip] },
          { role: "user", content: prompt },
        ],
      },
      key,
    );
    return { key, answer };
  };
  const cost = tokens * PER_AUDIO_TOKEN;
  const held = await ask(0.9 * cost, "hello");
  expect(held.answer.json["error"]?.["type"]).toBe("budget_exceeded");
  const { key } = await ask(cost, '[mock]{"usage":null}');
  expect(await spendOf(key)).toBeCloseTo(cost, 9);
});

test("a retry reserves its cost besides that of failed attempts that may be charged", async () => {
  const ask = async (maxBudget: number) => {
    const key = await gateway.createKey({ max_budget: maxBudget });
    const before = good.requests.length;
    const instructions = {
      field: "role",
      chunks: 2,
      cutAfter: 1,
      chunkDelayMs: 20,
    };
    const answer = await gateway.chat(
      key,
      `[mock]${JSON.stringify(instructions)}`,
      { model: "cuts", max_tokens: 1, stream: true },
    );
    expect(answer.json["error"]?.["type"]).toBe("upstream_error");
    return {
      attempts: good.requests.length - before,
      spend: await spendOf(key),
    };
  };
  const ample = await ask(1);
  expect(ample.attempts).toBe(3);
  const one = ample.spend / 3;
  const tight = await ask(2.5 * one);
  expect(tight.attempts).toBe(2);
  expect(tight.spend).toBeCloseTo(2 * one, 9);
});
