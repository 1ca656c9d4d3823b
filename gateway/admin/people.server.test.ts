import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { hashKey } from "../access/keys.ts";
import { query } from "../database/pool.ts";

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
});

afterAll(() => fixture?.stop());

async function list(path: string): Promise<readonly unknown[]> {
  return (await fixture.get(path)) as unknown as readonly unknown[];
}

test("a user is created with its own key", async () => {
  const made = await fixture.post("/user/new", {
    user_id: "ada",
    user_email: "ada@example.org",
    max_budget: 20,
    key_alias: "ada-first",
  });
  expect(made).toMatchObject({
    user_id: "ada",
    user_email: "ada@example.org",
    user_role: "internal_user",
    max_budget: 20,
    key: expect.stringMatching(/^sk-/),
    spend: 0,
  });
  expect(await fixture.get("/user/info?user_id=ada")).toMatchObject({
    user_info: { max_budget: 20 },
    keys: [{ key_alias: "ada-first", max_budget: null }],
  });
  const keyless = await fixture.post("/user/new", { auto_create_key: false });
  expect(keyless).toMatchObject({
    user_id: expect.any(String),
    key: null,
    token: null,
  });
});

test.each([
  [{ user_id: "ada" }, 409, null],
  [{ user_email: "ada@example.org" }, 409, "user_email"],
  [{ user_email: "nonsense" }, 400, "user_email"],
  [{ user_role: "king" }, 400, "user_role"],
  [{ teams: ["no-such-team"] }, 404, "team_id"],
])("a new user %o is rejected", async (body, status, param) => {
  expect(await fixture.rejected("POST", "/user/new", body)).toMatchObject({
    status,
    error: { param },
  });
});

test("users are changed, listed and deleted with their keys and memberships", async () => {
  await fixture.post("/team/new", { team_id: "leavers" });
  for (const id of ["u1", "u2", "u3"]) {
    await fixture.post("/user/new", { user_id: id, teams: ["leavers"] });
  }
  expect(
    await fixture.post("/user/update", { user_id: "u1", user_alias: "One" }),
  ).toMatchObject({ user_id: "u1", data: { user_alias: "One" } });
  const spend = await fixture.post("/user/update", {
    user_id: "u1",
    spend: 2.5,
  });
  expect(spend["data"]?.["spend"]).toBe(2.5);
  expect(
    await fixture.get("/user/list?team=leavers&sort_by=user_id&page_size=2"),
  ).toMatchObject({
    users: [{ user_id: "u3", key_count: 1 }, { user_id: "u2" }],
    total: 4,
    page: 1,
    page_size: 2,
    total_pages: 2,
  });
  expect(
    await fixture.post("/user/bulk_update", {
      users: [
        { user_id: "u1", max_budget: 7 },
        { user_id: "nobody", max_budget: 7 },
      ],
    }),
  ).toMatchObject({
    total_requested: 2,
    successful_updates: 1,
    failed_updates: 1,
    results: [{ success: true }, { success: false }],
  });
  expect(await fixture.post("/user/delete", { user_ids: ["u1", "u2"] })).toBe(
    2,
  );
  const gone = await fixture.rejected("GET", "/user/info?user_id=u1");
  expect(gone.status).toBe(404);
  const team = await fixture.get("/team/info?team_id=leavers");
  expect(team["keys"]).toEqual([]);
  expect(team["team_memberships"]).toMatchObject([
    { user_id: "default_user_id" },
    { user_id: "u3" },
  ]);
  expect(await fixture.get("/user/available_roles")).toMatchObject({
    org_admin: { description: expect.any(String) },
  });
});

