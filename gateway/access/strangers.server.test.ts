import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { ADMIN_ROUTES } from "../admin/routes.ts";
import { query } from "../database/pool.ts";
import { hashKey } from "./keys.ts";
import { ruleOf, type RouteName } from "./policy.ts";
import { ROLES, type Role } from "./roles.ts";

/**
 * Every admin route, called by each restricted role for objects of other owners: requests that name such an object are
 * denied, lists omit it.
 */

let fixture: AdminFixture;
let strangeKey: string;
const keys = new Map<string, string>();

/** Part of every name and alias of another owner's objects. */
const MARK = "stranger";
const strangeModel = `${MARK}-model-id`;

beforeAll(async () => {
  fixture = await startAdminFixture();
  await fixture.post("/organization/new", { organization_id: "own-org" });
  await fixture.post("/organization/new", {
    organization_id: `${MARK}-org`,
    organization_alias: MARK,
  });
  await fixture.post("/team/new", {
    team_id: "own-team",
    organization_id: "own-org",
  });
  await fixture.post("/team/new", {
    team_id: `${MARK}-team`,
    team_alias: MARK,
    organization_id: `${MARK}-org`,
  });
  await fixture.post("/user/new", {
    user_id: MARK,
    user_email: `${MARK}@example.org`,
    teams: [`${MARK}-team`],
  });
  await fixture.post("/model/new", {
    model_name: `${MARK}-model`,
    provider_params: { model: "openai/x", api_key: "x" },
    model_info: { id: strangeModel, ...team },
  });
  strangeKey = await fixture.createKey({
    user_id: MARK,
    team_id: `${MARK}-team`,
    key_alias: MARK,
    max_budget: 0,
  });
  await fixture.chat(strangeKey, "refused");
  await fixture.running.gateway.refusals.flush();
  const gone = await fixture.createKey({ ...user, key_alias: `${MARK}-gone` });
  await fixture.post("/key/delete", { keys: [gone] });
  await fixture.spend({
    api_key: hashKey(strangeKey),
    user_id: MARK,
    team_id: `${MARK}-team`,
    organization_id: `${MARK}-org`,
    model_group: MARK,
    request_id: `${MARK}-call`,
  });
  await query(
    fixture.pool,
    "INSERT INTO prompts (request_id, started_at, request) VALUES ($1, now(), '\"secret\"')",
    [`${MARK}-call`],
  );
  for (const role of Object.keys(ROLES)) {
    const made = await fixture.post("/user/new", {
      user_id: role,
      user_role: role,
    });
    keys.set(role, String(made["key"]));
  }
  await fixture.post("/user/new", { user_id: "team-admin" });
  keys.set(
    "team-admin",
    await fixture.createKey({ user_id: "team-admin", key_alias: "of-admin" }),
  );
  await fixture.post("/team/member_add", {
    team_id: "own-team",
    member: { user_id: "team-admin", role: "admin" },
  });
  await fixture.post("/organization/member_add", {
    organization_id: "own-org",
    member: { user_id: "org_admin", role: "org_admin" },
  });
});

afterAll(() => fixture?.stop());

const team = { team_id: `${MARK}-team` };
const organization = { organization_id: `${MARK}-org` };
const user = { user_id: MARK };

type Params = Readonly<Record<string, unknown>>;

