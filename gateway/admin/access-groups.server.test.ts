import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { hashKey } from "../access/keys.ts";

/** `/v1/access_group`: models that keys and teams may call in addition to their own lists. */

let fixture: AdminFixture;

const MODELS = ["alpha", "beta", "gamma"];

beforeAll(async () => {
  fixture = await startAdminFixture();
  for (const model of MODELS) {
    await fixture.post("/model/new", {
      model_name: model,
      litellm_params: {
        model: "openai/some-model",
        api_base: fixture.providerUrl,
        api_key: "k",
      },
    });
  }
});

afterAll(() => fixture?.stop());

/** The models that a key may call, of those of these tests. */
async function models(key: string): Promise<readonly string[]> {
  const allowed: string[] = [];
  for (const model of MODELS) {
    const { status, text } = await fixture.chat(key, "hello", { model });
    expect([200, 403], text).toContain(status);
    if (status === 200) {
      allowed.push(model);
    }
  }
  const listed = await fixture.request("GET", "/v1/models", undefined, key);
  for (const model of MODELS) {
    expect(listed.text.includes(`"${model}"`)).toBe(allowed.includes(model));
  }
  return allowed;
}

async function createGroup(name: string, more: object = {}) {
  const answer = await fixture.request("POST", "/v1/access_group", {
    access_group_name: name,
    access_model_names: ["beta"],
    ...more,
  });
  expect([answer.status, answer.text]).toEqual([201, answer.text]);
  return {
    id: String(answer.json["access_group_id"]),
    group: answer.json,
    path: `/v1/access_group/${String(answer.json["access_group_id"])}`,
  };
}

async function put(path: string, body: object) {
  const answer = await fixture.request("PUT", path, body);
  expect([answer.status, answer.text]).toEqual([200, answer.text]);
  return answer.json;
}

test("a group gives its keys its models, at once, until they lose it", async () => {
  const key = await fixture.createKey({
    models: ["alpha"],
    key_alias: "grouped-key",
  });
  expect(await models(key)).toEqual(["alpha"]);
  const { id, group, path } = await createGroup("of-key", {
    assigned_key_ids: [key],
    description: "Of one key.",
  });
  expect(group).toMatchObject({
    access_group_name: "of-key",
    description: "Of one key.",
    access_model_names: ["beta"],
    assigned_key_ids: [hashKey(key)],
    assigned_keys: [{ id: hashKey(key), name: "grouped-key" }],
    assigned_team_ids: [],
    access_mcp_server_ids: [],
    access_agent_ids: [],
  });
  expect(await models(key)).toEqual(["alpha", "beta"]);
  await put(path, { access_model_names: ["ga*"] });
  expect(await models(key)).toEqual(["alpha", "gamma"]);
  const info = await fixture.get(`/key/info?key=${key}`);
  expect(info["info"]?.["access_group_ids"]).toEqual([id]);
  expect((await put(path, { assigned_key_ids: [] }))["assigned_keys"]).toEqual(
    [],
  );
  expect(await models(key)).toEqual(["alpha"]);
});

test("a group of a team reaches its keys as far as their own lists do", async () => {
  await fixture.post("/team/new", {
    team_id: "crew",
    team_alias: "Crew",
    models: ["alpha"],
  });
  const wide = await fixture.createKey({ team_id: "crew" });
  const all = await fixture.createKey({
    team_id: "crew",
    models: ["all-team-models"],
  });
  const narrow = await fixture.createKey({
    team_id: "crew",
    models: ["alpha"],
  });
  const { group } = await createGroup("of-team", {
    assigned_team_ids: ["crew"],
  });
  expect(group["assigned_teams"]).toEqual([{ id: "crew", name: "Crew" }]);
  expect(await models(wide)).toEqual(["alpha", "beta"]);
  expect(await models(all)).toEqual(["alpha", "beta"]);
  expect(await models(narrow)).toEqual(["alpha"]);
});

