import { afterAll, beforeAll, expect, test } from "vitest";
import {
  modelYaml,
  startTestbed,
  type Testbed,
} from "../../test/servers/gateway.ts";

let testbed: Testbed;

beforeAll(async () => {
  testbed = await startTestbed((url) =>
    modelYaml(
      url,
      `
  - model_name: openai/*
    provider_params: { model: openai/*, api_base: ${url}, api_key: x, input_cost_per_token: 0.000001 }
    model_info: { access_groups: [open] }
  - model_name: other
    provider_params: { model: openai/other, api_base: ${url}, api_key: x }
    model_info: { access_groups: [small, beta] }
`,
    ),
  );
});

afterAll(() => testbed?.stop());

async function statusOf(
  fields: Readonly<Record<string, unknown>>,
  model: string,
): Promise<number> {
  const { gateway } = testbed;
  const key = await gateway.createKey(fields);
  return (await gateway.chat(key, "hello", { model })).status;
}

async function listed(
  fields: Readonly<Record<string, unknown>>,
  query = "",
): Promise<readonly string[]> {
  const { gateway } = testbed;
  const key = await gateway.createKey(fields);
  const path = `/v1/models${query}`;
  const { json } = await gateway.request("GET", path, undefined, key);
  return (json["data"] as unknown as { id: string }[]).map(({ id }) => id);
}

test("the name of a model without its provider means the provider's wildcard", async () => {
  const { gateway, provider } = testbed;
  const key = await gateway.createKey();
  const { headers } = await gateway.chat(key, "hello", { model: "gpt-4" });
  expect(headers.get("x-hearth-model-group")).toBe("openai/gpt-4");
  expect(provider.requests.at(-1)?.body["model"]).toBe("gpt-4");
  expect(await statusOf({}, "claude-3-opus-20240229")).toBe(400);
  expect(await statusOf({}, "nonsense-1")).toBe(400);
});

test.each(["text-embedding-3-small", "ft:gpt-4o-mini-2024-07-18:org::id"])(
  "so does the name %s, which the price catalogue knows only with its provider or not at all",
  async (name) => {
    const { gateway, provider } = testbed;
    const body = { model: name, input: `of ${name}` };
    const { status } = await gateway.request("POST", "/v1/embeddings", body);
    expect(status).toBe(200);
    expect(provider.requests.at(-1)?.body["model"]).toBe(name);
  },
);

test.each([
  [["openai/*"], "gpt-4", 200],
  [["openai/gpt-4"], "gpt-4", 200],
  [["gpt-4"], "gpt-4", 200],
  [["gpt-4o"], "gpt-4", 403],
  [["mock"], "gpt-4", 403],
  [["gpt-4"], "openai/gpt-4", 403],
])("a key with %j that calls %s gets %d", async (models, model, status) => {
  expect(await statusOf({ models }, model)).toBe(status);
});

test.each(["openai/gpt-4", "gpt-4"])(
  "a key's budget for %s counts calls that name only the model",
  async (name) => {
    const { gateway } = testbed;
    const key = await gateway.createKey({
      model_max_budget: { [name]: { budget_limit: 1e-9 } },
    });
    const ask = (prompt: string) =>
      gateway.chat(key, `${name} ${prompt}`, { model: "gpt-4" });
    expect((await ask("one")).status).toBe(200);
    const refused = await ask("two");
    expect(refused.json["error"]?.["type"]).toBe("budget_exceeded");
  },
);

test("an access group allows its aliases, those of a wildcard included", async () => {
  expect(await statusOf({ models: ["beta"] }, "other")).toBe(200);
  expect(await statusOf({ models: ["beta"] }, "mock")).toBe(403);
  expect(await statusOf({ models: ["bet*"] }, "other")).toBe(403);
  expect(await statusOf({ models: ["open"] }, "openai/gpt-4")).toBe(200);
  expect(await statusOf({ models: ["open"] }, "gpt-4")).toBe(200);
  expect(await statusOf({ models: ["open"] }, "other")).toBe(403);
  const { gateway } = testbed;
  const team = await gateway.request("POST", "/team/new", { models: ["beta"] });
  const ofTeam = { team_id: team.json["team_id"], models: ["all-team-models"] };
  expect(await statusOf(ofTeam, "other")).toBe(200);
  expect(await statusOf(ofTeam, "mock")).toBe(403);
});

test("lists name the known models of a wildcard, and the wildcard on request", async () => {
  const all = await listed({});
  expect(all).toContain("openai/gpt-4o");
  expect(all).toContain("mock");
  expect(all).not.toContain("openai/*");
  expect(await listed({}, "?return_wildcard_routes=true")).toContain(
    "openai/*",
  );
  const some = await listed({ models: ["openai/gpt-4o*"] });
  expect(some).toContain("openai/gpt-4o-mini");
  expect(some.every((id) => id.startsWith("openai/gpt-4o"))).toBe(true);
  expect(await listed({ models: ["openai/own-model", "beta"] })).toEqual([
    "other",
    "openai/own-model",
  ]);
  expect(await listed({ models: ["no-default-models"] })).toEqual([]);
});

test("an organization's wildcard allows and lists the models that it names", async () => {
  const { gateway } = testbed;
  const { json } = await gateway.request("POST", "/organization/new", {
    organization_alias: "Works",
    models: ["openai/gpt-4o*"],
  });
  const ofOrganization = { organization_id: json["organization_id"] };
  expect(await statusOf(ofOrganization, "openai/gpt-4o")).toBe(200);
  expect(await statusOf(ofOrganization, "openai/gpt-4")).toBe(403);
  const names = await listed(ofOrganization);
  expect(names).toContain("openai/gpt-4o");
  expect(names).not.toContain("openai/gpt-4");
});

test("a member may use only its allowed models of the team", async () => {
  const { gateway } = testbed;
  const { json } = await gateway.request("POST", "/team/new", {
    models: ["mock", "other"],
  });
  const team_id = json["team_id"];
  await gateway.request("POST", "/team/member_add", {
    team_id,
    member: { user_id: "limited", role: "user" },
    allowed_models: ["other"],
  });
  const ofMember = { team_id, user_id: "limited" };
  expect(await statusOf(ofMember, "other")).toBe(200);
  const key = await gateway.createKey(ofMember);
  const refused = await gateway.chat(key, "hello");
  expect(refused.status).toBe(403);
  expect(refused.json["error"]).toMatchObject({
    type: "team_model_access_denied",
    message: expect.stringContaining(
      "team member not allowed to access model mock. Allowed models of this member of team ",
    ),
  });
  expect(await listed(ofMember)).toEqual(["other"]);
  const updated = await gateway.request("POST", "/team/member_update", {
    team_id,
    user_id: "limited",
    allowed_models: null,
  });
  expect(updated.json["allowed_models"]).toEqual([]);
  await expect.poll(() => statusOf(ofMember, "mock")).toBe(200);
});