test("a team is created with members; its creator is its admin", async () => {
  const made = await fixture.post("/team/new", {
    team_id: "crew",
    team_alias: "The Crew",
    max_budget: 50,
    models: ["mock"],
    members_with_roles: [
      { user_id: "ada", role: "admin" },
      { user_email: "new@example.org" },
    ],
  });
  expect(made).toMatchObject({
    team_id: "crew",
    max_budget: 50,
    spend: 0,
  });
  expect(made["members_with_roles"]).toHaveLength(3);
  for (const member of [
    { user_id: "ada", role: "admin" },
    { user_email: "new@example.org", role: "user" },
    { user_id: "default_user_id", role: "admin" },
  ]) {
    expect(made["members_with_roles"]).toContainEqual(
      expect.objectContaining(member),
    );
  }
  expect(
    await fixture.rejected("POST", "/team/new", { team_id: "crew" }),
  ).toMatchObject({ status: 400, error: { param: "team_id" } });
  expect(
    await fixture.rejected("POST", "/team/new", { team_id: "a/b" }),
  ).toMatchObject({ status: 400, error: { param: "team_id" } });
});

test("members are added, changed and removed with their keys", async () => {
  const added = await fixture.post("/team/member_add", {
    team_id: "crew",
    member: [{ user_id: "bob" }, { user_id: "cyd", role: "admin" }],
    max_budget_in_team: 3,
  });
  expect(added).toMatchObject({
    team_id: "crew",
    updated_users: [{ user_id: "bob" }, { user_id: "cyd" }],
    updated_team_memberships: [{ max_budget: 3, spend: 0 }, {}],
  });
  expect(
    await fixture.rejected("POST", "/team/member_add", {
      team_id: "crew",
      member: { user_id: "bob" },
    }),
  ).toMatchObject({ status: 400, error: { param: "member" } });
  expect(
    await fixture.post("/team/member_update", {
      team_id: "crew",
      user_id: "bob",
      role: "admin",
      max_budget_in_team: 4,
    }),
  ).toMatchObject({ user_id: "bob", role: "admin", max_budget_in_team: 4 });
  const key = await fixture.createKey({ user_id: "bob", team_id: "crew" });
  const left = await fixture.post("/team/member_delete", {
    team_id: "crew",
    user_id: "bob",
  });
  expect(JSON.stringify(left["members_with_roles"])).not.toContain("bob");
  expect((await fixture.rejected("GET", `/key/info?key=${key}`)).status).toBe(
    404,
  );
  expect(
    await fixture.rejected("POST", "/team/member_delete", {
      team_id: "crew",
      user_id: "bob",
    }),
  ).toMatchObject({ status: 400, error: { param: "user_id" } });
});

test("teams are changed, blocked, listed and deleted", async () => {
  expect(
    await fixture.post("/team/update", { team_id: "crew", max_budget: 60 }),
  ).toMatchObject({ team_id: "crew", data: { max_budget: 60 } });
  expect(
    await fixture.post("/team/model/add", {
      team_id: "crew",
      models: ["other", "mock"],
    }),
  ).toMatchObject({ models: ["mock", "other"] });
  expect(
    await fixture.post("/team/model/delete", {
      team_id: "crew",
      models: ["other"],
    }),
  ).toMatchObject({ models: ["mock"] });
  expect(
    await fixture.rejected("POST", "/team/model/delete", {
      team_id: "crew",
      models: ["mock"],
    }),
  ).toMatchObject({ status: 400, error: { param: "models" } });
  const key = await fixture.createKey({ team_id: "crew" });
  await fixture.post("/team/block", { team_id: "crew" });
  await expect
    .poll(
      async () =>
        (await fixture.request("GET", "/v1/models", undefined, key)).text,
    )
    .toContain("Team=crew is blocked");
  await fixture.post("/team/unblock", { team_id: "crew" });
  expect(await list("/team/list?team_alias=CREW")).toMatchObject([
    { team_id: "crew" },
  ]);
  expect(
    await fixture.get("/v2/team/list?user_id=ada&page_size=1"),
  ).toMatchObject({ teams: [{ team_id: "crew" }], total: 1, total_pages: 1 });
  expect(
    await fixture.post("/team/permissions_update", {
      team_id: "crew",
      team_member_permissions: ["/key/generate"],
    }),
  ).toMatchObject({ team_member_permissions: ["/key/generate"] });
  expect(
    await fixture.get("/team/permissions_list?team_id=crew"),
  ).toMatchObject({ all_available_permissions: expect.any(Array) });
  await fixture.post("/team/delete", { team_ids: ["crew"] });
  expect(
    (await fixture.rejected("GET", "/team/info?team_id=crew")).status,
  ).toBe(404);
  expect(
    await query(
      fixture.pool,
      "SELECT token FROM deleted_keys WHERE token = $1",
      [hashKey(key)],
    ),
  ).toHaveLength(1);
});

