import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import type { Json } from "../../test/servers/gateway.ts";

/** `GET /v2/model/info` and `PATCH /model/{id}/update`. */

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
  for (const team of ["crew", "other"]) {
    await fixture.post("/team/new", { team_id: team, models: ["cheap"] });
  }
  await addModel("cheap", { input_cost_per_token: 0.000001 });
  await addModel("dear", { input_cost_per_token: 0.00001 });
  await addModel("wild/*", {});
  await addModel("of-crew", {}, { team_id: "crew" });
});

afterAll(() => fixture?.stop());

function addModel(name: string, params: object, info: object = {}) {
  return fixture.post("/model/new", {
    model_name: name,
    litellm_params: {
      model: name.endsWith("*") ? "openai/*" : "openai/some-model",
      api_base: fixture.providerUrl,
      api_key: "secret-key-of-the-model",
      ...params,
    },
    model_info: { id: `id-${name}`, ...info },
  });
}

async function list(query: string, key?: string): Promise<Json> {
  return fixture.get(`/v2/model/info?${query}`, key);
}

async function namesOf(query: string, key?: string) {
  const { data } = await list(query, key);
  return (data as unknown as readonly Json[]).map((row) => row["model_name"]);
}

test("models are listed page by page, with who added them, and without secrets", async () => {
  const first = await list("size=3");
  expect(first).toMatchObject({
    total_count: 5,
    current_page: 1,
    total_pages: 2,
    size: 3,
  });
  expect(first["data"]).toHaveLength(3);
  expect(await namesOf("size=3&page=2")).toHaveLength(2);
  expect(await namesOf("size=3&page=3")).toEqual([]);
  const { data } = await list("modelId=id-cheap");
  expect(data).toMatchObject([
    {
      model_name: "cheap",
      model_info: {
        db_model: true,
        created_by: "default_user_id",
        created_at: expect.any(String),
      },
    },
  ]);
  expect(JSON.stringify([first, data])).not.toContain("secret-key");
});

test.each([
  ["model=dear", ["dear"]],
  ["search=CHEA", ["cheap"]],
  ["search=some-model&sortBy=model_name", ["cheap", "dear", "of-crew"]],
  ["wildcard_only=true", ["wild/*"]],
  ["blocked=true", []],
  [
    "user_models_only=true&sortBy=costs&sortOrder=desc&search=some-model",
    ["dear", "cheap", "of-crew"],
  ],
  ["teamId=crew&sortBy=model_name", ["cheap", "of-crew"]],
  ["teamId=other", ["cheap"]],
])("%s finds %j", async (query, names) => {
  expect(await namesOf(query)).toEqual(names);
});

test("include_team_models says by which way a model is accessible", async () => {
  const { key } = await fixture.post("/user/new", {
    user_id: "anna",
    models: ["dear"],
  });
  await fixture.post("/team/member_add", {
    team_id: "crew",
    member: { user_id: "anna" },
  });
  const { data } = await list(
    "include_team_models=true&sortBy=model_name",
    String(key),
  );
  const rows = data as unknown as readonly Json[];
  expect(
    rows.map(({ model_name, model_info }) => [
      model_name,
      model_info?.["direct_access"],
      model_info?.["access_via_team_ids"],
    ]),
  ).toEqual([["dear", true, []]]);
  const all = (await list("include_team_models=true&modelId=id-of-crew"))[
    "data"
  ];
  expect(all).toMatchObject([
    {
      model_info: { direct_access: false, access_via_team_ids: ["crew"] },
    },
  ]);
  expect(
    await fixture.rejected(
      "GET",
      "/v2/model/info?teamId=other",
      undefined,
      String(key),
    ),
  ).toMatchObject({ status: 404, error: { param: "teamId" } });
});

test("an unknown order or filter is rejected", async () => {
  for (const query of ["sortBy=size", "sortOrder=up", "size=0", "modle=x"]) {
    expect([
      query,
      (await fixture.rejected("GET", `/v2/model/info?${query}`)).status,
    ]).toEqual([query, 400]);
  }
});

test("PATCH changes only what it names", async () => {
  await addModel("patched", { rpm: 5, tpm: 500 });
  const patch = (body: object) =>
    fixture.request("PATCH", "/model/id-patched/update", body);
  const changed = await patch({
    litellm_params: { rpm: 9 },
    model_info: { team: "blue" },
  });
  expect(changed.status).toBe(200);
  expect(changed.json).toMatchObject({
    model_id: "id-patched",
    model_name: "patched",
    litellm_params: { rpm: 9, tpm: 500 },
    model_info: { team: "blue" },
  });
  const removed = await patch({ litellm_params_to_remove: ["tpm"] });
  expect(removed.json["litellm_params"]).toMatchObject({ rpm: 9 });
  expect(removed.json["litellm_params"]).not.toHaveProperty("tpm");
  const key = await fixture.createKey({});
  expect((await fixture.chat(key, "hello", { model: "patched" })).status).toBe(
    200,
  );
  expect(
    (await fixture.rejected("PATCH", "/model/unknown/update", {})).status,
  ).toBe(404);
  expect(
    await fixture.rejected("PATCH", "/model/id-patched/update", {
      litellm_params: { rmp: 1 },
    }),
  ).toMatchObject({
    status: 400,
    error: { message: expect.stringContaining("did you mean `rpm`") },
  });
});
