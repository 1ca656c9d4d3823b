import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AdminFixture } from "../../test/servers/admin.ts";
import {
  startTwoOrganizations,
  type TwoOrganizations,
} from "../../test/servers/two-organizations.ts";
import { hashKey } from "./keys.ts";

/** A key never gives more rights than those who can create, change or renew it have, whether it is another user's key or a further key of their own. */

let fixture: AdminFixture;
let keys: TwoOrganizations["keys"];
let keyOf: TwoOrganizations["keyOf"];
let status: TwoOrganizations["status"];

beforeAll(async () => {
  ({ fixture, keys, keyOf, status } = await startTwoOrganizations({
    users: {
      boss: { user_role: "proxy_admin" },
      viewer: { user_role: "proxy_admin_viewer" },
      "team-admin": { teams: [{ team_id: "own-team", user_role: "admin" }] },
      "org-admin": {},
      "other-org-admin": {},
      member: { teams: ["own-team", "strange-team"] },
      stranger: { teams: ["strange-team"], max_budget: 7 },
    },
    admins: { "org-admin": "own-org", "other-org-admin": "strange-org" },
  }));
});

afterAll(() => fixture?.stop());

const OF_OWN = [
  ["team-admin", { team_id: "own-team" }],
  ["org-admin", { team_id: "own-team" }],
  ["org-admin", { organization_id: "own-org" }],
] as const;

describe.each(OF_OWN)("keys that %s has with %o", (who, where) => {
  test.each(["boss", "viewer", "stranger", "unknown-user"])(
    "cannot be created, changed or renewed for %s",
    async (user_id) => {
      const key = await fixture.createKey(where);
      for (const [path, body] of [
        ["/key/generate", { ...where, user_id }],
        ["/key/update", { key, user_id }],
        ["/key/regenerate", { key, user_id }],
        [`/key/${hashKey(key)}/regenerate`, { user_id }],
      ] as const) {
        const refused = await fixture.rejected("POST", path, body, keyOf(who));
        expect([path, refused]).toMatchObject([
          path,
          { status: 403, error: { param: "user_id" } },
        ]);
      }
    },
  );
});

test("a key of a team is of the team's organization", async () => {
  const key = await fixture.createKey({ team_id: "own-team" });
  for (const [path, body] of [
    ["/key/generate", { team_id: "own-team" }],
    ["/key/service-account/generate", { team_id: "own-team" }],
    ["/key/update", { key }],
    ["/key/regenerate", { key }],
  ] as const) {
    const organization = { ...body, organization_id: "strange-org" };
    expect([path, await fixture.rejected("POST", path, organization)]).toEqual([
      path,
      {
        status: 400,
        error: expect.objectContaining({ param: "organization_id" }),
      },
    ]);
  }
  const own = { key, organization_id: "own-org" };
  await fixture.post("/key/update", own);
});

test("admins create keys for their members, except for those with more rights", async () => {
  const forUser = (who: string, user_id: string) =>
    status(who, "/key/generate", { team_id: "own-team", user_id });
  expect(await forUser("team-admin", "member")).toBe(200);
  expect(await forUser("org-admin", "member")).toBe(200);
  for (const user_id of ["boss", "org-admin"]) {
    await fixture.post(
      "/team/member_add",
      { team_id: "own-team", member: { user_id } },
      keyOf("team-admin"),
    );
  }
  expect(await forUser("team-admin", "boss")).toBe(403);
  expect(await forUser("team-admin", "org-admin")).toBe(403);
  expect(await forUser("org-admin", "boss")).toBe(403);
  expect(await forUser("org-admin", "team-admin")).toBe(200);
});