test("organizations have members and teams", async () => {
  const made = await fixture.post("/organization/new", {
    organization_alias: "Home",
    max_budget: 100,
  });
  const id = String(made["organization_id"]);
  await fixture.post("/organization/member_add", {
    organization_id: id,
    member: { role: "org_admin", user_id: "olga" },
  });
  await fixture.post("/team/new", { team_id: "of-org", organization_id: id });
  expect(
    await fixture.get(`/organization/info?organization_id=${id}`),
  ).toMatchObject({
    organization_alias: "Home",
    spend: 0,
    members: [{ user_id: "olga", role: "org_admin" }],
    teams: [{ team_id: "of-org" }],
  });
  const patched = await fixture.request("PATCH", "/organization/update", {
    organization_id: id,
    max_budget: 120,
  });
  expect(patched.json).toMatchObject({ max_budget: 120 });
  const demoted = await fixture.request(
    "PATCH",
    "/organization/member_update",
    { organization_id: id, user_id: "olga", role: "internal_user" },
  );
  expect(demoted.json).toMatchObject({ role: "internal_user" });
  const left = await fixture.request("DELETE", "/organization/member_delete", {
    organization_id: id,
    user_id: "olga",
  });
  expect(left.status).toBe(200);
  expect(await list("/organization/list")).toHaveLength(1);
  for (const [filter, found] of [
    [`org_id=${id}`, 1],
    ["org_id=other", 0],
    ["org_alias=OM", 1],
    ["org_alias=other", 0],
  ] as const) {
    const listed = await list(`/organization/list?${filter}`);
    expect([filter, listed.length]).toEqual([filter, found]);
  }
  // LiteLLM's Terraform provider takes a 404 for an organization that was deleted.
  expect(
    await fixture.post("/organization/info", { organizations: [id, "other"] }),
  ).toMatchObject([{ organization_id: id, organization_alias: "Home" }]);
  expect(
    await fixture.post("/organization/info", { organizations: ["other"] }),
  ).toEqual([]);
  const key = await fixture.createKey({ organization_id: id });
  expect(
    await fixture.rejected("POST", "/organization/delete", {
      organization_ids: [id],
    }),
  ).toMatchObject({
    status: 400,
    error: {
      param: "organization_id",
      message: expect.stringContaining("is in use by 1 key, 1 team"),
    },
  });
  await fixture.post("/team/delete", { team_ids: ["of-org"] });
  await fixture.post("/key/update", { key, organization_id: null });
  await fixture.post("/organization/delete", { organization_ids: [id] });
  expect(await list("/organization/list")).toEqual([]);
});

test.each(["/customer", "/end_user"])(
  "end users are created, blocked and deleted at %s",
  async (path) => {
    const guest = `guest of ${path}`;
    expect(
      await fixture.post(`${path}/new`, { user_id: guest, max_budget: 1 }),
    ).toMatchObject({ user_id: guest, max_budget: 1, spend: 0 });
    await fixture.spend({ end_user: guest, spend: 0.5 });
    expect(
      await fixture.post(`${path}/update`, {
        user_id: guest,
        budget_duration: "1d",
      }),
    ).toMatchObject({ budget_duration: "1d" });
    expect(
      await fixture.post(`${path}/block`, { user_ids: [guest] }),
    ).toMatchObject({ blocked_users: [{ blocked: true }] });
    expect(
      await fixture.post(`${path}/unblock`, { user_ids: [guest] }),
    ).toMatchObject({ unblocked_users: [{ blocked: false }] });
    const info = await fixture.get(
      `${path}/info?end_user_id=${encodeURIComponent(guest)}`,
    );
    expect(info["spend"]).toBeGreaterThanOrEqual(0.5);
    expect(await list(`${path}/list`)).toHaveLength(1);
    expect(await fixture.post(`${path}/delete`, { user_ids: [guest] })).toEqual(
      { deleted_customers: 1 },
    );
    expect(
      await fixture.rejected("POST", `${path}/delete`, { user_ids: [guest] }),
    ).toMatchObject({ status: 404, error: { param: "user_id" } });
  },
);

