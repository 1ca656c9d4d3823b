import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { LITELLM_FIELDS } from "./litellm-fields.ts";

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
});

afterAll(() => fixture?.stop());

test.each([
  ["/key/generate", { max_budgt: 5 }, "max_budgt", "did you mean `max_budget`"],
  ["/key/generate", { budget: 5 }, "budget", "Unknown field `budget`."],
  [
    "/team/new",
    { members_with_roles: [{ user_id: "a", roll: "admin" }] },
    "members_with_roles[0].roll",
    "did you mean `role`",
  ],
  [
    "/key/generate",
    { model_max_budget: { mock: { budget_limit: 1, time_perod: "1d" } } },
    "model_max_budget.mock.time_perod",
    "did you mean `time_period`",
  ],
  [
    "/key/generate",
    { model_max_budget: { "openai/*": 5 } },
    "model_max_budget",
    "is a pattern",
  ],
  [
    "/key/generate",
    { model_rpm_limit: { "*": 5 } },
    "model_rpm_limit",
    "is a pattern",
  ],
  ["/user/new", { usr_email: "a@b.example" }, "usr_email", "did you mean"],
  ["/budget/new", { max_budjet: 1 }, "max_budjet", "did you mean"],
])(
  "%s rejects %o by name and creates nothing",
  async (path, body, param, says) => {
    const before = await fixture.get("/key/list");
    const { status, error } = await fixture.rejected("POST", path, body);
    expect(status).toBe(400);
    expect(error).toMatchObject({
      param,
      message: expect.stringContaining(says),
    });
    expect(await fixture.get("/key/list")).toMatchObject({
      total_count: before["total_count"],
    });
  },
);

test("a misspelt filter of a list is rejected", async () => {
  expect(
    await fixture.rejected("GET", "/key/list?user_idd=alice"),
  ).toMatchObject({ status: 400, error: { param: "user_idd" } });
});

test.each([
  "/key/list?project_id=p",
  "/key/list?agent_id=a",
  "/user/list?project_id=p",
])("GET %s is rejected: without the filter it would list all", async (path) => {
  expect(await fixture.rejected("GET", path)).toMatchObject({
    status: 400,
    error: { message: expect.stringContaining("is not supported: there are") },
  });
});

test("an invalid entry among many is named, the others are changed", async () => {
  const [good, bad] = [
    await fixture.createKey({}),
    await fixture.createKey({}),
  ];
  const done = await fixture.post("/key/bulk_update", {
    keys: [
      { key: good, max_budget: 3 },
      { key: bad, max_bugdet: 3 },
    ],
  });
  expect(done["successful_updates"]).toHaveLength(1);
  expect(done["failed_updates"]).toMatchObject([
    { failed_reason: expect.stringContaining("did you mean `max_budget`") },
  ]);
});

test("every field of LiteLLM is accepted while it is empty", async () => {
  const empty = Object.fromEntries(
    LITELLM_FIELDS.map(({ field }) => [field, null]),
  );
  await fixture.post("/key/generate", empty);
  await fixture.post("/team/new", empty);
  await fixture.post("/user/new", { ...empty, user_id: "from-litellm" });
});

test.each([
  ["bedrock", { aws_access_key_id: "id", aws_region_name: "eu-west-1" }],
  ["vertex_ai", { vertex_project: "project", vertex_location: "eu" }],
])(
  "a model of %s is rejected for its provider, not for its parameters",
  async (provider, params) => {
    const model = `${provider}/some-model`;
    const { status, error } = await fixture.rejected("POST", "/model/new", {
      model_name: provider,
      litellm_params: { model, ...params },
    });
    expect(status).toBe(400);
    expect(error["message"]).toContain(`provider "${provider}" is not`);
  },
);

// https://github.com/BerriAI/terraform-provider-litellm sends both.
test("fields that LiteLLM's Terraform provider leaves empty are accepted", async () => {
  await fixture.post("/model/new", {
    model_name: "terraform",
    litellm_params: {
      custom_llm_provider: "openai",
      model: "openai/gpt-4o",
      merge_reasoning_content_in_choices: false,
      api_base: fixture.providerUrl,
    },
    model_info: { id: "tf", db_model: true, base_model: "gpt-4o", tier: "" },
    additional: {},
  });
  await fixture.post("/organization/new", {
    organization_id: "tf",
    organization_alias: "Terraform",
  });
  const member = { role: "internal_user", user_id: "tf-member" };
  const membership = {
    organization_id: "tf",
    max_budget_in_organization: null,
  };
  await fixture.post("/organization/member_add", { ...membership, member });
  expect(
    await fixture.rejected("POST", "/organization/member_add", {
      organization_id: "tf",
      member: { ...member, user_id: "other" },
      max_budget_in_organization: 5,
    }),
  ).toMatchObject({
    status: 400,
    error: { param: "max_budget_in_organization" },
  });
});

