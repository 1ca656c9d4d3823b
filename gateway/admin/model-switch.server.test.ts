import { afterAll, beforeAll, expect, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { query } from "../database/pool.ts";

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture(`
  - model_name: twin
    provider_params: { model: openai/one, api_base: "http://127.0.0.1:9", api_key: x }
    model_info: { id: twin-1 }
  - model_name: twin
    provider_params: { model: openai/two, api_base: "http://127.0.0.1:9", api_key: x }
    model_info: { id: twin-2 }
  - model_name: openai/*
    provider_params: { model: openai/*, api_base: "http://127.0.0.1:9", api_key: x }
    model_info: { id: wildcard }
  - model_name: runner
    provider_params: { model: openai/llama, api_base: os.environ/HEARTH_TEST_RUNNER_URL }
    model_info: { id: runner-id }
  - model_name: guarded
    provider_params: { model: openai/llama, api_base: os.environ/HEARTH_TEST_RUNNER_URL, api_key: of-the-file }
    model_info: { id: guarded-id }
`);
});

afterAll(() => fixture?.stop());

const infoOf = async (id: string) => {
  const { data } = await fixture.get(`/model/info?model_id=${id}`);
  return data?.["0"]?.["model_info"];
};

test("a model of the file that is switched off gets no call, is still listed, and can be switched on", async () => {
  const id = fixture.running.gateway.catalog.deployments[0]?.id ?? "";
  const key = await fixture.createKey({});
  const headers = { "x-hearth-changed-by": "Anna" };
  const answer = await fixture.request(
    "POST",
    "/model/block",
    { model_id: id },
    undefined,
    headers,
  );
  expect(answer.json["model_info"]).toMatchObject({
    id,
    blocked: true,
    status: "blocked",
  });
  const denied = await fixture.chat(key, "hello");
  expect([denied.status, denied.json["error"]]).toEqual([
    403,
    {
      message:
        "The model mock is switched off. Its operator can switch it on: `hearth models on mock`.",
      type: "model_blocked",
      param: "model",
      code: "403",
    },
  ]);
  const listed = await fixture.get("/v1/models", key);
  expect(listed["data"]).toContainEqual(
    expect.objectContaining({ id: "mock", status: "blocked" }),
  );
  expect(
    JSON.stringify(await fixture.get("/v1/models?ready=true")),
  ).not.toMatch(/"mock"/);
  const health = await fixture.get("/health?model=mock");
  expect(health).toMatchObject({
    healthy_count: 0,
    unhealthy_count: 0,
    blocked_endpoints: [{ model_id: id }],
  });
  const paused = await fixture.get("/v2/model/info?blocked=true");
  expect(paused["total_count"]).toBe(1);
  // A test shows whether it works before it is switched on.
  expect(
    await fixture.post("/health/test_connection", { model_info: { id } }),
  ).toMatchObject({ status: "success" });

  await fixture.post("/model/unblock", { model_id: id });
  await fixture.post("/model/unblock", { model_id: id });
  expect((await fixture.chat(key, "hello")).status).toBe(200);
  const audited = await query(
    fixture.pool,
    "SELECT actor, action, before ->> 'blocked' AS before, after ->> 'blocked' AS after FROM audit_log WHERE object_id = $1 ORDER BY id",
    [id],
  );
  expect(audited).toEqual([
    {
      actor: expect.stringContaining("Anna"),
      action: "blocked",
      before: "false",
      after: "true",
    },
    {
      actor: expect.any(String),
      action: "unblocked",
      before: "true",
      after: "false",
    },
  ]);
});

test("one of two deployments switched off leaves the alias to the other; unknown ones are 404, other roles denied", async () => {
  await fixture.post("/model/block", { model_id: "twin-1" });
  const { catalog } = fixture.running.gateway;
  const ids = catalog.find("twin")?.deployments.map(({ id }) => id);
  expect(ids).toEqual(["twin-2"]);
  expect(
    await fixture.rejected("POST", "/model/new", {
      model_name: "new",
      provider_params: { model: "openai/x", api_key: "x" },
      model_info: { blocked: true },
    }),
  ).toMatchObject({ status: 400, error: { param: "model_info.blocked" } });
  expect(
    await fixture.rejected("POST", "/model/block", { model_id: "nosuch" }),
  ).toMatchObject({
    status: 404,
    error: { param: "model_id" },
  });
  const key = await fixture.createKey({});
  for (const path of ["/model/block", "/model/unblock"]) {
    expect(
      await fixture.rejected("POST", path, { model_id: "twin-2" }, key),
    ).toMatchObject({ status: 403 });
  }
});

test("an address is stored for a model that waits for one, but never for a model that has a key", async () => {
  expect(await infoOf("runner-id")).toMatchObject({
    status: "pending",
    waits_for: "HEARTH_TEST_RUNNER_URL",
    storable: "address",
  });
  expect(await infoOf("guarded-id")).toMatchObject({ storable: null });
  await fixture.post("/credentials", {
    credential_name: "HEARTH_TEST_RUNNER_URL",
    credential_values: { api_base: `${fixture.providerUrl}/` },
  });
  expect(await infoOf("runner-id")).toMatchObject({ status: "ready" });
  expect(await infoOf("guarded-id")).toMatchObject({ status: "pending" });
  const key = await fixture.createKey({});
  const called = await fixture.chat(key, "hello", { model: "runner" });
  expect(called.status).toBe(200);
});

