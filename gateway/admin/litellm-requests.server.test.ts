import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { hashKey } from "../access/keys.ts";

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
});

afterAll(() => fixture?.stop());

test("deleted keys are answered as they were sent, without those that did not exist", async () => {
  const secret = await fixture.createKey();
  const hashed = hashKey(await fixture.createKey());
  const unknown = hashKey("sk-unknown");
  expect(
    await fixture.post("/key/delete", { keys: [hashed, unknown, secret] }),
  ).toEqual({ deleted_keys: [hashed, secret] });
  await fixture.createKey({ key_alias: "by-alias" });
  expect(
    await fixture.post("/key/delete", { key_aliases: ["by-alias", "none"] }),
  ).toEqual({ deleted_keys: ["by-alias"] });
});

test("a key without `key` is updated by its alias", async () => {
  const key = await fixture.createKey({ key_alias: "renewed" });
  expect(
    await fixture.post("/key/update", { key_alias: "renewed", max_budget: 4 }),
  ).toMatchObject({ token: hashKey(key), key_alias: "renewed", max_budget: 4 });
  const stranger = await fixture.createKey({ user_id: "stranger" });
  for (const [body, by, status, param] of [
    [{ key_alias: "none", max_budget: 4 }, undefined, 404, "key_alias"],
    [{ max_budget: 4 }, undefined, 400, "key"],
    [{ key_alias: "renewed", max_budget: 9 }, stranger, 404, "key_alias"],
  ] as const) {
    expect(
      await fixture.rejected("POST", "/key/update", body, by),
    ).toMatchObject({ status, error: { param } });
  }
});

test("a key's and its team's own names of models are listed, if it may use the models", async () => {
  const team = await fixture.post("/team/new", {
    model_aliases: { "team-name": "mock" },
  });
  const key = await fixture.createKey({
    team_id: team["team_id"],
    aliases: { "own-name": "mock", nowhere: "none" },
  });
  const listed = await fixture.get("/v1/models", key);
  const ids = (listed["data"] as unknown as { id: string }[]).map(
    ({ id }) => id,
  );
  expect(ids).toEqual(["mock", "own-name", "team-name"]);
  expect(await fixture.get("/v1/models/own-name", key)).toMatchObject({
    id: "own-name",
  });
  const denied = await fixture.createKey({
    models: ["other"],
    aliases: { "own-name": "mock" },
  });
  expect((await fixture.get("/v1/models", denied))["data"]).toEqual([]);
});

test("e-mail addresses are compared in any case", async () => {
  await fixture.post("/user/new", {
    user_id: "mixed",
    user_email: "Ada.Byron@Example.org",
    key_alias: "of-mixed",
  });
  const other = "ada.byron@example.ORG";
  expect(
    await fixture.rejected("POST", "/user/new", { user_email: other }),
  ).toMatchObject({ status: 409, error: { param: "user_email" } });
  const updated = await fixture.post("/user/update", {
    user_email: other,
    max_budget: 3,
  });
  expect(updated["user_id"]).toBe("mixed");
  const team = await fixture.post("/team/new", {});
  const grown = await fixture.post("/team/member_add", {
    team_id: team["team_id"],
    member: { role: "user", user_email: other.toUpperCase() },
  });
  expect(grown["members_with_roles"]).toContainEqual(
    expect.objectContaining({ user_id: "mixed" }),
  );
  const keys = await fixture.get(
    `/key/list?return_full_object=true&user_email=${other}`,
  );
  expect(keys).toMatchObject({
    total_count: 1,
    keys: [{ key_alias: "of-mixed" }],
  });
});

test.each([
  ["hourly", "1h"],
  ["daily", "24h"],
  ["weekly", "7d"],
  ["Monthly", "30d"],
])(
  "a budget of LiteLLM's that resets %s has the window %s",
  async (word, is) => {
    expect(
      await fixture.post("/key/generate", {
        max_budget: 1,
        budget_duration: word,
        duration: word,
        model_max_budget: { mock: { budget_limit: 1, time_period: word } },
      }),
    ).toMatchObject({
      budget_duration: is,
      expires: expect.any(String),
      budget_reset_at: expect.any(String),
      model_max_budget: { mock: { time_period: is } },
    });
  },
);

test("a group of routes that does not exist is rejected: the key could make no call", async () => {
  for (const entry of ["openai_routes", "chat/completions"]) {
    const body = { allowed_routes: ["/v1/models", entry] };
    const { status, error } = await fixture.rejected(
      "POST",
      "/key/generate",
      body,
    );
    expect([entry, status]).toEqual([entry, 400]);
    expect(error["message"]).toContain("llm_api_routes");
  }
  await fixture.createKey({
    allowed_routes: ["llm_api_routes", "/key/*", "/chat/completions"],
  });
});

test("a key with a duration of 0 s is created expired", async () => {
  const created = await fixture.post("/key/generate", { duration: "0s" });
  const until = Date.parse(String(created["expires"]));
  expect(until).toBeLessThanOrEqual(Date.now());
  const call = await fixture.chat(String(created["key"]), "hello");
  expect(call.status).toBe(401);
  expect(call.json["error"]).toMatchObject({ type: "expired_key" });
  expect(
    await fixture.rejected("POST", "/key/generate", { budget_duration: "0s" }),
  ).toMatchObject({ status: 400, error: { param: "budget_duration" } });
});

