import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import type { Json } from "../../test/servers/gateway.ts";
import { query } from "../database/pool.ts";

/** Models of one team: `POST /model/new` with `model_info.team_id`. */

let fixture: AdminFixture;
const keys: Record<string, string> = {};

beforeAll(async () => {
  fixture = await startAdminFixture("", { OPENAI_API_KEY: "the-gateways-own" });
  await fixture.post("/organization/new", {
    organization_id: "org",
    models: ["mock", "crew-model"],
  });
  await fixture.post("/team/new", { team_id: "crew", models: ["mock"] });
  await fixture.post("/team/new", { team_id: "other" });
  await fixture.post("/team/new", {
    team_id: "of-org",
    organization_id: "org",
  });
  for (const [user, team, role] of [
    ["boss", "crew", "admin"],
    ["member", "crew", "user"],
    ["stranger", "other", "admin"],
    ["org-boss", "of-org", "admin"],
  ] as const) {
    const created = await fixture.post("/user/new", { user_id: user });
    keys[user] = String(created["key"]);
    await fixture.post("/team/member_add", {
      team_id: team,
      member: { user_id: user, role },
    });
  }
  keys["crew"] = await fixture.createKey({ team_id: "crew" });
  keys["crew-narrow"] = await fixture.createKey({
    team_id: "crew",
    models: ["mock"],
  });
  keys["crew-team-models"] = await fixture.createKey({
    team_id: "crew",
    models: ["all-team-models"],
  });
  keys["other"] = await fixture.createKey({ team_id: "other" });
  keys["wide"] = await fixture.createKey({ models: ["*"] });
  keys["of-org"] = await fixture.createKey({ team_id: "of-org" });
});

afterAll(() => fixture?.stop());

function modelOf(
  team: string | null,
  name: string,
  params: object = {},
  info: object = {},
) {
  return {
    model_name: name,
    litellm_params: {
      model: "openai/own-model",
      api_base: fixture.providerUrl,
      api_key: "the-teams-own",
      ...params,
    },
    model_info: { ...(team === null ? {} : { team_id: team }), ...info },
  };
}

async function create(
  team: string | null,
  name: string,
  who?: string,
  params: object = {},
): Promise<string> {
  const created = await fixture.post(
    "/model/new",
    modelOf(team, name, params),
    who === undefined ? undefined : keys[who],
  );
  return String(created["model_info"]?.["id"]);
}

/** Lets a team admin's model be at the provider's double, which is on this machine. */
const permitAddress = (id: string) =>
  fixture.post("/model/update", {
    model_info: { id, public_address_only: false },
    litellm_params: { api_base: fixture.providerUrl },
  });

const PUBLIC = { api_base: "https://provider.example/v1" };

const call = (who: string, model: string) =>
  fixture.chat(keys[who] ?? "", `to ${model}`, { model });

async function names(path: string, key: string | undefined) {
  const { data } = await fixture.get(path, key);
  return (data as unknown as readonly Json[]).map(
    (row) =>
      (row["id"] ??
        row["model_name"] ??
        row["model_group"]) as unknown as string,
  );
}

const LISTS = [
  "/v1/models",
  "/models",
  "/model/info",
  "/v1/model/info",
  "/model_group/info",
];

test("only the team's keys call a team's model, by its public name, whatever the team's list of models", async () => {
  const id = await create("crew", "crew-model");
  for (const who of ["crew", "crew-team-models"]) {
    const answer = await call(who, "crew-model");
    expect([who, answer.status]).toEqual([who, 200]);
    expect(answer.headers.get("x-hearth-model-id")).toBe(id);
  }
  for (const who of ["other", "wide", "boss", "member", "of-org"]) {
    const answer = await call(who, "crew-model");
    expect([who, answer.status, answer.json["error"]?.["type"]]).toEqual([
      who,
      400,
      "invalid_request_error",
    ]);
  }
  const denied = await call("crew-narrow", "crew-model");
  expect([denied.status, denied.json["error"]?.["type"]]).toEqual([
    403,
    "key_model_access_denied",
  ]);
  expect((await fixture.chat(keys["wide"] ?? "", "hi")).status).toBe(200);
});