/** Parameters that name another owner's object, by route. */
const STRANGE: Partial<Record<RouteName, () => Params>> = {
  "POST /key/generate": () => ({ ...team }),
  "POST /key/service-account/generate": () => ({ ...team }),
  "GET /key/info": () => ({ key: strangeKey }),
  "POST /key/update": () => ({ key: strangeKey, rpm_limit: 1 }),
  "POST /key/delete": () => ({ keys: [strangeKey] }),
  "GET /key/usage": () => ({ key: strangeKey }),
  "POST /key/block": () => ({ key: strangeKey }),
  "POST /key/unblock": () => ({ key: strangeKey }),
  "POST /key/regenerate": () => ({ key: strangeKey }),
  "POST /key/:key/regenerate": () => ({}),
  "POST /key/:key/reset_spend": () => ({ reset_to: 0 }),
  "POST /user/new": () => ({ organizations: [`${MARK}-org`] }),
  "GET /spend/calls/:request_id": () => ({}),
  "GET /spend/calls/:request_id/prompt": () => ({}),
  "GET /user/info": () => ({ ...user }),
  "GET /v2/user/info": () => ({ ...user }),
  "POST /user/update": () => ({ ...user, user_alias: "x" }),
  "POST /user/delete": () => ({ user_ids: [MARK] }),
  "GET /user/daily/activity": () => ({ ...user }),
  "GET /user/daily/activity/aggregated": () => ({ ...user }),
  "POST /team/new": () => ({ ...organization }),
  "POST /team/update": () => ({ ...team, team_alias: "x" }),
  "GET /team/info": () => ({ ...team }),
  "POST /team/member_add": () => ({ ...team, member: { user_id: "x" } }),
  "POST /team/member_accept": () => ({ ...team, ...user }),
  "POST /team/member_update": () => ({ ...team, ...user, role: "admin" }),
  "POST /team/member_delete": () => ({ ...team, ...user }),
  "POST /team/bulk_member_add": () => ({
    ...team,
    members: [{ user_id: "x" }],
  }),
  "POST /team/:team_id/member/:user_id/reset_spend": () => ({ reset_to: 0 }),
  "POST /team/key/bulk_update": () => ({
    ...team,
    all_keys_in_team: true,
    update_fields: { rpm_limit: 1 },
  }),
  "POST /team/delete": () => ({ team_ids: [`${MARK}-team`] }),
  "POST /team/block": () => ({ ...team }),
  "POST /team/unblock": () => ({ ...team }),
  "POST /team/model/add": () => ({ ...team, models: ["mock"] }),
  "POST /team/model/delete": () => ({ ...team, models: ["mock"] }),
  "POST /team/permissions_update": () => ({
    ...team,
    team_member_permissions: [],
  }),
  "GET /team/permissions_list": () => ({ ...team }),
  "GET /team/daily/activity": () => ({ ...team }),
  "GET /team/daily/activity/aggregated": () => ({ ...team }),
  "GET /organization/info": () => ({ ...organization }),
  "POST /organization/member_add": () => ({
    ...organization,
    member: { user_id: "x" },
  }),
  "PATCH /organization/member_update": () => ({
    ...organization,
    ...user,
    role: "org_admin",
  }),
  "DELETE /organization/member_delete": () => ({ ...organization, ...user }),
  "GET /organization/daily/activity": () => ({ ...organization }),
  "GET /organization/daily/activity/aggregated": () => ({ ...organization }),
  "POST /model/new": () => ({
    model_name: "x",
    provider_params: { model: "openai/x", api_key: "x" },
    model_info: { ...team },
  }),
  "POST /model/update": () => ({ model_info: { id: strangeModel } }),
  "PATCH /model/:model_id/update": () => ({ model_name: "x" }),
  "POST /model/delete": () => ({ id: strangeModel }),
  "POST /health/test_connection": () => ({ model_info: { id: strangeModel } }),
};

/** Routes that list what is within reach, with parameters by which an admin sees other owners' objects. */
const LISTS: Partial<Record<RouteName, () => readonly Params[]>> = {
  "POST /v2/key/info": () => [{ keys: [strangeKey] }],
  "GET /key/list": () => [
    { return_full_object: true },
    { return_full_object: true, status: "deleted" },
    { return_full_object: true, user_id: MARK, include_team_keys: true },
    { return_full_object: true, organization_id: `${MARK}-org` },
    { return_full_object: true, key_hash: strangeKey },
    { return_full_object: true, search: MARK },
  ],
  "GET /key/aliases": () => [{}, { search: MARK }, { ...team }],
  "GET /user/list": () => [
    { page_size: 100 },
    { user_ids: MARK },
    { team: team.team_id },
  ],
  "GET /team/list": () => [{}, user, organization],
  "GET /v2/team/list": () => [{ page_size: 100 }, { search: MARK }],
  "GET /organization/list": () => [
    {},
    { org_id: organization.organization_id },
    { org_alias: MARK },
  ],
  "POST /organization/info": () => [
    { organizations: [organization.organization_id] },
  ],
  "GET /spend/logs": () => [{}, { ...user }, { api_key: strangeKey }],
  "GET /spend/logs/v2": () =>
    [{}, { ...user }, { api_key: strangeKey }].map((params) => ({
      start_date: "2020-01-01",
      end_date: "2100-01-01",
      ...params,
    })),
  "GET /spend/calls": () => [
    {},
    { user: MARK },
    { key: strangeKey },
    { key: MARK },
    { team: MARK, min_spend: "0.2" },
  ],
  "GET /refusals": () => [{}, { api_key: strangeKey }],
  "GET /model/info": () => [{}],
  "GET /v2/model/info": () => [{}, { modelId: strangeModel }],
};

/** Routes that show no owner's objects. */
const WITHOUT_OWNER: Partial<Record<RouteName, Params>> = {
  "POST /key/health": {},
  "GET /user/available_roles": {},
  "GET /me/usage": {},
  "GET /me/calls": {},
  "POST /spend/calculate": { model: "mock", messages: [] },
  // Also for admins it lists only what the key may call.
  "GET /model_group/info": {},
};