test("tags have budgets", async () => {
  await fixture.post("/tag/new", { name: "nightly", max_budget: 2 });
  await fixture.spend({ tags: ["nightly"], spend: 0.5 });
  expect(await fixture.post("/tag/info", { names: ["nightly"] })).toMatchObject(
    { nightly: { max_budget: 2, spend: 0.5 } },
  );
  await fixture.post("/tag/update", { name: "nightly", spend: 0 });
  expect(await list("/tag/list")).toMatchObject([{ spend: 0 }]);
  await fixture.post("/tag/delete", { name: "nightly" });
  expect(
    await fixture.rejected("POST", "/tag/info", { names: ["nightly"] }),
  ).toMatchObject({ status: 404 });
});

test("a tier applies to the payers that refer to it", async () => {
  const tier = await fixture.post("/budget/new", {
    budget_id: "small",
    max_budget: 0.00001,
  });
  expect(tier).toMatchObject({ budget_id: "small", max_budget: 0.00001 });
  const key = await fixture.createKey({ budget_id: "small" });
  await fixture.chat(key, "first");
  expect((await fixture.chat(key, "second")).json["error"]?.["type"]).toBe(
    "budget_exceeded",
  );
  await fixture.post("/budget/update", { budget_id: "small", max_budget: 1 });
  await expect
    .poll(async () => (await fixture.chat(key, "third")).status)
    .toBe(200);
  expect(
    await fixture.post("/budget/info", { budgets: ["small"] }),
  ).toMatchObject([{ max_budget: 1 }]);
  expect(await list("/budget/list")).toHaveLength(1);
  await fixture.post("/customer/new", { user_id: "c", budget_id: "small" });
  expect(
    await fixture.rejected("POST", "/budget/delete", { id: "small" }),
  ).toMatchObject({
    status: 400,
    error: {
      param: "budget_id",
      message: expect.stringContaining("is in use by 1 key, 1 end user"),
    },
  });
  expect(await list("/budget/list")).toHaveLength(1);
  await fixture.post("/customer/delete", { user_ids: ["c"] });
  await fixture.post("/key/update", { key, budget_id: null });
  await fixture.post("/budget/delete", { id: "small" });
  const info = await fixture.get(`/key/info?key=${key}`);
  expect(info["info"]).toMatchObject({ budget_id: null });
});

test("markup, SQL and paths in names have no effect", async () => {
  const names = [
    "'; DROP TABLE keys; --",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "a%2F..%2Fb",
    "__proto__",
    "constructor",
    "$1",
  ];
  for (const name of names) {
    await fixture.post("/customer/new", { user_id: name });
    await fixture.post("/tag/new", { name });
    await fixture.createKey({ user_id: name, key_alias: name, tags: [name] });
    expect(
      await fixture.get(`/key/list?key_alias=${encodeURIComponent(name)}`),
    ).toMatchObject({ total_count: 1 });
    expect(
      await fixture.get(`/user/info?user_id=${encodeURIComponent(name)}`),
    ).toMatchObject({ user_id: name });
    const tags = await fixture.post("/tag/info", { names: [name] });
    expect(Object.keys(tags)).toEqual([name]);
  }
});

test("all sums agree at the end", async () => {
  await fixture.running.gateway.ledger.flush();
  expect(await fixture.differences()).toEqual([]);
});
