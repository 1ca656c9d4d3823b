import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import type { Json } from "../../test/servers/gateway.ts";
import { hashKey } from "../access/keys.ts";

/** Changes of many members or keys of a team at once, and of a member's spend. */

let fixture: AdminFixture;
const keys = { boss: "", member: "" };

beforeAll(async () => {
  fixture = await startAdminFixture();
  for (const user of ["boss", "member"] as const) {
    const { key } = await fixture.post("/user/new", { user_id: user });
    keys[user] = String(key);
  }
  await newTeam("crew");
});

afterAll(() => fixture?.stop());

function newTeam(team_id: string) {
  return fixture.post("/team/new", {
    team_id,
    members_with_roles: [
      { user_id: "boss", role: "admin" },
      { user_id: "member", role: "user" },
    ],
  });
}

const memberOf = async (team: string, user: string) => {
  const { team_memberships: members } = await fixture.get(
    `/team/info?team_id=${team}`,
  );
  return (members as unknown as readonly Json[]).find(
    ({ user_id }) => String(user_id) === user,
  );
};

test("each member is added or fails on its own", async () => {
  const added = await fixture.post(
    "/team/bulk_member_add",
    {
      team_id: "crew",
      members: [
        { user_id: "new-one", role: "admin" },
        { user_id: "member", role: "user" },
        { user_email: "by-mail@example.org" },
      ],
      max_budget_in_team: 3,
    },
    keys.boss,
  );
  expect(added).toMatchObject({
    team_id: "crew",
    total_requested: 3,
    successful_additions: 2,
    failed_additions: 1,
    updated_team: { team_id: "crew" },
    results: [
      {
        user_id: "new-one",
        success: true,
        updated_team_membership: { role: "admin", max_budget: 3 },
      },
      {
        user_id: "member",
        success: false,
        error: expect.stringContaining("already in team crew"),
      },
      { user_email: "by-mail@example.org", success: true },
    ],
  });
  expect(await memberOf("crew", "new-one")).toMatchObject({ max_budget: 3 });
  expect(await memberOf("crew", "member")).toMatchObject({ max_budget: null });
});

test("all users are added by a proxy_admin only", async () => {
  await fixture.post("/team/new", { team_id: "everyone" });
  await fixture.post("/team/member_add", {
    team_id: "everyone",
    member: { user_id: "boss", role: "admin" },
  });
  const all = { team_id: "everyone", all_users: true };
  expect(
    await fixture.rejected("POST", "/team/bulk_member_add", all, keys.boss),
  ).toMatchObject({ status: 403, error: { param: "all_users" } });
  const added = await fixture.post("/team/bulk_member_add", all);
  expect(added["failed_additions"]).toBe(0);
  expect(await memberOf("everyone", "member")).toMatchObject({ role: "user" });
  expect(await fixture.post("/team/bulk_member_add", all)).toMatchObject({
    total_requested: 0,
  });
});

test("members are required, and the team must be within reach", async () => {
  const path = "/team/bulk_member_add";
  expect(
    await fixture.rejected("POST", path, { team_id: "crew" }),
  ).toMatchObject({ status: 400, error: { param: "members" } });
  const members = [{ user_id: "x" }];
  expect(
    (await fixture.rejected("POST", path, { team_id: "none", members })).status,
  ).toBe(404);
  expect(
    (
      await fixture.rejected(
        "POST",
        path,
        { team_id: "crew", members },
        keys.member,
      )
    ).status,
  ).toBe(403);
});

test("a member's spend in the team is lowered, and its budget admits calls again", async () => {
  await newTeam("spending");
  const id = { team_id: "spending", user_id: "member" };
  await fixture.post("/team/member_update", { ...id, max_budget_in_team: 1 });
  const key = await fixture.createKey(id);
  await fixture.spend({
    api_key: hashKey(key),
    ...id,
    spend: 1.5,
  });
  const totals = fixture.running.gateway.ledger.totals;
  await totals.reload(["member:spending/member"]);
  const over = await fixture.chat(key, "hello");
  expect([over.status, over.text]).toEqual([
    400,
    expect.stringContaining("Budget has been exceeded"),
  ]);
  const path = "/team/spending/member/member/reset_spend";
  expect(
    await fixture.rejected("POST", path, { reset_to: 2 }, keys.boss),
  ).toMatchObject({ status: 400, error: { param: "reset_to" } });
  expect(await fixture.post(path, { reset_to: 0.5 }, keys.boss)).toEqual({
    ...id,
    spend: 0.5,
    previous_spend: 1.5,
    max_budget: 1,
  });
  expect((await fixture.chat(key, "hello again")).status).toBe(200);
  expect(await fixture.differences()).toEqual([]);
});

