import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { mayUseRoute, ROUTE_NAMES, ruleOf, whoMay } from "./policy.ts";
import { keyAllowsRoute } from "./key-routes.ts";
import { ROLES, type Role } from "./roles.ts";

const NO_TEAM = { adminOfATeam: false, memberOfATeam: false };
const roles = Object.keys(ROLES) as readonly Role[];

test("an admin may use every route, a viewer changes nothing and calls nothing", () => {
  for (const name of ROUTE_NAMES) {
    const rule = ruleOf(name);
    expect(rule.reach.proxy_admin).toBe("all");
    const changes = rule.kind === "management" || rule.kind === "llm_api";
    for (const viewer of [
      "proxy_admin_viewer",
      "internal_user_viewer",
    ] as const) {
      if (changes) {
        expect(rule.reach[viewer]).toBe("none");
      }
    }
    expect(whoMay(rule)).toContain("proxy_admin");
    expect(mayUseRoute(rule, "proxy_admin", NO_TEAM)).toBe(true);
    expect(
      mayUseRoute(rule, "proxy_admin_viewer", {
        adminOfATeam: true,
        memberOfATeam: true,
      }),
    ).toBe(!changes);
  }
});

test("a key's type and allowed routes restrict it", () => {
  const key = (keyType: string, ...allowedRoutes: string[]) => ({
    keyType,
    allowedRoutes,
  });
  const allows = (of: ReturnType<typeof key>, name: (typeof ROUTE_NAMES)[0]) =>
    keyAllowsRoute(of, ruleOf(name), name.split(" ")[1] ?? "");
  expect(allows(key("default"), "POST /key/generate")).toBe(true);
  expect(allows(key("llm_api"), "POST /key/generate")).toBe(false);
  expect(allows(key("llm_api"), "POST /v1/chat/completions")).toBe(true);
  expect(allows(key("management"), "POST /v1/chat/completions")).toBe(false);
  expect(allows(key("read_only"), "GET /key/info")).toBe(true);
  expect(allows(key("read_only"), "POST /key/update")).toBe(false);
  expect(allows(key("default", "/key/*"), "GET /key/info")).toBe(true);
  expect(allows(key("default", "/key/*"), "GET /user/info")).toBe(false);
  expect(allows(key("default", "llm_api_routes"), "POST /v1/embeddings")).toBe(
    true,
  );
  expect(
    allows(key("default", "/chat/completions"), "POST /v1/chat/completions"),
  ).toBe(true);
});