test("a group of a key does not lift the limits of its team", async () => {
  await fixture.post("/team/new", { team_id: "strict", models: ["alpha"] });
  const key = await fixture.createKey({ team_id: "strict", models: ["alpha"] });
  await createGroup("beyond", { assigned_key_ids: [key] });
  expect(await models(key)).toEqual(["alpha"]);
});

test("keys and teams take access_group_ids, a list without models stays a list of all", async () => {
  const { id } = await createGroup("by-id");
  const key = await fixture.createKey({
    models: ["no-default-models"],
    access_group_ids: [id],
  });
  expect(await models(key)).toEqual(["beta"]);
  await fixture.post("/key/update", { key, models: [] });
  expect(await models(key)).toEqual(MODELS);
  await fixture.post("/team/new", {
    team_id: "by-id",
    models: ["alpha"],
    access_group_ids: [id],
  });
  expect(await models(await fixture.createKey({ team_id: "by-id" }))).toEqual([
    "alpha",
    "beta",
  ]);
  const shown = await fixture.get(`/v1/access_group/${id}`);
  expect(shown).toMatchObject({
    assigned_team_ids: ["by-id"],
    assigned_key_ids: [hashKey(key)],
  });
  for (const [path, body] of [
    ["/key/generate", {}],
    ["/key/update", { key }],
    ["/team/new", {}],
    ["/team/update", { team_id: "by-id" }],
  ] as const) {
    expect(
      await fixture.rejected("POST", path, {
        ...body,
        access_group_ids: [id, "unknown"],
      }),
    ).toMatchObject({
      status: 400,
      error: { param: "access_group_ids" },
    });
  }
});

test("a deleted group takes its models from keys and teams, and never widens a list", async () => {
  const key = await fixture.createKey({ models: ["no-default-models"] });
  const { id, path } = await createGroup("short", { assigned_key_ids: [key] });
  expect(await models(key)).toEqual(["beta"]);
  const answer = await fixture.request("DELETE", path);
  expect([answer.status, answer.text]).toEqual([204, ""]);
  expect(await models(key)).toEqual([]);
  const info = await fixture.get(`/key/info?key=${key}`);
  expect(info["info"]?.["access_group_ids"]).toEqual([]);
  expect((await fixture.rejected("GET", path)).status).toBe(404);
  expect((await fixture.rejected("PUT", path, {})).status).toBe(404);
  expect((await fixture.rejected("DELETE", path)).status).toBe(404);
  const audit = await fixture.get("/audit");
  expect(JSON.stringify(audit)).toContain(id);
});

test("groups are listed under both names, and each name is given once", async () => {
  const { id } = await createGroup("listed");
  const other = await createGroup("listed-too");
  for (const path of ["/v1/access_group", "/v1/unified_access_group"]) {
    const groups = (await fixture.get(path)) as unknown as readonly {
      access_group_id: string;
    }[];
    expect(groups.map((group) => group.access_group_id)).toContain(id);
  }
  expect(
    await fixture.rejected("POST", "/v1/access_group", {
      access_group_name: "listed",
    }),
  ).toMatchObject({ status: 409, error: { param: "access_group_name" } });
  expect(
    await fixture.rejected("PUT", other.path, { access_group_name: "listed" }),
  ).toMatchObject({ status: 409, error: { param: "access_group_name" } });
  await put(other.path, { access_group_name: "renamed" });
});

test.each([
  ["assigned_team_ids", ["unknown"]],
  ["assigned_key_ids", ["sk-this-key-does-not-exist"]],
  ["access_mcp_server_ids", ["server"]],
])(
  "an unknown entry of %s is rejected and creates nothing",
  async (field, ids) => {
    const answer = await fixture.rejected("POST", "/v1/access_group", {
      access_group_name: `not-${field}`,
      [field]: ids,
    });
    expect(answer).toMatchObject({ status: 400, error: { param: field } });
    expect(JSON.stringify(answer)).not.toContain("sk-this-key");
    const groups = await fixture.request("GET", "/v1/access_group");
    expect(groups.text).not.toContain(`not-${field}`);
  },
);