test("an empty id of an owner or a tier means none, as in LiteLLM; one that is required must not be empty", async () => {
  const none = { user_id: null, team_id: null, organization_id: null };
  const empty = { user_id: "", team_id: "", organization_id: "" };
  const { key } = await fixture.post("/key/generate", {
    ...empty,
    budget_id: "",
  });
  const info = async () => await fixture.get(`/key/info?key=${String(key)}`);
  expect(await info()).toMatchObject({ info: { ...none, budget_id: null } });
  const { team_id: team } = await fixture.post("/team/new", {
    organization_id: "",
  });
  await fixture.post("/key/update", { key, team_id: team });
  expect(await info()).toMatchObject({ info: { team_id: team } });
  await fixture.post("/key/update", { key, team_id: "" });
  expect(await info()).toMatchObject({ info: none });
  await fixture.post("/model/new", {
    model_name: "of-no-team",
    litellm_params: { model: "openai/gpt-4o", api_key: "x" },
    model_info: { id: "of-no-team", team_id: "" },
  });
  expect(
    await fixture.rejected("POST", "/team/update", { team_id: "" }),
  ).toMatchObject({ error: { message: "`team_id` must not be empty." } });
});

// https://github.com/BerriAI/terraform-provider-litellm sends all of them with each change.
test("a change with an empty alias and an empty budget duration removes the one and keeps the other, as in LiteLLM", async () => {
  const { key } = await fixture.post("/key/generate", {
    key_alias: "tf-key",
    max_budget: 5,
    budget_duration: "30d",
  });
  await fixture.post("/key/update", {
    key,
    team_id: "",
    metadata: null,
    budget_duration: "",
    key_alias: "",
    aliases: null,
    permissions: null,
    model_max_budget: null,
    model_rpm_limit: null,
    model_tpm_limit: null,
    blocked: false,
  });
  expect(await fixture.get(`/key/info?key=${String(key)}`)).toMatchObject({
    info: { key_alias: null, max_budget: 5, budget_duration: "30d" },
  });
  expect(
    await fixture.post("/key/generate", { key_alias: "", budget_duration: "" }),
  ).toMatchObject({ key_alias: null, budget_duration: null });
});

test("the guide lists every field of LiteLLM and its replacement", () => {
  const guide = readFileSync(
    new URL("../../docs/litellm.md", import.meta.url),
    "utf8",
  );
  for (const { field, instead } of LITELLM_FIELDS) {
    expect(guide).toContain(`\`${field}\``);
    if (instead !== null) {
      expect(guide).toContain(instead);
    }
  }
});

test("a field of LiteLLM that would protect something is rejected with its replacement", async () => {
  for (const [path, field, value] of [
    ["/customer/new", "guardrails", ["pii"]],
    ["/team/new", "team_member_key_duration", "1d"],
    ["/user/new", "model_max_budget", { mock: 1 }],
    ["/customer/new", "allowed_model_region", "eu"],
  ] as const) {
    const body = { [field]: value, user_id: "u" };
    const { status, error } = await fixture.rejected("POST", path, body);
    expect([path, status]).toEqual([path, 400]);
    expect(error).toMatchObject({
      param: field,
      message: expect.stringMatching(
        /is not supported: .+\. Leave it out here\.$/,
      ),
    });
  }
  await fixture.post("/key/generate", { rotation_interval: "30d" });
});

test("budgets of models are accepted in LiteLLM's formats too", async () => {
  const made = await fixture.post("/key/generate", {
    model_max_budget: {
      mock: { max_budget: 2, budget_duration: "1d" },
      other: 5,
    },
  });
  expect(made["model_max_budget"]).toEqual({
    mock: { budget_limit: 2, time_period: "1d" },
    other: { budget_limit: 5 },
  });
});

test("a user joins teams with a role and a budget", async () => {
  await fixture.post("/team/new", { team_id: "joined" });
  const user = await fixture.post("/user/new", {
    user_id: "joiner",
    teams: [{ team_id: "joined", user_role: "admin", max_budget_in_team: 4 }],
  });
  expect(user["teams"]).toEqual(["joined"]);
  const { team_memberships: members } = await fixture.get(
    "/team/info?team_id=joined",
  );
  expect(members).toContainEqual(
    expect.objectContaining({
      user_id: "joiner",
      role: "admin",
      max_budget: 4,
    }),
  );
});

test("an admin can create a key with spend", async () => {
  const made = await fixture.post("/key/generate", { spend: 1.5 });
  expect(made["spend"]).toBe(1.5);
  const user = await fixture.createKey({ user_id: "plain" });
  expect(
    await fixture.rejected("POST", "/key/generate", { spend: 1 }, user),
  ).toMatchObject({ status: 403, error: { param: "spend" } });
  expect(await fixture.differences()).toEqual([]);
});

test("a temporary increase requires its end", async () => {
  const key = await fixture.createKey({});
  expect(
    await fixture.rejected("POST", "/key/update", {
      key,
      temp_budget_increase: 5,
    }),
  ).toMatchObject({ status: 400, error: { param: "temp_budget_expiry" } });
});

test("deleted keys are listed from the history", async () => {
  const key = await fixture.createKey({ key_alias: "was-here" });
  await fixture.post("/key/delete", { keys: [key] });
  expect(
    await fixture.get(
      "/key/list?status=deleted&key_alias=was-here&return_full_object=true",
    ),
  ).toMatchObject({
    total_count: 1,
    keys: [{ key_alias: "was-here", deleted_by: "default_user_id" }],
  });
});
