import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AdminFixture } from "../../test/servers/admin.ts";
import type { Json } from "../../test/servers/gateway.ts";
import {
  startTwoOrganizations,
  type TwoOrganizations,
} from "../../test/servers/two-organizations.ts";
import { hashKey } from "./keys.ts";

/** An admin who adds a user to a team or an organization sees and changes only what the user has in it. */

let fixture: AdminFixture;
let keys: TwoOrganizations["keys"];
let keyOf: TwoOrganizations["keyOf"];
let status: TwoOrganizations["status"];

beforeAll(async () => {
  ({ fixture, keys, keyOf, status } = await startTwoOrganizations({
    users: {
      "team-admin": { teams: [{ team_id: "own-team", user_role: "admin" }] },
      "org-admin": {},
    },
    admins: { "org-admin": "own-org" },
  }));
});

afterAll(() => fixture?.stop());

describe("users of an organization", () => {
  async function userOf(user_id: string, fields: object = {}): Promise<Json> {
    return fixture.post(
      "/user/new",
      { user_id, organizations: ["own-org"], ...fields },
      keyOf("org-admin"),
    );
  }

  test("get a first key that the organization pays for and its admin manages", async () => {
    const created = await userOf("recruit");
    expect(created).toMatchObject({ organization_id: "own-org" });
    expect(
      await status("org-admin", "/key/update", {
        key: created["key"],
        max_budget: 1,
      }),
    ).toBe(200);
    const ofTwo = {
      user_id: "of-two",
      organizations: ["own-org", "strange-org"],
    };
    expect(await fixture.post("/user/new", ofTwo)).toMatchObject({
      organization_id: null,
    });
    const admin = {
      user_id: "of-one",
      organizations: ["own-org"],
      user_role: "proxy_admin",
    };
    expect(await fixture.post("/user/new", admin)).toMatchObject({
      organization_id: null,
    });
  });

  test("get a personal first key if they have a team outside", async () => {
    const created = async (user_id: string, teams: readonly string[]) =>
      fixture.post("/user/new", { user_id, organizations: ["own-org"], teams });
    expect(await created("inside", ["own-team"])).toMatchObject({
      organization_id: "own-org",
    });
    const both = await created("both", ["own-team", "strange-team"]);
    expect(both).toMatchObject({ organization_id: null });
    keys.set("both", String(both["key"]));
    for (const team of ["own-team", "strange-team"]) {
      expect(await status("both", `/team/info?team_id=${team}`)).toBe(200);
    }
  });

  test("can be changed and deleted by the organization's admin", async () => {
    await userOf("leaver", { teams: ["own-team"] });
    expect(
      await status("org-admin", "/user/update", {
        user_id: "leaver",
        max_budget: 1,
      }),
    ).toBe(200);
    expect(
      await status("org-admin", "/user/delete", { user_ids: ["leaver"] }),
    ).toBe(200);
  });

  test.each([
    ["a team", { teams: ["strange-team"] }],
    ["an organization", { organizations: ["own-org", "strange-org"] }],
    ["a personal key", { organizations: [] }],
    ["rights on everything", { user_role: "proxy_admin_viewer" }],
  ])(
    "with %s outside cannot be changed or deleted by the organization's admin",
    async (what, fields) => {
      const user_id = `with ${what}`;
      await fixture.post("/user/new", {
        user_id,
        organizations: ["own-org"],
        auto_create_key: what === "a personal key",
        ...fields,
      });
      if (what === "a personal key") {
        await fixture.post(
          "/organization/member_add",
          { organization_id: "own-org", member: { user_id } },
          keyOf("org-admin"),
        );
      }
      for (const [path, body] of [
        ["/user/update", { user_id, max_budget: 1 }],
        ["/user/delete", { user_ids: [user_id] }],
      ] as const) {
        expect([path, await status("org-admin", path, body)]).toEqual([
          path,
          403,
        ]);
      }
      expect(
        await fixture.get(`/user/info?user_id=${encodeURIComponent(user_id)}`),
      ).toMatchObject({ user_id });
    },
  );

  test("never include the user of the master key", async () => {
    await fixture.post(
      "/organization/member_add",
      {
        organization_id: "own-org",
        member: { user_id: "default_user_id" },
      },
      keyOf("org-admin"),
    );
    await fixture.post("/team/member_delete", {
      team_id: "strange-team",
      user_id: "default_user_id",
    });
    for (const [path, body] of [
      ["/user/update", { user_id: "default_user_id", max_budget: 1 }],
      ["/user/delete", { user_ids: ["default_user_id"] }],
      ["/user/new", { user_id: "default_user_id", organizations: ["own-org"] }],
    ] as const) {
      expect(await status("org-admin", path, body)).toBe(403);
    }
  });

  test("include the organization's admin, who cannot change itself", async () => {
    const chief = await userOf("chief", { max_budget: 1 });
    keys.set("chief", String(chief["key"]));
    await fixture.request("PATCH", "/organization/member_update", {
      organization_id: "own-org",
      user_id: "chief",
      role: "org_admin",
    });
    for (const user_id of ["org-admin", "chief"]) {
      const change = { user_id, max_budget: 1_000_000 };
      expect(await status(user_id, "/user/update", change)).toBe(403);
    }
  });
});