test("a model that was added without a key is ready once the key of its provider is stored", async () => {
  const { model_id: id } = await fixture.post("/model/new", {
    model_name: "later",
    provider_params: { model: "mistral/small" },
  });
  expect(await infoOf(String(id))).toMatchObject({
    waits_for: "MISTRAL_API_KEY",
    storable: "key",
  });
  await fixture.post("/credentials", {
    credential_name: "MISTRAL_API_KEY",
    credential_values: { api_key: "key-of-the-tests" },
  });
  expect(await infoOf(String(id))).toMatchObject({ status: "ready" });
});

test("statistics are the sums of the ledger's rows: latency, tokens a second, the last answer and failure", async () => {
  const now = Date.now();
  const row = (
    minutes: number,
    ms: number,
    fields: Readonly<Record<string, unknown>> = {},
  ) => {
    const ended = now - minutes * 60_000;
    return {
      started_at: new Date(ended - ms).toISOString(),
      ended_at: new Date(ended).toISOString(),
      model_group: "twin",
      model_id: "twin-2",
      completion_tokens: 50,
      waited_ms: ms,
      ...fields,
    };
  };
  const failed = (status: number, error: string) => ({
    status: "failure" as const,
    completion_tokens: 0,
    metadata: { attempts: [{ model_id: "twin-1", status, error }] },
  });
  await fixture.spend(
    ...Array.from({ length: 19 }, () => row(2, 1_000)),
    row(2, 10_000),
    row(3, 1, { cache_hit: true }),
    row(3, 500, { status: "interrupted" }),
    row(4, 100, { ...failed(500, "it broke"), model_id: "twin-1" }),
    row(3, 100, { ...failed(400, "a bad request"), model_id: "twin-1" }),
    // Before the day that is shown, in the month.
    row(60 * 30, 1_000),
    // Tests are no requests.
    row(1, 2, {
      call_type: "health_check",
      model_id: "twin-1",
      model_group: "twin",
    }),
  );
  const { data } = await fixture.get("/model/statistics");
  const byId = new Map(
    (data as unknown as readonly { readonly model_id: string }[]).map(
      (each) => [each.model_id, each],
    ),
  );
  const second = byId.get("twin-2") as unknown as Record<string, number>;
  expect(second).toMatchObject({
    requests: 22,
    failed: 0,
    interrupted: 1,
    // 20 answers of 50 tokens in 29 seconds.
    tokens_per_second: 34.5,
    last_failure: null,
    answered_at: new Date(now - 120_000).toISOString(),
  });
  expect(Math.abs((second["latency_p50_ms"] ?? 0) / 1_000 - 1)).toBeLessThan(
    0.05,
  );
  expect(Math.abs((second["latency_p95_ms"] ?? 0) / 1_000 - 1)).toBeLessThan(
    0.05,
  );
  expect(byId.get("twin-1")).toMatchObject({
    requests: 2,
    failed: 2,
    latency_p50_ms: null,
    answered_at: new Date(now - 60_000).toISOString(),
    last_failure: { status: 500, error: "it broke" },
  });

  const day = await fixture.get("/model/history?model=twin");
  expect(day).toMatchObject({
    step_hours: 1,
    total: { requests: 24, failed: 2 },
  });
  const steps = day["data"] as unknown as readonly {
    readonly from: string;
    readonly requests: number;
  }[];
  expect(steps).toHaveLength(24);
  expect(steps.reduce((sum, { requests }) => sum + requests, 0)).toBe(24);
  expect(Date.parse(steps.at(-1)?.from ?? "")).toBe(
    Math.floor(Date.now() / HOUR_MS) * HOUR_MS,
  );
  const month = await fixture.get("/model/history?model=twin&hours=720");
  expect(month).toMatchObject({ step_hours: 24, total: { requests: 25 } });
  expect(
    await fixture.rejected("GET", "/model/history?model=twin&hours=5"),
  ).toMatchObject({ status: 400, error: { param: "hours" } });
});

test("a failed test is the last failure of its deployment, and no request", async () => {
  const tested = await fixture.post("/health/test_connection", {
    model_info: { id: "wildcard" },
    mode: "chat",
  });
  expect(tested["status"]).toBe("error");
  await fixture.running.gateway.ledger.flush();
  const { data } = await fixture.get("/model/statistics");
  expect(data).toContainEqual(
    expect.objectContaining({
      model_id: "wildcard",
      requests: 0,
      answered_at: null,
      last_failure: expect.objectContaining({
        error: expect.stringContaining(":9"),
      }),
    }),
  );
});

test("the calls of a wildcard are those of its deployment, under any name", async () => {
  const at = new Date().toISOString();
  await fixture.spend({
    started_at: at,
    ended_at: at,
    model_group: "openai/gpt-5",
    model_id: "wildcard",
  });
  for (const model of ["openai/*", "openai/gpt-5"]) {
    expect(
      await fixture.get(`/model/history?model=${encodeURIComponent(model)}`),
    ).toMatchObject({ total: { requests: 1 } });
  }
});
