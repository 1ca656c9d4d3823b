import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  startCollector,
  type Collector,
  type ReceivedSpan,
} from "../../test/servers/collector.ts";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  modelYaml,
  startTestGateway,
  type TestAnswer,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../test/servers/provider.ts";
import {
  hasRedisServer,
  startRedis,
  type TestRedis,
} from "../../test/servers/redis.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";
const TRACEPARENT = `00-${TRACE}-${PARENT}-00`;
const SECRET = "secret-of-the-collector";

describe.runIf(hasRedisServer())("with Postgres and Redis", () => {
  let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
  let redis: TestRedis;
  let provider: MockProvider;
  let collector: Collector;
  let gateway: TestGateway;
  let key: string;

  beforeAll(async () => {
    [database, redis, provider, collector] = await Promise.all([
      throwAwayDatabase(),
      startRedis(),
      startMockProvider(),
      startCollector(),
    ]);
    const entry = (alias: string, model: string, id: string, base: string) =>
      `  - { model_name: ${alias}, provider_params: { model: ${model}, api_base: "${base}", api_key: x, max_retries: 1 }, model_info: { id: ${id} } }\n`;
    const gone = "http://127.0.0.1:9/v1";
    gateway = await startTestGateway({
      databaseUrl: database.url,
      providerUrl: provider.url,
      env: {
        REDIS_HOST: "127.0.0.1",
        REDIS_PORT: String(redis.port),
        COLLECTOR_KEY: SECRET,
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test%20bed",
      },
      yaml: modelYaml(
        provider.url,
        `${entry("flaky", "openai/mock-model", "flaky-1", gone)}${entry("flaky", "mistral/other-model", "flaky-2", gone)}
proxy_settings:
  cache: true
  cache_params: { type: redis }
  tracing:
    endpoint: ${collector.url}
    headers: { Authorization: os.environ/COLLECTOR_KEY }
    service_name: the-gateway
    content: true
    propagate: true
router_settings:
  allowed_fails: 0
  cooldown_minimum_calls: 1
  fallbacks: [{ flaky: [mock] }]
`,
      ),
    });
    key = await gateway.createKey({ key_alias: "traced", user_id: "ada" });
  });

  afterAll(async () => {
    await gateway?.stop();
    await collector?.close();
    await provider?.close();
    await redis?.remove();
    await database?.drop();
  });

  const idOf = ({ headers }: TestAnswer) =>
    headers.get("x-hearth-call-id") ?? "none";

  async function spansOf(answer: TestAnswer) {
    const [call, ...attempts] = await collector.spansOf(idOf(answer));
    return { call: call as ReceivedSpan, attempts };
  }

  test("a retried and fallen-back call has a span with one child for each attempt", async () => {
    const answer = await gateway.request(
      "POST",
      "/v1/chat/completions",
      {
        model: "flaky",
        messages: [{ role: "user", content: "retried" }],
        temperature: 0.5,
        max_tokens: 7,
        metadata: { session_id: "session-7", tags: ["blue"] },
        user: "customer-1",
      },
      key,
      { traceparent: TRACEPARENT, tracestate: "vendor=value" },
    );
    expect(answer.status).toBe(200);
    const { call, attempts } = await spansOf(answer);
    expect(call).toMatchObject({
      name: "chat flaky",
      kind: "server",
      traceId: TRACE,
      parentId: PARENT,
      traceState: "vendor=value",
      error: null,
      resource: {
        "service.name": "the-gateway",
        "deployment.environment.name": "test bed",
      },
    });
    expect(call.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.request.model": "flaky",
      "gen_ai.request.temperature": 0.5,
      "gen_ai.request.max_tokens": 7,
      "gen_ai.usage.input_tokens": 10,
      "gen_ai.usage.output_tokens": 4,
      "gen_ai.usage.cost": 0.000018,
      "gen_ai.conversation.id": "session-7",
      "session.id": "session-7",
      "user.id": "ada",
      "hearth.key.alias": "traced",
      "hearth.end_user": "customer-1",
      "hearth.tags": ["blue"],
      "hearth.cache": "miss",
      "hearth.retries": 1,
      "hearth.fallbacks": 1,
    });
    expect(
      attempts.map(({ name, kind, error, attributes }) => ({
        name,
        kind,
        failed: error !== null,
        attempt: attributes["hearth.attempt"],
        fallback: attributes["hearth.fallback"],
        status: attributes["http.response.status_code"],
        type: attributes["error.type"],
      })),
    ).toEqual([
      ...[1, 2].map((attempt) => ({
        name: expect.stringMatching(/^chat (mock|other)-model$/) as string,
        kind: "client",
        failed: true,
        attempt,
        fallback: undefined,
        status: 502,
        type: "502",
      })),
      {
        name: "chat mock-model",
        kind: "client",
        failed: false,
        attempt: 3,
        fallback: "mock",
        status: undefined,
        type: undefined,
      },
    ]);
    expect(
      attempts
        .map(({ attributes }) => attributes["gen_ai.provider.name"])
        .toSorted(),
    ).toEqual(["mistral_ai", "openai", "openai"]);
    expect(attempts.every(({ traceId }) => traceId === TRACE)).toBe(true);
    expect(call.events.map(({ name }) => name)).toEqual([
      "deployment cooling down",
      "deployment cooling down",
    ]);
    const [last] = provider.requests.slice(-1);
    const sent = attempts.at(-1);
    expect(last?.headers["traceparent"]).toBe(`00-${TRACE}-${sent?.spanId}-01`);
    expect(last?.headers["tracestate"]).toBe("vendor=value");

    const second = await gateway.chat(key, "passed over", { model: "flaky" });
    const passed = await spansOf(second);
    expect(passed.call.events).toEqual([
      {
        name: "deployments passed over while cooling down",
        attributes: { "hearth.deployment.id": ["flaky-1", "flaky-2"] },
      },
    ]);
    expect(passed.attempts.map(({ name }) => name)).toEqual([
      "chat mock-model",
    ]);
  });

  test("a cached call has no attempt, and shows what it saved", async () => {
    await gateway.chat(key, "asked twice");
    const { call, attempts } = await spansOf(
      await gateway.chat(key, "asked twice"),
    );
    expect(attempts).toEqual([]);
    expect(call.attributes).toMatchObject({
      "hearth.cache": "hit",
      "hearth.cost.saved": 0.000018,
      "gen_ai.usage.cost": 0,
    });
  });

  test("a stream shows its first token, and its attempt lasts until its end", async () => {
    const { call, attempts } = await spansOf(
      await gateway.chat(key, '[mock]{"chunks":3,"chunkDelayMs":20}', {
        stream: true,
      }),
    );
    expect(call.attributes).toMatchObject({
      "gen_ai.request.stream": true,
      "gen_ai.response.time_to_first_chunk": expect.any(Number) as number,
      "gen_ai.usage.output_tokens": 3,
    });
    const [attempt] = attempts;
    expect(attempt?.events.map(({ name }) => name)).toEqual(["stream started"]);
    // Three pauses of 20 ms follow the start of the stream.
    expect(attempt?.end).toBeGreaterThan((attempt?.start ?? 0n) + 40_000_000n);
  });

  test("a call whose client leaves is shown as cancelled, not as failed", async () => {
    const aborter = new AbortController();
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({
        model: "mock",
        stream: true,
        messages: [
          { role: "user", content: '[mock]{"chunks":500,"chunkDelayMs":10}' },
        ],
      }),
      signal: aborter.signal,
    });
    const id = answer.headers.get("x-hearth-call-id") ?? "none";
    await answer.body?.getReader().read();
    aborter.abort();
    const [call, attempt] = await collector.spansOf(id);
    expect(call?.error).toBeNull();
    expect(call?.attributes["hearth.client_disconnected"]).toBe(true);
    expect(call?.events.map(({ name }) => name)).toEqual([
      "client disconnected",
    ]);
    expect(attempt?.name).toBe("chat mock-model");
  });

  test("a failed and a rejected call are shown with their error", async () => {
    const failed = await spansOf(
      await gateway.chat(key, '[mock]{"status":400}'),
    );
    expect(failed.call.attributes["error.type"]).toBe("400");
    expect(failed.call.error).toContain("the mock was asked to fail");
    expect(failed.attempts.map(({ error }) => error)).toEqual([
      failed.call.error,
    ]);

    const poor = await gateway.createKey({ max_budget: 0 });
    const answer = await gateway.chat(poor, "too expensive");
    expect(answer.status).toBe(400);
    const rejected = await spansOf(answer);
    expect(rejected.call.attributes["error.type"]).toBe("budget_exceeded");
    expect(rejected.attempts).toEqual([]);
  });

  test("embeddings have their own operation", async () => {
    const { call } = await spansOf(
      await gateway.request(
        "POST",
        "/v1/embeddings",
        { model: "mock", input: ["one", "two"] },
        key,
      ),
    );
    expect(call.name).toBe("embeddings mock");
    expect(call.attributes["gen_ai.output.messages"]).toBeUndefined();
  });

  test("prompts and answers are in the span, unless the caller keeps them out of logs", async () => {
    const shown = await spansOf(await gateway.chat(key, "seen"));
    expect(
      JSON.parse(String(shown.call.attributes["gen_ai.input.messages"])),
    ).toEqual([{ role: "user", parts: [{ type: "text", content: "seen" }] }]);
    expect(
      JSON.parse(String(shown.call.attributes["gen_ai.output.messages"])),
    ).toEqual([
      {
        role: "assistant",
        parts: [{ type: "text", content: "four words in here" }],
      },
    ]);
    const hidden = await spansOf(
      await gateway.chat(key, "unseen", { "no-log": true }),
    );
    expect(JSON.stringify(hidden.call.attributes)).not.toContain("unseen");
    expect(hidden.call.attributes["gen_ai.input.messages"]).toBeUndefined();
  });

  test("the collector gets its header at the path for traces, and metrics count its spans", async () => {
    await spansOf(await gateway.chat(key, "counted"));
    expect(collector.requests.at(-1)).toMatchObject({
      path: "/v1/traces",
      headers: {
        authorization: SECRET,
        "content-type": "application/x-protobuf",
      },
    });
    const { text } = await gateway.request("GET", "/metrics");
    expect(text).toMatch(
      /hearth_spans_exported_total\{collector="http:[^"]*\/v1\/traces"\} [1-9]/,
    );
    expect(text).not.toContain(SECRET);
  });
});
