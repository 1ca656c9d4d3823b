import { afterAll, beforeAll, expect, test } from "vitest";
import {
  MASTER_KEY,
  startTestbed,
  type Testbed,
  type TestGateway,
} from "../../test/servers/gateway.ts";

let testbed: Testbed;
let gateway: TestGateway;
let key: string;

beforeAll(async () => {
  testbed = await startTestbed(yaml);
  ({ gateway } = testbed);
  key = await gateway.createKey({});
});

afterAll(() => testbed?.stop());

function yaml(url: string): string {
  const deployment = (alias: string, name: string) =>
    `  - model_name: ${alias}\n    provider_params: { model: ${name}/m, api_base: "${url}", api_key: x, input_cost_per_token: 0.000001, output_cost_per_token: 0.000002 }\n`;
  return `model_list:
${deployment("either", "openai")}${deployment("either", "mistral")}
${deployment("openai-only", "openai")}
${deployment("groq-only", "groq")}
router_settings:
  provider_budget_config:
    openai: { budget_limit: 0.000001, time_period: 1mo }
    mistral: { max_budget: 0.000001, budget_duration: 15m }
    groq: { max_budget: 0 }
proxy_settings:
  callbacks: [prometheus]
`;
}

let asked = 0;
const ask = (model: string) =>
  gateway.chat(key, `question ${asked++}`, { model });

async function untilRejected(model: string): Promise<void> {
  await gateway.running.gateway.ledger.flush();
  await expect
    .poll(async () => (await ask(model)).status, { timeout: 10_000 })
    .toBe(429);
}

test("a provider that has used up its budget is passed over, in all aliases", async () => {
  expect((await ask("openai-only")).status).toBe(200);
  await untilRejected("openai-only");
  const answer = await ask("either");
  expect(answer.status).toBe(200);
  expect(answer.headers.get("x-hearth-provider")).toBe("mistral");

  await untilRejected("either");
  const rejected = await ask("either");
  expect(rejected.json["error"]).toMatchObject({
    type: "no_deployments_available",
    message: expect.stringMatching(
      /^No deployment of either is available \(provider openai has used up its budget of \$ 0\.000001; provider mistral has used up its budget of \$ 0\.000001\)\. Try again in \d+ s\.$/,
    ),
  });
  // The shorter of the two windows.
  const seconds = Number(rejected.headers.get("retry-after"));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(900);

  const text = await (
    await fetch(`${gateway.url}/metrics`, {
      headers: { authorization: `Bearer ${MASTER_KEY}` },
    })
  ).text();
  for (const name of ["openai", "mistral"]) {
    expect(text).toContain(
      `litellm_provider_remaining_budget_metric{api_provider="${name}"} 0\n`,
    );
  }
  expect(text).toContain(
    'hearth_unavailable_rejections_total{alias="either",reason="budget"}',
  );
});

test("a budget of 0 that is never reset rejects every call, and the error names the setting", async () => {
  const { status, json } = await ask("groq-only");
  expect(status).toBe(429);
  expect(json["error"]?.["message"]).toBe(
    "No deployment of groq-only is available (provider groq has used up its budget of $ 0). Its operator can raise the budget (`provider_budget_config`).",
  );
});
