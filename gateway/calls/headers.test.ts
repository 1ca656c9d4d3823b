import { afterAll, beforeAll, expect, test } from "vitest";
import {
  INPUT_PRICE,
  modelYaml,
  OUTPUT_PRICE,
  startStand,
  type Stand,
} from "../../test/servers/gateway.ts";
import { query } from "../db/pool.ts";

let stand: Stand;

beforeAll(async () => {
  stand = await startStand(
    (url) =>
      `${modelYaml(url)}proxy_settings: { litellm_headers: true, request_timeout: 60 }\n`,
  );
});

afterAll(() => stand?.stop());

const ONE_CALL = 10 * INPUT_PRICE + 4 * OUTPUT_PRICE;

test("with litellm_headers an answer bears LiteLLM's headers too", async () => {
  const { gateway } = stand;
  const key = await gateway.makeKey({ max_budget: 3 });
  await gateway.chat(key, "one");
  const { headers } = await gateway.chat(key, "two");
  const told = (name: string) => headers.get(`x-litellm-${name}`);
  for (const [theirs, ours] of [
    ["call-id", "call-id"],
    ["model-id", "model-id"],
    ["response-cost", "cost"],
    ["attempted-retries", "attempted-retries"],
    ["attempted-fallbacks", "attempted-fallbacks"],
    ["response-duration-ms", "duration-ms"],
    ["overhead-duration-ms", "overhead-ms"],
  ] as const)
    expect(told(theirs)).toBe(headers.get(`x-hearth-${ours}`));
  expect(told("model-group")).toBe("mock");
  expect(Number(told("key-spend"))).toBeCloseTo(ONE_CALL, 9);
  expect(told("key-max-budget")).toBe("3");
  expect(told("max-retries")).toBe("2");
  expect(told("timeout")).toBe("60");
});

test.each(["x-hearth", "x-litellm"])(
  "%s-… headers of a request say who pays, how long and how often",
  async (prefix) => {
    const { gateway, provider } = stand;
    const key = await gateway.makeKey({});
    const ask = (prompt: string, headers: Record<string, string>) =>
      gateway.request(
        "POST",
        "/v1/chat/completions",
        { model: "mock", messages: [{ role: "user", content: prompt }] },
        key,
        headers,
      );
    const answer = await ask("who", {
      [`${prefix}-tags`]: "red, blue",
      [`${prefix}-end-user-id`]: "customer-7",
      [`${prefix}-trace-id`]: "trace-9",
    });
    await gateway.running.gateway.ledger.flush();
    const [row] = await query<Record<string, unknown>>(
      gateway.running.gateway.pool,
      "SELECT end_user, tags, session_id FROM spend_log WHERE request_id = $1",
      [answer.headers.get("x-hearth-call-id")],
    );
    expect(row).toEqual({
      end_user: "customer-7",
      tags: ["red", "blue"],
      session_id: "trace-9",
    });
    const late = await ask('[mock]{"delayMs":5000}', {
      [`${prefix}-timeout`]: "0.2",
    });
    expect(late.status).toBe(408);
    const before = provider.requests.length;
    const failed = await ask('[mock]{"status":500}', {
      [`${prefix}-num-retries`]: "1",
    });
    expect(failed.status).toBe(500);
    expect(provider.requests.length - before).toBe(2);
  },
);

test("request_timeout ends an attempt that takes longer", async () => {
  const short = await startStand(
    (url) =>
      `${modelYaml(url)}proxy_settings: { request_timeout: 0.2, num_retries: 0 }\n`,
  );
  try {
    const key = await short.gateway.makeKey({});
    const answer = await short.gateway.chat(key, '[mock]{"delayMs":5000}');
    expect(answer.status).toBe(408);
  } finally {
    await short.stop();
  }
});
