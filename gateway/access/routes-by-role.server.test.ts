import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { ROUTES } from "../http/route-table.ts";
import type { Route } from "../http/route.ts";
import {
  mayUseRoute,
  ROUTE_NAMES,
  ruleOf,
  whoMay,
  type RouteName,
} from "./policy.ts";
import { ROLES, type Role } from "./roles.ts";

const NO_TEAM = { adminOfATeam: false, memberOfATeam: false };
const roles = Object.keys(ROLES) as readonly Role[];

/** The routes that each role may use at all, listed independently of the policy in order to be compared with it. */
const MAY: readonly (readonly [readonly Role[], readonly string[]])[] = [
  [
    ["proxy_admin", "org_admin", "internal_user"],
    [
      "POST /v1/chat/completions",
      "POST /v1/completions",
      "POST /v1/embeddings",
      "POST /v1/messages",
      "POST /v1/messages/count_tokens",
      "POST /v1beta/models/*",
      "POST /v1/responses",
      "GET /v1/responses",
      "POST /v1/responses/compact",
      "POST /v1/responses/input_tokens",
      "GET /v1/responses/:response_id",
      "DELETE /v1/responses/:response_id",
      "GET /v1/responses/:response_id/input_items",
      "POST /v1/responses/:response_id/cancel",
      "POST /v1/conversations",
      "GET /v1/conversations/:conversation_id",
      "POST /v1/conversations/:conversation_id",
      "DELETE /v1/conversations/:conversation_id",
      "POST /v1/conversations/:conversation_id/items",
      "GET /v1/conversations/:conversation_id/items",
      "GET /v1/conversations/:conversation_id/items/:item_id",
      "DELETE /v1/conversations/:conversation_id/items/:item_id",
      "POST /v1/moderations",
      "POST /v1/images/generations",
      "POST /v1/images/edits",
      "POST /v1/images/variations",
      "POST /v1/rerank",
      "POST /v1/audio/speech",
      "POST /v1/audio/transcriptions",
      "POST /v1/audio/translations",
      "POST /guardrails/apply_guardrail",
      "POST /key/generate",
      "POST /key/update",
      "POST /key/delete",
      "POST /key/regenerate",
      "POST /key/:key/regenerate",
      "POST /team/member_accept",
    ],
  ],
  [
    roles,
    [
      "GET /v1/models",
      "GET /v1/models/*",
      "GET /guardrails/list",
      "POST /utils/token_counter",
      "GET /utils/supported_openai_params",
      "GET /model/info",
      "GET /v2/model/info",
      "GET /model_group/info",
      "POST /key/health",
      "GET /me/usage",
      "GET /me/calls",
      "GET /user/available_roles",
      "POST /spend/calculate",
      "GET /key/info",
      "POST /v2/key/info",
      "GET /key/list",
      "GET /key/usage",
      "GET /key/aliases",
      "GET /user/info",
      "GET /v2/user/info",
      "GET /user/list",
      "GET /user/daily/activity",
      "GET /user/daily/activity/aggregated",
      "GET /team/info",
      "GET /team/list",
      "GET /v2/team/list",
      "GET /team/permissions_list",
      "GET /team/daily/activity",
      "GET /team/daily/activity/aggregated",
      "GET /organization/info",
      "POST /organization/info",
      "GET /organization/list",
      "GET /organization/daily/activity",
      "GET /organization/daily/activity/aggregated",
      "GET /spend/logs",
      "GET /spend/logs/v2",
      "GET /spend/calls",
      "GET /spend/calls/:request_id",
      "GET /spend/calls/:request_id/prompt",
      "GET /refusals",
    ],
  ],
  [
    ["proxy_admin", "org_admin"],
    [
      "POST /key/service-account/generate",
      "POST /key/block",
      "POST /key/unblock",
      "POST /key/:key/reset_spend",
      "POST /team/key/bulk_update",
      "POST /user/new",
      "POST /user/update",
      "POST /user/delete",
      "POST /team/new",
      "POST /team/update",
      "POST /team/delete",
      "POST /team/block",
      "POST /team/unblock",
      "POST /team/member_add",
      "POST /team/bulk_member_add",
      "POST /team/member_update",
      "POST /team/member_delete",
      "POST /team/:team_id/member/:user_id/reset_spend",
      "POST /team/model/add",
      "POST /team/model/delete",
      "POST /team/permissions_update",
      "POST /model/new",
      "POST /model/update",
      "PATCH /model/:model_id/update",
      "POST /model/delete",
      "POST /health/test_connection",
      "POST /organization/member_add",
      "PATCH /organization/member_update",
      "DELETE /organization/member_delete",
    ],
  ],
  [
    ["proxy_admin", "proxy_admin_viewer"],
    [
      "GET /model/statistics",
      "GET /model/history",
      "GET /customer/info",
      "GET /customer/list",
      "GET /customer/daily/activity",
      "GET /customer/daily/activity/aggregated",
      "POST /tag/info",
      "GET /tag/list",
      "GET /tag/daily/activity",
      "GET /tag/daily/activity/aggregated",
      "POST /budget/info",
      "GET /budget/list",
      "GET /credentials",
      "GET /credentials/by_name/:credential_name",
      "GET /credentials/by_model/:model_id",
      "GET /access_group/list",
      "GET /access_group/:access_group/info",
      "GET /v1/access_group",
      "GET /v1/access_group/:access_group_id",
      "GET /spend/keys",
      "GET /spend/users",
      "GET /spend/tags",
      "GET /spend/check",
      "GET /notices",
      "GET /audit",
      "GET /global/spend",
      "GET /global/spend/logs",
      "GET /global/spend/keys",
      "GET /global/spend/models",
      "GET /global/spend/teams",
      "GET /global/spend/tags",
      "GET /global/spend/provider",
      "GET /global/spend/report",
      "GET /global/activity",
      "GET /global/activity/model",
      "GET /global/activity/cache_hits",
      "GET /health",
      "GET /health/services",
      "GET /metrics",
      "GET /cache/ping",
      "GET /cache/redis/info",
      "GET /instances",
    ],
  ],
  [
    ["proxy_admin"],
    [
      "POST /key/bulk_update",
      "POST /user/bulk_update",
      "POST /organization/new",
      "PATCH /organization/update",
      "POST /organization/delete",
      "DELETE /organization/delete",
      "POST /model/block",
      "POST /model/unblock",
      "POST /customer/new",
      "POST /customer/update",
      "POST /customer/delete",
      "POST /customer/block",
      "POST /customer/unblock",
      "POST /tag/new",
      "POST /tag/update",
      "POST /tag/delete",
      "POST /budget/new",
      "POST /budget/update",
      "POST /budget/delete",
      "POST /credentials",
      "PATCH /credentials/:credential_name",
      "DELETE /credentials/:credential_name",
      "POST /access_group/new",
      "PUT /access_group/:access_group/update",
      "DELETE /access_group/:access_group/delete",
      "POST /v1/access_group",
      "PUT /v1/access_group/:access_group_id",
      "DELETE /v1/access_group/:access_group_id",
      "POST /cache/delete",
      "POST /cache/flushall",
      "POST /config/check",
      "POST /config/reload",
      "POST /instances/forget",
    ],
  ],
];