test("admins of a team do not reset their own spend, members none, and strangers have none", async () => {
  const path = (user: string) => `/team/crew/member/${user}/reset_spend`;
  const zero = { reset_to: 0 };
  expect(
    await fixture.rejected("POST", path("boss"), zero, keys.boss),
  ).toMatchObject({ status: 403, error: { param: "user_id" } });
  expect(
    (await fixture.rejected("POST", path("boss"), zero, keys.member)).status,
  ).toBe(403);
  await fixture.post(path("boss"), zero);
  expect((await fixture.rejected("POST", path("stranger"), zero)).status).toBe(
    404,
  );
  expect((await fixture.rejected("POST", path("boss"), {})).status).toBe(400);
});

test("the keys of a team are changed at once, and no other key", async () => {
  await newTeam("keyed");
  const [one, two, blocked] = await Promise.all([
    fixture.createKey({ team_id: "keyed" }),
    fixture.createKey({ team_id: "keyed" }),
    fixture.createKey({ team_id: "keyed" }),
  ]);
  await fixture.post("/key/block", { key: blocked });
  const foreign = await fixture.createKey({});
  const limitOf = async (key: string) =>
    (await fixture.get(`/key/info?key=${key}`))["info"]?.["rpm_limit"];

  const some = await fixture.post(
    "/team/key/bulk_update",
    {
      team_id: "keyed",
      key_ids: [one, hashKey(one), foreign],
      update_fields: { rpm_limit: 7 },
    },
    keys.boss,
  );
  expect(some).toMatchObject({
    total_requested: 2,
    successful_updates: [{ key: one, key_info: { rpm_limit: 7 } }],
    failed_updates: [{ key: foreign }],
  });
  expect(await limitOf(foreign)).toBeNull();
  expect(await limitOf(two)).toBeNull();

  const all = await fixture.post("/team/key/bulk_update", {
    team_id: "keyed",
    all_keys_in_team: true,
    update_fields: { rpm_limit: 9 },
  });
  expect(all["total_requested"]).toBe(2);
  expect([await limitOf(one), await limitOf(two)]).toEqual([9, 9]);
  expect(await limitOf(blocked)).toBeNull();
});

test("rights and owners of keys are not changed at once, nor anything by strangers", async () => {
  const path = "/team/key/bulk_update";
  const all = { team_id: "crew", all_keys_in_team: true };
  for (const [body, param] of [
    [{ ...all, update_fields: {} }, "update_fields"],
    [{ ...all, update_fields: { models: ["x"] } }, "update_fields.models"],
    [{ ...all, update_fields: { spend: 0.1 } }, "update_fields.spend"],
    [{ ...all, key_ids: ["a"], update_fields: { rpm_limit: 1 } }, "key_ids"],
    [{ team_id: "crew", update_fields: { rpm_limit: 1 } }, "key_ids"],
  ] as const) {
    expect([body, await fixture.rejected("POST", path, body)]).toMatchObject([
      body,
      { status: 400, error: { param } },
    ]);
  }
  const change = { ...all, update_fields: { rpm_limit: 1 } };
  expect(
    (await fixture.rejected("POST", path, change, keys.member)).status,
  ).toBe(403);
});

test("a member with /key/update changes tags of the team's keys, and no limits", async () => {
  await newTeam("permitted");
  await fixture.post("/team/permissions_update", {
    team_id: "permitted",
    team_member_permissions: ["/key/update"],
  });
  const key = await fixture.createKey({ team_id: "permitted" });
  const change = (update_fields: object) =>
    fixture.post(
      "/team/key/bulk_update",
      { team_id: "permitted", all_keys_in_team: true, update_fields },
      keys.member,
    );
  expect(await change({ tags: ["blue"] })).toMatchObject({
    successful_updates: [{ key: hashKey(key), key_info: { tags: ["blue"] } }],
  });
  expect(await change({ rpm_limit: 1 })).toMatchObject({
    successful_updates: [],
    failed_updates: [
      { failed_reason: expect.stringContaining("may not change `rpm_limit`") },
    ],
  });
});

test("a user is shown without keys and teams", async () => {
  const own = await fixture.get("/v2/user/info", keys.member);
  expect(own).toMatchObject({
    user_id: "member",
    user_role: "internal_user",
    spend: expect.any(Number),
    teams: expect.arrayContaining(["crew"]),
  });
  expect(own).not.toHaveProperty("keys");
  const info = (user: string, key?: string) =>
    fixture.request("GET", `/v2/user/info?user_id=${user}`, undefined, key);
  expect((await info("member")).json["user_id"]).toBe("member");
  expect((await info("boss", keys.member)).status).toBe(403);
  expect((await info("unknown")).status).toBe(404);
  const ofNobody = await fixture.createKey({});
  expect(
    await fixture.rejected("GET", "/v2/user/info", undefined, ofNobody),
  ).toMatchObject({ status: 400, error: { param: "user_id" } });
});