test("the cost of a model that is not configured is calculated from the catalogue", async () => {
  const completion_response = {
    model: "gpt-4o",
    usage: {
      prompt_tokens: 1_000,
      completion_tokens: 100,
      total_tokens: 1_100,
    },
  };
  // Published by OpenAI: 2.50 and 10 dollars for a million tokens.
  for (const body of [
    { completion_response },
    { completion_response: { ...completion_response, model: "openai/gpt-4o" } },
  ]) {
    const { cost, unpriced } = await fixture.post("/spend/calculate", body);
    expect(cost).toBeCloseTo(0.0035, 9);
    expect(unpriced).toBe(false);
  }
  const counted = await fixture.post("/spend/calculate", {
    model: "claude-3-5-haiku-latest",
    messages: [{ role: "user", content: "How are you?" }],
  });
  expect(counted["cost"]).toBeGreaterThan(0);
  expect(
    await fixture.rejected("POST", "/spend/calculate", {
      model: "no-such-model",
      messages: [],
    }),
  ).toMatchObject({ status: 400, error: { param: "model" } });
});

test("a new user joins teams named by id, by alias, as objects and as team_id", async () => {
  const ids = [];
  for (const team_alias of ["One", "Two", "Three"]) {
    const team = await fixture.post("/team/new", { team_alias });
    ids.push(String(team["team_id"]));
  }
  const [one, two, three] = ids;
  const user = await fixture.post("/user/new", {
    teams: [one, { team_id: "Two", user_role: "admin" }],
    team_id: "Three",
  });
  expect(user).toMatchObject({
    teams: ids.toSorted(),
    team_id: three,
    key: expect.stringMatching(/^sk-/),
  });
  const info = await fixture.get(`/team/info?team_id=${two}`);
  expect(info["team_memberships"]).toMatchObject([{}, { role: "admin" }]);
  expect(
    await fixture.rejected("POST", "/user/new", { team_id: "no-such-team" }),
  ).toMatchObject({ status: 404, error: { param: "team_id" } });
});

test("a key in x-litellm-api-key counts before another credential", async () => {
  const key = await fixture.createKey();
  const answer = await fixture.request("GET", "/v1/models", undefined, "", {
    authorization: "Bearer token-of-a-provider",
    "x-litellm-api-key": `Bearer ${key}`,
  });
  expect(answer.status).toBe(200);
});

test("a listed model has the limits that are known, for clients of Anthropic by their names", async () => {
  const params = { api_base: fixture.providerUrl, api_key: "x" };
  for (const [name, info] of [
    ["wide", { max_input_tokens: 200_000, max_output_tokens: 9_000 }],
    ["embedder", { mode: "embedding" }],
  ] as const) {
    await fixture.post("/model/new", {
      model_name: name,
      litellm_params: { ...params, model: "openai/unknown-model" },
      model_info: info,
    });
  }
  expect(await fixture.get("/v1/models/wide")).toMatchObject({
    mode: "chat",
    max_input_tokens: 200_000,
    max_output_tokens: 9_000,
  });
  const embedder = await fixture.get("/v1/models/embedder");
  expect(embedder).toMatchObject({ mode: "embedding" });
  expect(embedder).not.toHaveProperty("max_input_tokens");
  const ofAnthropic = async (name: string) => {
    const headers = { "anthropic-version": "2023-06-01" };
    const path = `/v1/models/${name}`;
    const key = await fixture.createKey();
    return (await fixture.request("GET", path, undefined, key, headers)).json;
  };
  expect(await ofAnthropic("wide")).toMatchObject({
    max_input_tokens: 200_000,
    max_tokens: 9_000,
  });
  expect(await ofAnthropic("embedder")).toMatchObject({
    max_input_tokens: null,
    max_tokens: null,
  });
});

test("moderations without a model use the alias of that mode, or OpenAI's default", async () => {
  const key = await fixture.createKey();
  const ask = () =>
    fixture.request("POST", "/v1/moderations", { input: "text" }, key);
  const before = await ask();
  expect(before.status).toBe(400);
  expect(before.json["error"]?.["message"]).toContain("omni-moderation-latest");
  await fixture.post("/model/new", {
    model_name: "watch",
    litellm_params: {
      model: "openai/watch-model",
      api_base: fixture.providerUrl,
      api_key: "x",
    },
    model_info: { mode: "moderation" },
  });
  const { headers } = await ask();
  expect(headers.get("x-hearth-model-group")).toBe("watch");
});

test("the gateway's version has LiteLLM's name too", async () => {
  const ready = await fixture.get("/health/readiness");
  expect(ready["litellm_version"]).toBe(ready["version"]);
});

test("a new model's id is in model_id too", async () => {
  const created = await fixture.post("/model/new", {
    model_name: "numbered",
    litellm_params: { model: "openai/m", api_base: fixture.providerUrl },
    model_info: { id: "number-7" },
  });
  expect(created["model_id"]).toBe("number-7");
});

test("numbers of limits may be texts, as LiteLLM's documentation writes some", async () => {
  const daily = { budget_limit: "0.0000001", time_period: "1d" };
  const fields = {
    max_budget: "1e-7",
    rpm_limit: "10",
    max_parallel_requests: "2",
    model_max_budget: { mock: daily, other: "4" },
  };
  expect(await fixture.post("/key/generate", fields)).toMatchObject({
    max_budget: 1e-7,
    rpm_limit: 10,
    max_parallel_requests: 2,
    model_max_budget: {
      mock: { budget_limit: 1e-7, time_period: "1d" },
      other: { budget_limit: 4 },
    },
  });
  expect(
    await fixture.post("/customer/new", { user_id: "poor", max_budget: "0" }),
  ).toMatchObject({ max_budget: 0 });
});

test.each([
  ["max_budget", ""],
  ["max_budget", "ten"],
  ["max_budget", "-1"],
  ["max_budget", "0x10"],
  ["max_budget", "1e99"],
  ["rpm_limit", "1.5"],
])("%s: %j is rejected", async (field, value) => {
  expect(
    await fixture.rejected("POST", "/key/generate", { [field]: value }),
  ).toMatchObject({ status: 400, error: { param: field } });
});