test("a plain member of an organization sees its own teams there, an admin sees all teams", async () => {
  await fixture.post("/team/new", {
    team_id: "other-team",
    organization_id: "own-org",
    members_with_roles: [{ user_id: "hidden", role: "user" }],
  });
  const plain = await fixture.post("/user/new", {
    user_id: "plain",
    organizations: ["own-org"],
    teams: ["own-team"],
  });
  const path = "/organization/info?organization_id=own-org";
  const teamsFor = async (key?: string) => {
    const { teams } = await fixture.get(path, key);
    return (teams as unknown as readonly Json[])
      .map((team) => team["team_id"])
      .toSorted();
  };
  expect(await teamsFor(String(plain["key"]))).toEqual(["own-team"]);
  for (const key of [keyOf("org-admin"), undefined]) {
    expect(await teamsFor(key)).toEqual(["other-team", "own-team"]);
  }
});

test.each([
  ["team-admin", "/team/member_add", { team_id: "own-team" }],
  ["org-admin", "/organization/member_add", { organization_id: "own-org" }],
])(
  "%s sees only its own part of a user that it added",
  async (who, path, where) => {
    const user_id = `${who}'s catch`;
    const personal = String(
      (
        await fixture.post("/user/new", {
          user_id,
          max_budget: 12_345,
          metadata: { secret: "diary" },
          teams: ["strange-team"],
        })
      )["key"],
    );
    await fixture.spend({ user_id, api_key: hashKey(personal), spend: 5 });
    const added = await fixture.request(
      "POST",
      path,
      { ...where, member: { user_id } },
      keyOf(who),
    );
    expect(added.status).toBe(200);
    const shared = await fixture.createKey({ user_id, ...where });
    await fixture.spend({
      user_id,
      api_key: hashKey(shared),
      team_id: null,
      organization_id: null,
      ...where,
      spend: 1,
    });
    const id = encodeURIComponent(user_id);
    const seen = await fixture.request(
      "GET",
      `/user/info?user_id=${id}`,
      undefined,
      keyOf(who),
    );
    expect(seen.json).toMatchObject({
      user_info: { user_id },
      keys: [{ token: hashKey(shared) }],
      total_keys: 1,
    });
    const listed = await fixture.request(
      "GET",
      `/user/list?user_ids=${id}`,
      undefined,
      keyOf(who),
    );
    expect(listed.json["total"]).toBe(path.startsWith("/team") ? 0 : 1);
    const asItself = await fixture.request(
      "GET",
      `/user/info?user_id=${id}`,
      undefined,
      shared,
    );
    expect(asItself.json).toMatchObject({ user_info: { user_id } });
    for (const { text } of [added, seen, listed, asItself]) {
      expect(text).not.toMatch(/12345|diary|strange-team/);
    }
    const activity = await fixture.get(
      `/user/daily/activity?user_id=${id}`,
      keyOf(who),
    );
    expect(activity["metadata"]).toMatchObject({ total_spend: 1 });
    expect(JSON.stringify(activity)).not.toContain(hashKey(personal));
    expect(await fixture.get(`/user/info?user_id=${id}`)).toMatchObject({
      user_info: { max_budget: 12_345 },
      total_keys: 2,
      total_teams: path.startsWith("/team") ? 2 : 1,
    });
  },
);

test("a member that is removed from an organization has no key left that the organization pays for", async () => {
  const user_id = "leaver";
  const created = await fixture.post("/user/new", {
    user_id,
    organizations: ["own-org"],
    team_id: "own-team",
  });
  const personal = await fixture.createKey({ user_id });
  const { key } = await fixture.post(
    "/key/generate",
    { organization_id: "own-org" },
    personal,
  );
  const statusOf = async (of: unknown) =>
    (await fixture.chat(String(of), "hello")).status;
  expect(await statusOf(key)).toBe(200);
  await fixture.request(
    "DELETE",
    "/organization/member_delete",
    { organization_id: "own-org", user_id },
    keyOf("org-admin"),
  );
  expect(await statusOf(key)).toBe(401);
  expect(await statusOf(personal)).toBe(200);
  // Its membership in the team stays.
  expect(await statusOf(created["key"])).toBe(200);
});