describe("a key that others can take over", () => {
  const BOSS_ONLY = [
    ["/config/reload", {}],
    ["/cache/flushall", {}],
    ["/user/bulk_update", { users: [] }],
    ["/health", undefined],
    ["/metrics", undefined],
    ["/global/spend", undefined],
    ["/user/info?user_id=stranger", undefined],
    ["/team/info?team_id=strange-team", undefined],
  ] as const;

  test.each([{ team_id: "own-team" }, { organization_id: "own-org" }])(
    "of %o gives no rights on everything, even when its user has them",
    async (where) => {
      for (const user_id of ["boss", "viewer"]) {
        keys.set("shared", await fixture.createKey({ ...where, user_id }));
        for (const [path, body] of BOSS_ONLY) {
          expect([path, await status("shared", path, body)]).toEqual([
            path,
            403,
          ]);
        }
      }
      for (const [path, body] of BOSS_ONLY.slice(3)) {
        expect([path, await status("boss", path, body)]).toEqual([path, 200]);
      }
    },
  );

  test("does not give rights that its user received after its creation", async () => {
    const user_id = "promoted";
    await fixture.post(
      "/team/member_add",
      { team_id: "own-team", member: { user_id } },
      keyOf("team-admin"),
    );
    const made = await fixture.post(
      "/key/generate",
      { team_id: "own-team", user_id },
      keyOf("team-admin"),
    );
    keys.set("shared", String(made["key"]));
    await fixture.post("/user/update", { user_id, user_role: "proxy_admin" });
    keys.set("promoted", await fixture.createKey({ user_id }));
    expect(await status("promoted", "/health")).toBe(200);
    expect(await status("shared", "/health")).toBe(403);
  });

  test("of a team reaches nothing of its user's outside the team", async () => {
    const personal = keyOf("member");
    const shared = await fixture.createKey({
      user_id: "member",
      team_id: "own-team",
    });
    const elsewhere = await fixture.createKey({
      user_id: "member",
      team_id: "strange-team",
      key_alias: "elsewhere",
    });
    await fixture.spend(
      { api_key: hashKey(shared), user_id: "member", team_id: "own-team" },
      {
        api_key: hashKey(elsewhere),
        user_id: "member",
        team_id: "strange-team",
      },
      { api_key: hashKey(personal), user_id: "member" },
    );
    keys.set("shared", shared);
    for (const [path, body] of [
      [`/key/info?key=${personal}`, undefined],
      [`/key/info?key=${elsewhere}`, undefined],
      ["/team/info?team_id=strange-team", undefined],
      ["/key/update", { key: personal, max_budget: null }],
      ["/key/regenerate", { key: personal }],
      ["/key/delete", { keys: [personal] }],
      ["/key/generate", {}],
      ["/key/generate", { team_id: null }],
    ] as const) {
      expect([path, await status("shared", path, body)]).toEqual([path, 403]);
    }
    const list = await fixture.get("/key/list?size=100", shared);
    const own = await fixture.get("/key/list?size=100", personal);
    expect(list["keys"]).not.toContain(hashKey(elsewhere));
    expect(list["keys"]).toContain(hashKey(shared));
    for (const key of [personal, shared, elsewhere]) {
      expect(own["keys"]).toContain(hashKey(key));
    }
    const logs = await fixture.get("/spend/logs", shared);
    expect(logs).toMatchObject([{ team_id: "own-team" }]);
    expect(await fixture.get("/spend/logs", personal)).toHaveLength(3);
    const activity = "/user/daily/activity";
    expect(await fixture.get(activity, shared)).toMatchObject({
      metadata: { total_spend: 0.25 },
    });
    expect(await fixture.get(activity, personal)).toMatchObject({
      metadata: { total_spend: 0.75 },
    });
  });

  test("creates keys within its own scope", async () => {
    for (const [user_id, where] of [
      ["team-admin", { team_id: "own-team" }],
      ["org-admin", { organization_id: "own-org" }],
    ] as const) {
      const shared = await fixture.createKey({ user_id, ...where });
      expect(await fixture.post("/key/generate", {}, shared)).toMatchObject({
        user_id,
        ...where,
      });
    }
  });

  test("of an organization gives its admin's rights in that organization only", async () => {
    await fixture.post("/organization/member_add", {
      organization_id: "strange-org",
      member: { user_id: "org-admin", role: "org_admin" },
    });
    keys.set(
      "shared",
      await fixture.createKey({
        user_id: "org-admin",
        organization_id: "own-org",
      }),
    );
    const info = (id: string) => `/organization/info?organization_id=${id}`;
    expect(await status("org-admin", info("strange-org"))).toBe(200);
    expect(await status("shared", info("own-org"))).toBe(200);
    expect(await status("shared", "/team/info?team_id=own-team")).toBe(200);
    for (const path of [
      info("strange-org"),
      "/team/info?team_id=strange-team",
    ]) {
      expect([path, await status("shared", path)]).toEqual([path, 403]);
    }
    await fixture.request("DELETE", "/organization/member_delete", {
      organization_id: "strange-org",
      user_id: "org-admin",
    });
  });
});