test("a team's model is in the lists of the team's keys only; admins find it in /model/info", async () => {
  const id = await create("crew", "listed");
  for (const path of LISTS) {
    expect([path, await names(path, keys["crew"])]).toEqual([
      path,
      expect.arrayContaining(["listed", "mock"]),
    ]);
    for (const who of ["crew-narrow", "other", "wide", "member", "stranger"]) {
      expect([path, who, await names(path, keys[who])]).toEqual([
        path,
        who,
        expect.not.arrayContaining(["listed"]),
      ]);
    }
  }
  for (const key of [keys["boss"], undefined]) {
    const info = await fixture.get(`/model/info?litellm_model_id=${id}`, key);
    expect(info["data"]).toMatchObject([
      {
        model_name: "listed",
        model_info: { team_id: "crew", team_public_model_name: "listed" },
      },
    ]);
    expect(await names("/v1/models", key)).not.toContain("listed");
  }
  const shown = (who: string) =>
    fixture.request("GET", "/v1/models/listed", undefined, keys[who]);
  expect((await shown("crew")).status).toBe(200);
  expect((await shown("other")).status).toBe(404);
  const used = async (who: string) =>
    JSON.stringify((await fixture.get("/me/usage", keys[who]))["models"]);
  expect(await used("crew")).toContain('"listed"');
  expect(await used("other")).not.toContain('"listed"');
});

test("a team's model takes precedence over the shared one of the same name, for the team only", async () => {
  const id = await create("other", "mock");
  const own = await call("other", "mock");
  expect(own.headers.get("x-hearth-model-id")).toBe(id);
  expect(
    (await call("crew", "mock")).headers.get("x-hearth-model-id"),
  ).not.toBe(id);
  expect(
    (await names("/v1/models", keys["other"])).filter((n) => n === "mock"),
  ).toHaveLength(1);
  expect(
    (await names("/model/info", keys["other"])).filter((n) => n === "mock"),
  ).toHaveLength(1);
  await fixture.post("/model/delete", { id });
  expect((await call("other", "mock")).status).toBe(200);
});

test("a team's wildcard matches for the team only", async () => {
  const id = await create("other", "own/*", undefined, { model: "openai/*" });
  const answer = await call("other", "own/anything");
  expect(answer.status).toBe(200);
  expect(answer.headers.get("x-hearth-model-id")).toBe(id);
  expect((await call("wide", "own/anything")).status).toBe(400);
  expect((await call("crew", "own/anything")).status).toBe(403);
});

test("aliases of a team lead to its models", async () => {
  await create("other", "long-name-of-a-model");
  await fixture.post("/team/update", {
    team_id: "other",
    model_aliases: { nick: "long-name-of-a-model" },
  });
  await expect.poll(async () => (await call("other", "nick")).status).toBe(200);
  expect((await call("wide", "nick")).status).toBe(400);
});

test("a team's admin adds, changes and deletes models of its team and no others", async () => {
  const id = await create("crew", "by-boss", "boss", PUBLIC);
  await permitAddress(id);
  expect((await call("crew", "by-boss")).status).toBe(200);
  const status = async (who: string, path: string, body: unknown) =>
    (await fixture.request("POST", path, body, keys[who])).status;
  const rpm = (of: string) => ({
    model_info: { id: of },
    litellm_params: { rpm: 100 },
  });
  for (const who of ["member", "stranger", "crew"]) {
    expect([
      who,
      await status(who, "/model/new", modelOf("crew", "x")),
    ]).toEqual([who, 403]);
    expect([who, await status(who, "/model/update", rpm(id))]).toEqual([
      who,
      403,
    ]);
    expect([who, await status(who, "/model/delete", { id })]).toEqual([
      who,
      403,
    ]);
  }
  const shared = await create(null, "for-all");
  expect(await status("boss", "/model/new", modelOf(null, "x"))).toBe(403);
  expect(await status("boss", "/model/update", rpm(shared))).toBe(403);
  expect(await status("boss", "/model/delete", { id: shared })).toBe(403);
  expect(await status("boss", "/model/update", rpm(id))).toBe(200);
  for (const team_id of ["other", null]) {
    const moved = { model_info: { id, team_id } };
    expect(await status("boss", "/model/update", moved)).toBe(403);
  }
  expect(await status("boss", "/model/delete", { id })).toBe(200);
  expect((await call("crew", "by-boss")).status).toBe(403);
});

test("a team's admin uses its own provider key, and names that the team's organization allows", async () => {
  const attempt = async (body: unknown, who: string) =>
    fixture.rejected("POST", "/model/new", body, keys[who]);
  for (const params of [
    { model: "openai/gpt-5-mini", api_base: null, api_key: null },
    {
      model: "openai/gpt-5-mini",
      api_base: null,
      api_key: "os.environ/OPENAI_API_KEY",
    },
    { model: "groq/llama-3.3-70b-versatile", api_base: null, api_key: null },
  ]) {
    const { status, error } = await attempt(
      modelOf("crew", "borrowed", params),
      "boss",
    );
    expect([status, error["param"]]).toEqual([400, "litellm_params.api_key"]);
  }
  const id = await create("crew", "own-key", "boss", PUBLIC);
  const emptied = await fixture.rejected(
    "POST",
    "/model/update",
    { model_info: { id }, litellm_params: { api_key: null, api_base: null } },
    keys["boss"],
  );
  expect(emptied.error["param"]).toBe("litellm_params.api_key");
  expect(
    (await attempt(modelOf("of-org", "not-allowed"), "org-boss")).status,
  ).toBe(403);
  await permitAddress(await create("of-org", "crew-model", "org-boss", PUBLIC));
  expect((await call("of-org", "crew-model")).status).toBe(200);
});

