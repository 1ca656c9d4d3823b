import { ServerResponse } from "node:http";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import {
  INPUT_PRICE,
  modelYaml,
  OUTPUT_PRICE,
  startTestbed,
  type Testbed,
} from "../../test/servers/gateway.ts";
import { query } from "../database/pool.ts";

let testbed: Testbed;

beforeAll(async () => {
  testbed = await startTestbed(
    (url) =>
      `${modelYaml(url, named(url))}proxy_settings: { litellm_headers: true, request_timeout: 60, cache: true, cache_params: { type: memory, namespace: "缓存" } }\n`,
  );
});

/** An alias, an id and a provider whose names must be encoded in headers. */
const named = (url: string) => `
  - model_name: "部署/模型 50%"
    provider_params: { model: "供应商/m", api_base: ${url}, api_key: x, input_cost_per_token: ${INPUT_PRICE} }
    model_info: { id: "编号-é" }
`;

afterAll(() => testbed?.stop());

/** On a busy machine. */
const PATIENT = { timeout: 20_000 };
const ONE_CALL = 10 * INPUT_PRICE + 4 * OUTPUT_PRICE;

test("with litellm_headers an answer has LiteLLM's headers too", async () => {
  const { gateway } = testbed;
  const key = await gateway.createKey({
    max_budget: 3,
    rpm_limit: 100,
    tpm_limit: 100_000,
  });
  await gateway.chat(key, "one");
  const { headers } = await gateway.chat(key, "two");
  const litellm = (name: string) => headers.get(`x-litellm-${name}`);
  for (const [theirs, ours] of [
    ["call-id", "call-id"],
    ["model-id", "model-id"],
    ["response-cost", "cost"],
    ["attempted-retries", "attempted-retries"],
    ["attempted-fallbacks", "attempted-fallbacks"],
    ["response-duration-ms", "duration-ms"],
    ["overhead-duration-ms", "overhead-ms"],
  ] as const) {
    expect(litellm(theirs)).toBe(headers.get(`x-hearth-${ours}`));
  }
  expect(litellm("model-group")).toBe("mock");
  expect(Number(litellm("key-spend"))).toBeCloseTo(ONE_CALL, 9);
  expect(litellm("key-max-budget")).toBe("3");
  expect(litellm("key-rpm-limit")).toBe("100");
  expect(litellm("key-tpm-limit")).toBe("100000");
  expect(litellm("max-retries")).toBe("2");
  expect(litellm("timeout")).toBe("60");
});