test("a restricted key creates, changes and renews no key but itself", async () => {
  const user_id = "restricted";
  const other = await fixture.createKey({ user_id });
  for (const restriction of [
    { key_type: "management" },
    { allowed_routes: ["management_routes"] },
    { max_budget: 1 },
    { duration: "1h" },
  ]) {
    const key = await fixture.createKey({ user_id, ...restriction });
    keys.set("restricted", key);
    for (const [path, body] of [
      ["/key/generate", {}],
      ["/key/update", { key: other, metadata: {} }],
      ["/key/regenerate", { key: other }],
      ["/key/regenerate", { key, key_type: "default" }],
    ] as const) {
      expect([
        restriction,
        path,
        await status("restricted", path, body),
      ]).toEqual([restriction, path, 403]);
    }
    expect(await status("restricted", "/key/regenerate", { key })).toBe(200);
  }
});

test("a restricted key cannot create an unrestricted key of its team", async () => {
  const user_id = "permitted";
  await fixture.post("/team/member_add", {
    team_id: "own-team",
    member: { user_id },
  });
  await fixture.post("/team/permissions_update", {
    team_id: "own-team",
    team_member_permissions: ["/key/service-account/generate", "/key/generate"],
  });
  const made = { team_id: "own-team" };
  for (const [who, restriction] of [
    [user_id, { key_type: "management" }],
    [user_id, { max_budget: 1, models: ["cheap"] }],
    ["team-admin", { max_budget: 1, models: ["cheap"] }],
  ] as const) {
    const asking = { user_id: who, ...made, ...restriction };
    keys.set("restricted", await fixture.createKey(asking));
    for (const path of ["/key/service-account/generate", "/key/generate"]) {
      expect([who, path, await status("restricted", path, made)]).toEqual([
        who,
        path,
        403,
      ]);
    }
  }
});

test("a management key of a team admin manages the keys of its team only", async () => {
  await fixture.post("/team/member_add", {
    team_id: "strange-team",
    member: { user_id: "team-admin" },
  });
  const personal = await fixture.createKey({ user_id: "team-admin" });
  const key_type = "management";
  keys.set(
    "manager",
    await fixture.createKey({ user_id: "team-admin", key_type }),
  );
  const team_id = "own-team";
  const made = await fixture.post(
    "/key/generate",
    { team_id },
    keyOf("manager"),
  );
  const { key } = made;
  for (const [path, body, expected] of [
    ["/key/service-account/generate", { team_id }, 200],
    ["/key/update", { key, max_budget: 3 }, 200],
    ["/key/update", { key, team_id: null }, 403],
    ["/key/update", { key, team_id: "strange-team" }, 403],
    ["/key/update", { key: personal, team_id }, 403],
    ["/key/generate", {}, 403],
    ["/key/generate", { team_id: "strange-team" }, 403],
    ["/key/regenerate", { key }, 200],
  ] as const) {
    expect([path, body, await status("manager", path, body)]).toEqual([
      path,
      body,
      expected,
    ]);
  }
});

test("a key cannot be unblocked by changing or renewing it without the right to unblock", async () => {
  const user_id = "blocked-one";
  const unblocked = await fixture.createKey({ user_id });
  keys.set("blocked-one", unblocked);
  const key = await fixture.createKey({ user_id });
  await fixture.post("/key/block", { key });
  for (const [path, body] of [
    ["/key/unblock", { key }],
    ["/key/update", { key, blocked: false, max_budget: null, duration: null }],
    ["/key/update", { key, blocked: null }],
    ["/key/regenerate", { key, blocked: false }],
  ] as const) {
    expect([path, await status("blocked-one", path, body)]).toEqual([
      path,
      403,
    ]);
  }
  const resets = { key: unblocked, blocked: null, tags: null };
  expect(await status("blocked-one", "/key/update", resets)).toBe(200);
  expect(
    await status("blocked-one", "/key/update", {
      key,
      blocked: true,
      tags: [],
    }),
  ).toBe(200);
  const renewed = await fixture.post(
    "/key/regenerate",
    { key },
    keyOf("blocked-one"),
  );
  expect(renewed).toMatchObject({ blocked: true });
});