function whoByTable(name: RouteName): readonly Role[] {
  const rows = MAY.filter(([, names]) => names.includes(name));
  expect([name, rows.length]).toEqual([name, 1]);
  return rows[0]?.[0] ?? [];
}

test("the policy gives every route to the roles of the table, and the server has no other route that needs a key", () => {
  expect(ROUTES.map(({ name }) => name).sort()).toEqual(
    [...ROUTE_NAMES].sort(),
  );
  for (const name of ROUTE_NAMES) {
    expect([
      name,
      roles.filter((role) => mayUseRoute(ruleOf(name), role, NO_TEAM)),
    ]).toEqual([name, whoByTable(name)]);
  }
});

let fixture: AdminFixture;
const keys = new Map<string, string>();

beforeAll(async () => {
  fixture = await startAdminFixture();
  for (const role of roles) {
    const made = await fixture.post("/user/new", {
      user_id: role,
      user_role: role,
    });
    keys.set(role, String(made["key"]));
  }
});

afterAll(() => fixture?.stop());

/** All paths of a route, with a value for each parameter. */
function pathsOf({ paths }: Route): readonly string[] {
  return paths.map((path) => path.replace(/:\w+|\*$/g, "some"));
}

function ask(route: Route, path: string, key: string | undefined) {
  const body = route.method === "GET" ? undefined : {};
  return fixture.request(route.method, path, body, key);
}

const BY_NAME = ROUTES.map((route) => [route.name, route] as const);

test.each(BY_NAME)(
  "%s is limited to its roles at all its paths, and denials name them",
  async (name, route) => {
    const may = whoByTable(name);
    for (const path of pathsOf(route)) {
      for (const role of roles) {
        const { status, json } = await ask(route, path, keys.get(role));
        const { message } = json["error"] ?? {};
        const refusal = `The role ${role} may not use ${name}: it is for ${whoMay(ruleOf(name))}.`;
        if (may.includes(role)) {
          expect(message).not.toBe(refusal);
        } else {
          expect([path, role, status, message]).toEqual([
            path,
            role,
            403,
            refusal,
          ]);
        }
      }
    }
  },
);

test.each(BY_NAME)("%s requires a key", async (_, route) => {
  for (const path of pathsOf(route)) {
    expect([path, (await ask(route, path, "")).status]).toEqual([path, 401]);
  }
});

const PROMPT = { messages: [{ role: "user", content: "hello" }] };

test.each([
  ["POST", "/v1/chat/completions", { model: "mock", ...PROMPT }],
  ["POST", "/v1/messages", { model: "mock", max_tokens: 5, ...PROMPT }],
  ["GET", "/v1/models/mock", undefined],
  ["POST", "/key/generate", {}],
  ["GET", "/key/list", undefined],
  ["GET", "/health", undefined],
  ["GET", "/metrics", undefined],
  ["GET", "/global/spend", undefined],
  ["POST", "/user/bulk_update", { users: [{ user_id: "nobody" }] }],
  ["POST", "/cache/flushall", {}],
  ["POST", "/config/check", {}],
  ["POST", "/config/reload", {}],
])("%s %s answers the roles that may use it", async (method, path, body) => {
  const name = `${method} ${path.replace(/mock$/, "*")}` as RouteName;
  for (const role of roles) {
    const { status } = await fixture.request(
      method,
      path,
      body,
      keys.get(role),
    );
    expect([role, status]).toEqual([
      role,
      whoByTable(name).includes(role) ? 200 : 403,
    ]);
  }
});