describe("over HTTP", () => {
  let fixture: AdminFixture;
  const keys = new Map<string, string>();

  beforeAll(async () => {
    fixture = await startAdminFixture();
    await fixture.post("/organization/new", { organization_id: "org" });
    await fixture.post("/team/new", { team_id: "own", organization_id: "org" });
    await fixture.post("/team/new", { team_id: "strange" });
    for (const role of roles) {
      const made = await fixture.post("/user/new", {
        user_id: role,
        user_role: role,
      });
      keys.set(role, String(made["key"]));
    }
    for (const part of ["admin", "user"]) {
      const made = await fixture.post("/user/new", {
        user_id: `team-${part}`,
      });
      keys.set(`team-${part}`, String(made["key"]));
      await fixture.post("/team/member_add", {
        team_id: "own",
        member: { user_id: `team-${part}`, role: part },
      });
    }
    await fixture.post("/organization/member_add", {
      organization_id: "org",
      member: { user_id: "org_admin", role: "org_admin" },
    });
    for (const [id, fields] of Object.entries({
      "key-own": { user_id: "internal_user" },
      "key-team": { team_id: "own" },
      "key-team-user": { team_id: "own", user_id: "team-user" },
      "key-strange": { team_id: "strange" },
      "key-other": { user_id: "somebody-else" },
    })) {
      keys.set(id, await fixture.createKey({ ...fields, key_alias: id }));
    }
  });

  afterAll(() => fixture?.stop());

  function keyOf(who: string): string {
    return keys.get(who) ?? who;
  }

  async function status(
    who: string,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<number> {
    return (await fixture.request(method, path, body, keyOf(who))).status;
  }

  const ownership: readonly (readonly [
    string,
    string,
    string,
    (() => unknown) | undefined,
    readonly string[],
  ])[] = [
    [
      "GET",
      "/key/info?key=$key-own",
      "reads a user's key",
      undefined,
      ["proxy_admin", "proxy_admin_viewer", "internal_user"],
    ],
    [
      "GET",
      "/key/info?key=$key-team",
      "reads a team's key",
      undefined,
      ["proxy_admin", "proxy_admin_viewer", "org_admin", "team-admin"],
    ],
    [
      "GET",
      "/key/info?key=$key-team-user",
      "reads a member's key",
      undefined,
      [
        "proxy_admin",
        "proxy_admin_viewer",
        "org_admin",
        "team-admin",
        "team-user",
      ],
    ],
    [
      "GET",
      "/key/info?key=$key-strange",
      "reads another team's key",
      undefined,
      ["proxy_admin", "proxy_admin_viewer"],
    ],
    [
      "POST",
      "/key/update",
      "changes a user's key",
      () => ({ key: keyOf("key-own"), metadata: { a: 1 } }),
      ["proxy_admin", "internal_user"],
    ],
    [
      "POST",
      "/key/update",
      "changes a team's key",
      () => ({ key: keyOf("key-team"), metadata: { a: 1 } }),
      ["proxy_admin", "org_admin", "team-admin"],
    ],
    [
      "POST",
      "/key/update",
      "moves a key to another user",
      () => ({ key: keyOf("key-own"), user_id: "somebody-else" }),
      ["proxy_admin"],
    ],
    [
      "POST",
      "/key/generate",
      "creates a team key",
      () => ({ team_id: "own" }),
      ["proxy_admin", "org_admin", "team-admin"],
    ],
    [
      "POST",
      "/key/generate",
      "creates a key for another user",
      () => ({ user_id: "somebody-else" }),
      ["proxy_admin"],
    ],
    [
      "GET",
      "/team/info?team_id=own",
      "reads a team",
      undefined,
      [
        "proxy_admin",
        "proxy_admin_viewer",
        "org_admin",
        "team-admin",
        "team-user",
      ],
    ],
    [
      "POST",
      "/team/update",
      "raises a team's budget",
      () => ({ team_id: "own", max_budget: 100 }),
      ["proxy_admin", "org_admin"],
    ],
    [
      "POST",
      "/team/update",
      "renames a team",
      () => ({ team_id: "own", team_alias: "Named" }),
      ["proxy_admin", "org_admin", "team-admin"],
    ],
    [
      "POST",
      "/team/update",
      "renames another team",
      () => ({ team_id: "strange", team_alias: "Named" }),
      ["proxy_admin"],
    ],
    [
      "GET",
      "/user/info?user_id=internal_user",
      "reads a user",
      undefined,
      ["proxy_admin", "proxy_admin_viewer", "internal_user"],
    ],
    [
      "GET",
      "/organization/info?organization_id=org",
      "reads an organization",
      undefined,
      ["proxy_admin", "proxy_admin_viewer", "org_admin"],
    ],
  ];

  test.each(ownership)(
    "%s %s %s for the permitted callers only",
    async (method, path, _, body, may) => {
      const at = path.replace(/\$([\w-]+)/, (_, id: string) => keyOf(id));
      for (const who of [...roles, "team-admin", "team-user"]) {
        const got = await status(who, method, at, body?.());
        expect([who, got]).toEqual([who, may.includes(who) ? 200 : 403]);
      }
      // Undoes a change of the key's user.
      await fixture.post("/key/update", {
        key: keyOf("key-own"),
        user_id: "internal_user",
      });
    },
  );

  test("a member creates its own team keys where the team permits it", async () => {
    await fixture.post("/team/permissions_update", {
      team_id: "own",
      team_member_permissions: ["/key/generate"],
    });
    const made = await fixture.post(
      "/key/generate",
      { team_id: "own" },
      keyOf("team-user"),
    );
    expect(made).toMatchObject({ team_id: "own", user_id: "team-user" });
    expect(
      await status("team-user", "POST", "/key/generate", {
        team_id: "own",
        user_id: "internal_user",
      }),
    ).toBe(403);
  });

  test("a key with a budget cannot create a key without one", async () => {
    const limited = await fixture.createKey({
      user_id: "internal_user",
      max_budget: 1,
    });
    for (const [path, body] of [
      ["/key/generate", {}],
      ["/key/update", { key: limited, max_budget: 9 }],
      ["/key/regenerate", { key: limited, max_budget: 9 }],
    ] as const) {
      expect(await status(limited, "POST", path, body)).toBe(403);
    }
    expect(
      await status("internal_user", "POST", "/key/update", {
        key: limited,
        spend: 0,
      }),
    ).toBe(403);
  });

  test("no user can charge or join an organization or team of others", async () => {
    for (const [who, body] of [
      ["internal_user", { organization_id: "org" }],
      ["org_admin", { organization_id: "org", team_id: "strange" }],
    ] as const) {
      expect(await status(who, "POST", "/key/generate", body)).toBe(403);
    }
  });

  test("lists show only the caller's own objects", async () => {
    const aliases = async (who: string) =>
      (
        await fixture.get(
          "/key/list?size=100&return_full_object=true",
          keyOf(who),
        )
      )["total_count"];
    expect(await aliases("team-admin")).toBe(7);
    expect(await aliases("internal_user_viewer")).toBe(1);
    expect(
      await fixture.get("/user/list", keyOf("internal_user")),
    ).toMatchObject({ users: [{ user_id: "internal_user" }], total: 1 });
    expect(
      (await fixture.get("/team/list", keyOf("team-user"))) as unknown,
    ).toMatchObject([{ team_id: "own" }]);
  });

  test("a team's permissions accept LiteLLM's full list, and a member regenerates its key by either spelling", async () => {
    const all = await fixture.get("/team/permissions_list?team_id=own");
    await fixture.post("/team/permissions_update", {
      team_id: "own",
      team_member_permissions: all["all_available_permissions"],
    });
    expect(all["all_available_permissions"]).toEqual(
      expect.arrayContaining(["/key/info", "/key/health", "/key/list"]),
    );
    for (const spelling of [
      "/key/:key/regenerate",
      "/key/{key_id}/regenerate",
    ]) {
      const key = await fixture.createKey({
        team_id: "own",
        user_id: "team-user",
      });
      const regenerate = () =>
        status("team-user", "POST", `/key/${key}/regenerate`, {});
      for (const [permissions, expected] of [
        [["/key/info", "/key/health", "/key/{key_id}/reset_spend"], 403],
        [[spelling], 200],
      ] as const) {
        await fixture.post("/team/permissions_update", {
          team_id: "own",
          team_member_permissions: permissions,
        });
        expect([spelling, await regenerate()]).toEqual([spelling, expected]);
      }
    }
    expect(
      (
        await fixture.rejected("POST", "/team/permissions_update", {
          team_id: "own",
          team_member_permissions: ["/key/inof"],
        })
      ).status,
    ).toBe(400);
  });
});