test.each(["x-hearth", "x-litellm"])(
  "%s-… headers of a request set payers, timeout and retries",
  async (prefix) => {
    const { gateway, provider } = testbed;
    const key = await gateway.createKey({});
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

test("a program's own header names its users only for a key that allows it, and their budgets apply", async () => {
  const { gateway } = testbed;
  const trusted = await gateway.createKey({
    metadata: { end_user_header: "X-OpenWebUI-User-Email" },
  });
  const other = await gateway.createKey({});
  const ask = async (key: string, user: string) => {
    const answer = await gateway.request(
      "POST",
      "/v1/chat/completions",
      { model: "mock", messages: [{ role: "user", content: user }] },
      key,
      {
        "x-openwebui-user-email": user,
        "x-openwebui-chat-id": `chat of ${user}`,
      },
    );
    await gateway.running.gateway.ledger.flush();
    return answer;
  };
  const payerOf = async ({ headers }: { headers: Headers }) => {
    const [row] = await query<Record<string, unknown>>(
      gateway.running.gateway.pool,
      "SELECT end_user, session_id FROM spend_log WHERE request_id = $1",
      [headers.get("x-hearth-call-id")],
    );
    return row;
  };
  expect(await payerOf(await ask(trusted, "anna@home.test"))).toEqual({
    end_user: "anna@home.test",
    session_id: "chat of anna@home.test",
  });
  expect(await payerOf(await ask(other, "ben@home.test"))).toEqual({
    end_user: null,
    session_id: "chat of ben@home.test",
  });
  await gateway.request("POST", "/customer/new", {
    user_id: "carl@home.test",
    max_budget: ONE_CALL / 2,
  });
  expect((await ask(trusted, "carl@home.test")).status).toBe(200);
  const rejected = await ask(trusted, "carl@home.test ");
  expect(rejected.status).toBe(400);
  expect(rejected.text).toContain("carl@home.test");
  expect((await ask(trusted, "anna@home.test")).status).toBe(200);
});

test("request_timeout ends an attempt that takes longer", async () => {
  const short = await startTestbed(
    (url) =>
      `${modelYaml(url)}proxy_settings: { request_timeout: 0.2, num_retries: 0 }\n`,
  );
  try {
    const key = await short.gateway.createKey({});
    const answer = await short.gateway.chat(key, '[mock]{"delayMs":5000}');
    expect(answer.status).toBe(408);
  } finally {
    await short.stop();
  }
});

test.each([{ stream: false }, { stream: true }])(
  "names beyond ASCII reach a client percent-encoded (%o)",
  async ({ stream }) => {
    const { gateway } = testbed;
    const key = await gateway.createKey({});
    const ask = (model: string) =>
      gateway.chat(key, "hello", { model, stream });
    const { status, headers, text } = await ask("部署/模型 50%");
    expect(status).toBe(200);
    expect(text).toContain(stream ? "[DONE]" : "four words in here");
    const decoded = (name: string) =>
      decodeURIComponent(headers.get(name) ?? "");
    for (const prefix of ["x-hearth", "x-litellm"]) {
      expect(decoded(`${prefix}-model-group`)).toBe("部署/模型 50%");
      expect(decoded(`${prefix}-model-id`)).toBe("编号-é");
      expect(decoded(`${prefix}-cache-key`)).toMatch(/^缓存:[0-9a-f]{64}$/);
    }
    expect(decoded("x-hearth-provider")).toBe("供应商");
    expect(headers.get("x-hearth-model-group")).toMatch(/^%E9.*\/.*%20.*%25$/);
    expect((await ask("部署/模型 50%")).headers.get("x-hearth-cache")).toBe(
      "hit",
    );

    const made = await gateway.request("POST", "/model/new", {
      model_name: `模型-${stream}`,
      provider_params: {
        model: "openai/m",
        api_base: testbed.provider.url,
        api_key: "x",
      },
    });
    expect(made.status).toBe(200);
    expect((await ask(`模型-${stream}`)).status).toBe(200);
  },
);

test.each(["writeHead", "setTimeout"] as const)(
  "a stream whose %s fails ends at once, stops the provider and is billed",
  async (method) => {
    const { gateway, provider } = testbed;
    const { pool, ledger, activeCalls } = gateway.running.gateway;
    const key = await gateway.createKey({});
    const working = ServerResponse.prototype[method] as (
      ...args: readonly unknown[]
    ) => ServerResponse;
    const broken = vi
      .spyOn(ServerResponse.prototype, method)
      .mockImplementation(function (this: ServerResponse, ...args: unknown[]) {
        // The provider is a server of this process too.
        const ofProvider =
          method === "writeHead" && !JSON.stringify(args).includes("x-hearth");
        if (ofProvider) {
          return working.apply(this, args);
        }
        throw new Error("broken by the test");
      });
    try {
      const requestsBefore = provider.requests.length;
      const text = `${method} [mock]{"chunks":1000,"chunkDelayMs":20}`;
      const answer = await gateway
        .chat(key, text, { model: "部署/模型 50%", stream: true })
        .catch(() => null);
      expect(answer?.status ?? 500).toBe(500);
      await expect
        .poll(
          () =>
            provider.requests.slice(requestsBefore).map((seen) => seen.aborted),
          PATIENT,
        )
        .toEqual([true]);
      await expect.poll(() => activeCalls.count(), PATIENT).toBe(0);
      await ledger.flush();
      const [row] = await query<{ status: string; spend: number }>(
        pool,
        "SELECT status, spend FROM spend_log WHERE request_id = $1",
        [provider.requests[requestsBefore]?.id],
      );
      expect(row?.status).toBe("failure");
      expect(row?.spend).toBeGreaterThan(0);
    } finally {
      broken.mockRestore();
    }
  },
);

const HOUR_MS = 3_600_000;

test.each([
  ["back", -HOUR_MS],
  ["forward", 40 * 24 * HOUR_MS],
])(
  "a clock that is set %s during a call changes neither its headers nor its row",
  async (_direction, by) => {
    const { gateway, provider } = testbed;
    const before = provider.requests.length;
    const now = Date.now;
    const answering = gateway.chat(
      await gateway.createKey(),
      `[mock]{"delayMs":300}`,
    );
    await vi.waitFor(
      () => expect(provider.requests.length).toBe(before + 1),
      PATIENT,
    );
    const clock = vi.spyOn(Date, "now").mockImplementation(() => now() + by);
    try {
      const { headers } = await answering;
      const duration = Number(headers.get("x-hearth-duration-ms"));
      expect(duration).toBeGreaterThanOrEqual(300);
      expect(duration).toBeLessThan(HOUR_MS);
      const { pool, ledger } = gateway.running.gateway;
      await ledger.flush();
      const [row] = await query<{ ms: number }>(
        pool,
        "SELECT 1000 * extract(epoch FROM ended_at - started_at)::float8 AS ms FROM spend_log WHERE request_id = $1",
        [headers.get("x-hearth-call-id")],
      );
      expect(row?.ms).toBeGreaterThanOrEqual(300);
      expect(row?.ms).toBeLessThan(HOUR_MS);
    } finally {
      clock.mockRestore();
    }
  },
);