test.each([
  "http://127.0.0.1:5984",
  "http://0x7f.1/",
  "http://[::ffff:169.254.169.254]/latest",
  "http://169.254.169.254/latest/meta-data?x=",
  "http://10.0.0.1/v1",
  "http://hearth-postgres:5432",
  "http://router.lan/v1",
])("a team's admin cannot add a model at %s", async (api_base) => {
  const rejected = async (path: string, body: unknown) => {
    const { status, error } = await fixture.rejected(
      "POST",
      path,
      body,
      keys["boss"],
    );
    expect([path, status, error["param"]]).toEqual([
      path,
      400,
      "litellm_params.api_base",
    ]);
  };
  const model = modelOf(
    "crew",
    "inside",
    { api_base },
    { public_address_only: false },
  );
  await rejected("/model/new", model);
  await rejected("/health/test_connection", {
    litellm_params: model.litellm_params,
    model_info: model.model_info,
  });
  const id = await create("crew", "moved-inside", "boss", PUBLIC);
  const moved = { api_base, api_key: "own" };
  const model_info = { id, public_address_only: false };
  await rejected("/model/update", { model_info, litellm_params: moved });
  await rejected("/model/update", {
    model_info,
    litellm_params: { base_url: api_base, api_base: null, api_key: "own" },
  });
  await fixture.post("/model/delete", { id });
});

test("a team admin's model is called at public addresses only, whatever its name resolves to, until a proxy_admin permits others", async () => {
  const id = await create("crew", "outside", "boss", PUBLIC);
  const address = { litellm_params: { api_base: fixture.providerUrl } };
  await fixture.post("/model/update", { ...address, model_info: { id } });
  const answers = [
    await call("crew", "outside"),
    await fixture.chat(keys["crew"] ?? "", "to outside, as a stream", {
      model: "outside",
      stream: true,
    }),
  ];
  for (const { status, text } of answers) {
    expect(status).toBe(502);
    expect(text).toContain("is not at a public address");
  }
  const unmark = { model_info: { id, public_address_only: false } };
  await fixture.request("POST", "/model/update", unmark, keys["boss"]);
  expect((await call("crew", "outside")).status).toBe(502);
  await permitAddress(id);
  expect((await call("crew", "outside")).status).toBe(200);
  const changed = {
    model_info: { id },
    litellm_params: { rpm: 1000 },
  };
  await fixture.post("/model/update", changed, keys["boss"]);
  expect((await call("crew", "outside")).status).toBe(200);
  const { status, error } = await fixture.rejected(
    "POST",
    "/model/update",
    {
      model_info: { id },
      litellm_params: { configurable_clientside_auth_params: ["api_base"] },
    },
    keys["boss"],
  );
  expect([status, error["param"]]).toEqual([400, "litellm_params.api_base"]);
});

test("a team's admin cannot have a stored key sent to another server", async () => {
  const id = await create("crew", "with-a-stored-key", undefined, {
    extra_headers: { "x-secret": "of the admin" },
  });
  const update = (params: object, who?: string) =>
    fixture.request(
      "POST",
      "/model/update",
      { model_info: { id }, litellm_params: params },
      who === undefined ? undefined : keys[who],
    );
  const elsewhere = { api_base: "http://elsewhere.example/v1" };
  for (const params of [
    elsewhere,
    { base_url: "http://elsewhere.example/v1" },
    { ...elsewhere, api_key: "own" },
    { model: "custom_openai/x" },
    { custom_llm_provider: "groq" },
  ]) {
    expect([params, (await update(params, "boss")).status]).toEqual([
      params,
      400,
    ]);
  }
  expect((await update({ rpm: 5 }, "boss")).status).toBe(200);
  const replaced = { ...elsewhere, api_key: "own", extra_headers: null };
  expect((await update(replaced, "boss")).status).toBe(200);
  expect((await update({ api_base: fixture.providerUrl })).status).toBe(200);
});

