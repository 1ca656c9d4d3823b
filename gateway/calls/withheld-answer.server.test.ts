import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startPairTestbed,
  type PairTestbed,
  type TestAnswer,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { query } from "../database/pool.ts";

/** Dollars of one answer: 10 tokens in, 4 out. */
const COST = 14;

let testbed: PairTestbed;
let gateway: TestGateway;

beforeAll(async () => {
  const alias = (name: string, url: string) =>
    `  - { model_name: ${name}, provider_params: { model: openai/m, api_base: "${url}", api_key: x, input_cost_per_token: 1, output_cost_per_token: 1 } }\n`;
  testbed = await startPairTestbed(
    { finishReason: "content_filter" },
    (good, withholding) => `model_list:
${alias("strict", withholding)}${alias("strict-too", withholding)}${alias("plain", withholding)}${alias("mild", good)}
router_settings:
  fallbacks: [{ plain: [mild] }]
  content_policy_fallbacks: [{ strict: [strict-too, mild], strict-too: [mild] }]
`,
  );
  ({ gateway } = testbed);
});

afterAll(() => testbed?.stop());

async function rowOf(answer: TestAnswer): Promise<Record<string, unknown>> {
  const { ledger, pool } = gateway.running.gateway;
  await ledger.flush();
  const [row] = await query<Record<string, unknown>>(
    pool,
    "SELECT spend::float8 AS spend, status, metadata FROM spend_log WHERE request_id = $1",
    [answer.headers.get("x-hearth-call-id")],
  );
  return row ?? {};
}

function endOf({ json }: TestAnswer): unknown {
  return json["choices"]?.["0"]?.["finish_reason"];
}

const ATTEMPT = { status: 400, error: expect.stringContaining("withheld") };

test("a whole answer whose content is withheld leads to the content policy's fallbacks, and is charged with the one that answers", async () => {
  const key = await gateway.createKey({ max_budget: 1_000_000 });
  const answer = await gateway.chat(key, "hello", { model: "strict" });
  expect([answer.status, endOf(answer)]).toEqual([200, "stop"]);
  expect(answer.headers.get("x-hearth-attempted-fallbacks")).toBe("2");
  expect(await rowOf(answer)).toMatchObject({
    spend: 3 * COST,
    status: "success",
    metadata: { attempts: [ATTEMPT, ATTEMPT] },
  });
});

test("a withheld answer is the answer, charged once, where no fallback can take the call", async () => {
  const key = await gateway.createKey({ models: ["strict", "strict-too"] });
  for (const [model, attempts] of [
    ["strict", 2],
    ["strict-too", 1],
  ] as const) {
    const answer = await gateway.chat(key, model, { model });
    expect([answer.status, endOf(answer)]).toEqual([200, "content_filter"]);
    expect((await rowOf(answer))["spend"]).toBe(attempts * COST);
  }
});

test("an alias without such fallbacks answers with what was withheld", async () => {
  const key = await gateway.createKey();
  const answer = await gateway.chat(key, "hello", { model: "plain" });
  expect([answer.status, endOf(answer)]).toEqual([200, "content_filter"]);
  expect((await rowOf(answer))["spend"]).toBe(COST);
});