/** Routes that some restricted role may use at all. */
const OPEN = ADMIN_ROUTES.map(({ name }) => name).filter((name) => {
  const { reach, teamAdmin, teamUser } = ruleOf(name);
  const limited = Object.values(reach).some(
    (whose) => whose === "organization" || whose === "own",
  );
  return limited || teamAdmin || teamUser !== "never";
});

/** Ids of models and calls are random: that one exists says nothing. */
const MARKED = new RegExp(`${MARK}(?!-model-id|-call)`, "g");

/** `mark`: takes the place of the owner's in names. */
async function ask(name: RouteName, who: string, named: Params, mark = MARK) {
  const [method = "", pattern = ""] = name.split(" ");
  const path = pattern
    .replace(":key", strangeKey)
    .replace(":model_id", strangeModel)
    .replace(":team_id", team.team_id)
    .replace(":user_id", MARK)
    .replace(":request_id", `${MARK}-call`)
    .replace(MARKED, mark);
  const given = JSON.parse(
    JSON.stringify(named).replace(MARKED, mark),
  ) as Params;
  if (method !== "GET") {
    return fixture.request(method, path, given, keys.get(who));
  }
  const query = new URLSearchParams(given as Record<string, string>).toString();
  return fixture.request(method, `${path}?${query}`, undefined, keys.get(who));
}

const LIMITED = [
  "org_admin",
  "internal_user",
  "internal_user_viewer",
  "team-admin",
] as const;

test("every route open to a restricted role is covered below", () => {
  const covered = [
    ...Object.keys(STRANGE),
    ...Object.keys(LISTS),
    ...Object.keys(WITHOUT_OWNER),
  ].sort();
  expect(covered).toEqual([...OPEN].sort());
});

test.each(LIMITED)(
  "%s cannot change other owners' objects by any route",
  async (who) => {
    for (const name of OPEN) {
      const paramsOf = STRANGE[name];
      if (paramsOf === undefined) {
        continue;
      }
      const { status, json } = await ask(name, who, paramsOf());
      expect([name, status]).toEqual([name, 403]);
      expect(json).toMatchObject({ error: { type: "permission_denied" } });
    }
  },
);

test.each(LIMITED)(
  "%s gets the same answer for another owner's object as for one that does not exist",
  async (who) => {
    for (const name of OPEN) {
      const paramsOf = STRANGE[name];
      if (paramsOf === undefined) {
        continue;
      }
      const params = paramsOf();
      const existing = await ask(name, who, params);
      const missing = await ask(name, who, params, "missing");
      const nameless = ({ text }: { readonly text: string }) =>
        text.replaceAll(/stranger|missing/g, "");
      expect([name, missing.status, nameless(missing)]).toEqual([
        name,
        403,
        nameless(existing),
      ]);
    }
  },
);

test.each(LIMITED)(
  "%s learns nothing about another owner's key from its alias",
  async (who) => {
    for (const [name, params] of [
      ["POST /key/update", { key_alias: MARK, rpm_limit: 1 }],
      ["POST /key/delete", { key_aliases: [MARK] }],
    ] as const) {
      const existing = await ask(name, who, params);
      const missing = await ask(name, who, params, "missing");
      expect([name, existing.status, existing.text]).toEqual([
        name,
        who === "internal_user_viewer" ? 403 : 404,
        missing.text.replaceAll("missing", MARK),
      ]);
    }
  },
);

/** Whether the answer, with status 200, shows another owner's object. */
async function shows(
  who: string,
  name: RouteName,
  params: Params,
): Promise<boolean> {
  const { status, text } = await ask(name, who, params);
  expect([name, params, status]).toEqual([name, params, 200]);
  return text.includes(MARK);
}

test.each(Object.keys(LISTS) as RouteName[])(
  "%s shows other owners' objects only to roles that see everything",
  async (name) => {
    for (const params of LISTS[name]?.() ?? []) {
      for (const who of ["proxy_admin", "proxy_admin_viewer"]) {
        expect([who, params, await shows(who, name, params)]).toEqual([
          who,
          params,
          true,
        ]);
      }
      for (const who of LIMITED) {
        expect([who, params, await shows(who, name, params)]).toEqual([
          who,
          params,
          false,
        ]);
      }
    }
  },
);

test.each(LIMITED)("%s sees no other owners' objects", async (who) => {
  for (const [name, params] of Object.entries(WITHOUT_OWNER)) {
    expect([name, await shows(who, name as RouteName, params)]).toEqual([
      name,
      false,
    ]);
  }
});

test("a viewer can read other owners' objects, but not change them", async () => {
  const viewer: Role = "proxy_admin_viewer";
  for (const name of OPEN) {
    const paramsOf = STRANGE[name];
    if (paramsOf === undefined) {
      continue;
    }
    const { status } = await ask(name, viewer, paramsOf());
    expect([name, status]).toEqual([
      name,
      ruleOf(name).kind === "info" ? 200 : 403,
    ]);
  }
});
