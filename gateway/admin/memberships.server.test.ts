import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
});

afterAll(() => fixture?.stop());

test("of a list, users who are members already stay as they are, unless all are", async () => {
  const { post, rejected, get } = fixture;
  await post("/team/new", { team_id: "synced" });
  const user = (user_id: string) => ({ user_id, role: "user" });
  const add = (member: unknown, max_budget_in_team: number) => ({
    team_id: "synced",
    member,
    max_budget_in_team,
  });
  await post("/team/member_add", add(user("early"), 1));
  const both = [user("early"), user("late")];
  const added = await post("/team/member_add", add(both, 2));
  expect(added["updated_team_memberships"]).toMatchObject([
    { user_id: "late", max_budget: 2 },
  ]);
  const { team_memberships: members } = await get("/team/info?team_id=synced");
  expect(members).toMatchObject([
    { user_id: "default_user_id" },
    { user_id: "early", max_budget: 1 },
    { user_id: "late", max_budget: 2 },
  ]);
  for (const member of [both, user("early")]) {
    expect(await rejected("POST", "/team/member_add", add(member, 3))).toEqual({
      status: 400,
      error: expect.objectContaining({
        type: "team_member_already_in_team",
        param: "member",
      }),
    });
  }
});

test("rows of users show their teams, rows of teams their members", async () => {
  const { get, post } = fixture;
  await post("/organization/new", { organization_id: "o1" });
  for (const team_id of ["t1", "t2"]) {
    await post("/team/new", { team_id, organization_id: "o1" });
  }
  const made = await post("/user/new", {
    user_id: "anna",
    user_email: "anna@example.org",
    teams: ["t1", { team_id: "t2", user_role: "admin" }],
  });
  const teams = ["t1", "t2"];
  expect(made["teams"]).toEqual(teams);
  const info = await get("/user/info?user_id=anna");
  expect(info["user_info"]?.["teams"]).toEqual(teams);
  const list = await get("/user/list?user_ids=anna");
  expect(list["users"]?.[0]?.["teams"]).toEqual(teams);
  const changed = await post("/user/update", { user_id: "anna" });
  expect(changed["data"]?.["teams"]).toEqual(teams);

  const anna = (role: string) => ({
    user_id: "anna",
    user_email: "anna@example.org",
    role,
  });
  const members = (rows: unknown) =>
    Object.fromEntries(
      (rows as { team_id: string; members_with_roles: unknown }[]).map(
        (team) => [team.team_id, team.members_with_roles],
      ),
    );
  // The creator of a team is its admin.
  const maker = { user_id: "default_user_id", user_email: null, role: "admin" };
  const expected = {
    t1: [maker, anna("user")],
    t2: [maker, anna("admin")],
  };
  expect(members(info["teams"])).toEqual(expected);
  const organization = await get("/organization/info?organization_id=o1");
  expect(members(organization["teams"])).toEqual(expected);

  await post("/user/new", { user_id: "bob", auto_create_key: false });
  const bob = await get("/user/info?user_id=bob");
  expect(bob["user_info"]?.["teams"]).toEqual([]);
});