test("a team's admin cannot make the calls free that somebody else pays for", async () => {
  const id = await create("crew", "paid", undefined, {
    input_cost_per_token: 0.001,
  });
  const update = (changes: object) =>
    fixture.request(
      "POST",
      "/model/update",
      { model_info: { id }, ...changes },
      keys["boss"],
    );
  for (const changes of [
    { litellm_params: { input_cost_per_token: 0 } },
    { litellm_params: { input_cost_per_token: null } },
    { litellm_params: { local: true } },
    { model_info: { id, output_cost_per_token: 0 } },
    { model_info: { id, base_model: "gpt-4o-mini" } },
  ]) {
    const { status, json } = await update(changes);
    expect([changes, status, json["error"]?.["param"]]).toEqual([
      changes,
      400,
      `${"litellm_params" in changes ? "litellm" : "provider"}_params.api_key`,
    ]);
  }
  const own = { input_cost_per_token: 0, api_key: "the-teams-own" };
  expect((await update({ litellm_params: own })).status).toBe(200);
  const same = { rpm: 5, input_cost_per_token: 0, local: null };
  expect((await update({ litellm_params: same })).status).toBe(200);
  await fixture.post("/model/delete", { id });
});

test("an update renames a team's model, moves it or makes it one for all", async () => {
  const id = await create("crew", "first-name");
  const update = (fields: object, info: object = {}) =>
    fixture.post("/model/update", { model_info: { id, ...info }, ...fields });
  expect(
    (await update({ model_name: "second-name" }))["model_info"],
  ).toMatchObject({ team_public_model_name: "second-name", team_id: "crew" });
  expect((await call("crew", "second-name")).status).toBe(200);
  expect((await call("crew", "first-name")).status).toBe(403);
  // A client sends back what it read, with a new name.
  await update(
    { model_name: "third-name" },
    { team_id: "crew", team_public_model_name: "second-name" },
  );
  expect((await call("crew", "third-name")).status).toBe(200);
  await update({}, { team_id: "other" });
  expect((await call("crew", "third-name")).status).toBe(403);
  expect((await call("other", "third-name")).status).toBe(200);
  await update({}, { team_id: null });
  expect((await call("wide", "third-name")).status).toBe(200);
  await fixture.post("/model/delete", { id });
});

test("an unknown team is rejected; deleting a team deletes its models with an entry in the audit log", async () => {
  expect(
    await fixture.rejected("POST", "/model/new", modelOf("nobody", "x")),
  ).toMatchObject({ status: 404 });
  await fixture.post("/team/new", { team_id: "leaving" });
  const id = await create("leaving", "leaving-model");
  await fixture.post("/team/delete", { team_ids: ["leaving"] });
  expect(await names("/model/info", undefined)).not.toContain("leaving-model");
  expect(
    await query(
      fixture.pool,
      "SELECT action FROM audit_log WHERE object_type = 'model' AND object_id = $1 ORDER BY at",
      [id],
    ),
  ).toEqual([{ action: "created" }, { action: "deleted" }]);
  await fixture.post("/team/new", { team_id: "leaving" });
  const again = await fixture.createKey({ team_id: "leaving" });
  expect(
    (await fixture.chat(again, "x", { model: "leaving-model" })).status,
  ).toBe(400);
});

test("teams with models of the same name share neither answers of a global cache nor fallbacks", async () => {
  const first = await create("crew", "same-name", undefined, {
    model: "openai/one",
  });
  const second = await create("other", "same-name", undefined, {
    model: "openai/two",
  });
  for (const [who, id] of [
    ["crew", first],
    ["other", second],
  ] as const) {
    const answer = await call(who, "same-name");
    expect(answer.headers.get("x-hearth-model-id")).toBe(id);
  }
  const fallen = await fixture.chat(keys["wide"] ?? "", "fall back", {
    model: "mock",
    fallbacks: ["same-name"],
  });
  expect(fallen.status).toBe(400);
  expect(fallen.text).toContain("Fallback same-name: Invalid model");
});

test("parameters that have no effect here are rejected by name, empty ones accepted; num_retries is honoured", async () => {
  for (const [param, value] of [
    ["region_name", "eu"],
    ["aws_secret_access_key", "secret-value"],
    ["guardrails", ["pii"]],
    ["rmp", 5],
  ] as const) {
    const { status, error } = await fixture.rejected(
      "POST",
      "/model/new",
      modelOf(null, "unknown-params", { [param]: value }),
    );
    expect([param, status, error["param"]]).toEqual([
      param,
      400,
      `litellm_params.${param}`,
    ]);
    expect(JSON.stringify(error)).not.toContain("secret-value");
  }
  const { error } = await fixture.rejected(
    "POST",
    "/model/new",
    modelOf(null, "x", {}, { team_model_rpm_limit: 5 }),
  );
  expect(error["param"]).toBe("model_info.team_model_rpm_limit");
  const id = await create(null, "with-retries", undefined, {
    num_retries: 0,
    region_name: null,
    guardrails: [],
    use_in_pass_through: false,
  });
  expect(
    (
      await fixture.rejected("POST", "/model/update", {
        model_info: { id },
        litellm_params: { region_name: "eu" },
      })
    ).error["param"],
  ).toBe("litellm_params.region_name");
  const { data } = await fixture.get(`/model/info?litellm_model_id=${id}`);
  expect(data).toHaveLength(1);
});
