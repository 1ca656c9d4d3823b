import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { query } from "../database/pool.ts";

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture(`
  - model_name: vectors
    provider_params: { model: openai/embed, api_base: "http://127.0.0.1:9", api_key: x }
    model_info: { id: vectors-id, mode: embedding }
  - model_name: waiting
    provider_params: { model: openai/w, api_base: "http://127.0.0.1:9", api_key: os.environ/HEARTH_TEST_UNSET }
    model_info: { id: waiting-id }
`);
});

afterAll(() => fixture?.stop());

const testOf = (body: object, key?: string) =>
  fixture.post("/health/test_connection", body, key);

test("a configured model is called for one token, found by its alias, model or id", async () => {
  const { running } = fixture;
  const id = running.gateway.catalog.deployments[0]?.id ?? "";
  for (const body of [
    { litellm_params: { model: "mock" } },
    { litellm_params: { model: "openai/mock-model" }, mode: "chat" },
    { model_info: { id } },
  ]) {
    expect(await testOf(body)).toEqual({
      status: "success",
      result: {
        model: "openai/mock-model",
        mode: "chat",
        model_id: id,
        latency_ms: expect.any(Number),
        prompt_tokens: expect.any(Number),
        completion_tokens: expect.any(Number),
        spend: expect.any(Number),
      },
    });
  }
  await running.gateway.ledger.flush();
  const rows = await query(
    fixture.pool,
    "SELECT call_type, user_id, model_id FROM spend_log",
  );
  expect(rows).toEqual(
    Array(3).fill({
      call_type: "health_check",
      user_id: "default_user_id",
      model_id: id,
    }),
  );
});

test("a model that does not answer, or waits for a variable, is an error with the reason", async () => {
  const down = await testOf({ model_info: { id: "vectors-id" } });
  expect(down).toMatchObject({
    status: "error",
    result: { mode: "embedding", error: expect.stringContaining(":9") },
  });
  expect(await testOf({ model_info: { id: "waiting-id" } })).toMatchObject({
    status: "error",
    result: { error: expect.stringContaining("HEARTH_TEST_UNSET") },
  });
});

test("a model is tested before it is added, with its own key and address only", async () => {
  const described = {
    model: "openai/new",
    api_base: fixture.providerUrl,
    api_key: "new-key",
  };
  expect(await testOf({ litellm_params: described })).toMatchObject({
    status: "success",
    result: { model: "openai/new", mode: "chat", spend: 0 },
  });
  const models = await fixture.get("/model/info");
  expect(JSON.stringify(models)).not.toContain("openai/new");
  // The configured model's key is not sent to another address.
  const moved = await testOf({
    litellm_params: {
      model: "openai/mock-model",
      api_base: fixture.providerUrl,
    },
  });
  expect(moved["result"]).not.toHaveProperty("model_id");
});

test.each([
  [{}, "litellm_params"],
  [{ litellm_params: { model: "mock" }, mode: "video_generation" }, "mode"],
  [{ litellm_params: {} }, "litellm_params.model"],
  [
    { litellm_params: { model: "openai/x", region_name: "eu" } },
    "litellm_params.region_name",
  ],
  [
    { litellm_params: { model: "openai/x", api_base: "nowhere" } },
    "litellm_params.api_base",
  ],
])("%j is rejected and names %s", async (body, param) => {
  expect(
    await fixture.rejected("POST", "/health/test_connection", body),
  ).toMatchObject({ status: 400, error: { param } });
  expect(
    await fixture.rejected("POST", "/health/test_connection", {
      model_info: { id: "unknown" },
    }),
  ).toMatchObject({ status: 404 });
});

test("a team's admin tests its team's model by a name that another team's model has, too", async () => {
  const names = ["first", "second"];
  const leads: string[] = [];
  for (const team_id of names) {
    await fixture.post("/team/new", { team_id });
    const { key } = await fixture.post("/user/new", { user_id: team_id });
    leads.push(String(key));
    const member = { user_id: team_id, role: "admin" };
    await fixture.post("/team/member_add", { team_id, member });
    await fixture.post("/model/new", {
      model_name: "common",
      litellm_params: {
        model: "openai/m",
        api_base: fixture.providerUrl,
        api_key: "k",
      },
      model_info: { id: `of-${team_id}`, team_id },
    });
  }
  for (const [at, team] of names.entries()) {
    for (const model of ["common", "openai/m"]) {
      const tested = await testOf({ litellm_params: { model } }, leads[at]);
      expect(tested).toMatchObject({
        status: "success",
        result: { model_id: `of-${team}` },
      });
    }
  }
  await fixture.post("/model/delete", { id: "of-first" });
  const rejected = (model: string) =>
    fixture.rejected(
      "POST",
      "/health/test_connection",
      { litellm_params: { model } },
      leads[0],
    );
  // The names of another team's models are not revealed.
  expect(await rejected("common")).toEqual(await rejected("unknown"));
});

test("a team's admin tests its team's models with a key of the team, others test none", async () => {
  await fixture.post("/team/new", { team_id: "crew" });
  const { key } = await fixture.post("/user/new", { user_id: "lead" });
  const lead = String(key);
  const member = { user_id: "lead", role: "admin" };
  await fixture.post("/team/member_add", { team_id: "crew", member });
  const model_info = { team_id: "crew" };
  const own = {
    model: "openai/m",
    api_base: "https://provider.invalid/v1",
    api_key: "k",
  };
  const tried = await testOf({ litellm_params: own, model_info }, lead);
  expect(tried).toMatchObject({
    status: "error",
    result: { error: expect.stringContaining("provider.invalid") },
  });
  await fixture.post("/model/new", {
    model_name: "of-crew",
    litellm_params: { ...own, api_base: fixture.providerUrl },
    model_info: { id: "of-crew", ...model_info },
  });
  const allowed = await testOf({ model_info: { id: "of-crew" } }, lead);
  expect(allowed).toMatchObject({ status: "success" });
  for (const [body, status] of [
    [{ litellm_params: { model: "mock" } }, 403],
    [{ litellm_params: own }, 403],
    [{ litellm_params: own, model_info: { team_id: "other" } }, 403],
    [
      {
        litellm_params: { ...own, api_key: "os.environ/PROXY_MASTER_KEY" },
        model_info,
      },
      400,
    ],
    // Where the variable of the provider is set, the gateway's key would be used: a credential is not the team's.
    [
      {
        litellm_params: { model: "openai/m", litellm_credential_name: "any" },
        model_info,
      },
      403,
    ],
  ] as const) {
    const path = "/health/test_connection";
    const { status: is } = await fixture.rejected("POST", path, body, lead);
    expect([body, is]).toEqual([body, status]);
  }
});
