/** Which roles may use which route, and whose objects they reach: decided only here. */
import type { Role } from "./roles.ts";

/** Whose objects: everyone's, those of the organizations one administers and one's own, one's own, none. */
type Reach = "all" | "organization" | "own" | "none";

/** What a route is for; `key_type` and `allowed_routes` of a key name these. */
export type RouteKind = "llm_api" | "info" | "management" | "any";

export interface Rule {
  readonly kind: RouteKind;
  readonly reach: Readonly<Record<Role, Reach>>;
  /** Team admins reach their teams' objects too. */
  readonly teamAdmin: boolean;
  /** So do plain members: always (and the team's own keys), or where `team_member_permissions` names the route. */
  readonly teamUser: "always" | "permitted" | "never";
}

function rule(
  kind: RouteKind,
  [admin, viewer, organization, user, userViewer]: readonly [
    Reach,
    Reach,
    Reach,
    Reach,
    Reach,
  ],
  teamAdmin = false,
  teamUser: Rule["teamUser"] = "never",
): Rule {
  return {
    kind,
    reach: {
      proxy_admin: admin,
      proxy_admin_viewer: viewer,
      org_admin: organization,
      internal_user: user,
      internal_user_viewer: userViewer,
    },
    teamAdmin,
    teamUser,
  };
}

//                                       admin  viewer  org_admin       user    user_viewer   team admin, member
const CALL = /*       */ rule("llm_api", ["all", "none", "own", "own", "none"]);
const ANY_KEY = /*    */ rule("any", ["all", "all", "own", "own", "own"]);
const ADMIN = /*      */ rule("management", [
  "all",
  "none",
  "none",
  "none",
  "none",
]);
const READ_ALL = /*   */ rule("info", ["all", "all", "none", "none", "none"]);
const READ = rule(
  "info",
  ["all", "all", "organization", "own", "own"],
  true,
  "never",
);
/** Members reach their own; by permission also all others of the team. */
const READ_TEAM_KEYS = rule(
  "info",
  ["all", "all", "organization", "own", "own"],
  true,
  "permitted",
);
const READ_TEAM = rule(
  "info",
  ["all", "all", "organization", "own", "own"],
  true,
  "always",
);
const READ_ORGANIZATION = rule("info", [
  "all",
  "all",
  "organization",
  "own",
  "own",
]);
const KEYS = rule(
  "management",
  ["all", "none", "organization", "own", "none"],
  true,
  "permitted",
);
const TEAM_KEYS = rule(
  "management",
  ["all", "none", "organization", "none", "none"],
  true,
  "permitted",
);
const ORGANIZATION = rule("management", [
  "all",
  "none",
  "organization",
  "none",
  "none",
]);
const TEAM = rule(
  "management",
  ["all", "none", "organization", "none", "none"],
  true,
);
const ACCEPT = rule("management", [
  "all",
  "none",
  "organization",
  "own",
  "none",
]);

const POLICY = {
  "POST /v1/chat/completions": CALL,
  "POST /v1/completions": CALL,
  "POST /v1/embeddings": CALL,
  "POST /v1/messages": CALL,
  "POST /v1/messages/count_tokens": CALL,
  "POST /v1beta/models/*": CALL,
  "POST /v1/responses": CALL,
  "GET /v1/responses": CALL,
  "POST /v1/responses/compact": CALL,
  "POST /v1/responses/input_tokens": CALL,
  "GET /v1/responses/:response_id": CALL,
  "DELETE /v1/responses/:response_id": CALL,
  "GET /v1/responses/:response_id/input_items": CALL,
  "POST /v1/responses/:response_id/cancel": CALL,
  "POST /v1/conversations": CALL,
  "GET /v1/conversations/:conversation_id": CALL,
  "POST /v1/conversations/:conversation_id": CALL,
  "DELETE /v1/conversations/:conversation_id": CALL,
  "POST /v1/conversations/:conversation_id/items": CALL,
  "GET /v1/conversations/:conversation_id/items": CALL,
  "GET /v1/conversations/:conversation_id/items/:item_id": CALL,
  "DELETE /v1/conversations/:conversation_id/items/:item_id": CALL,
  "POST /v1/moderations": CALL,
  "POST /v1/images/generations": CALL,
  "POST /v1/images/edits": CALL,
  "POST /v1/images/variations": CALL,
  "POST /v1/rerank": CALL,
  "POST /v1/audio/speech": CALL,
  "POST /v1/audio/transcriptions": CALL,
  "POST /v1/audio/translations": CALL,
  "GET /v1/models": ANY_KEY,
  "GET /v1/models/*": ANY_KEY,
  "POST /utils/token_counter": ANY_KEY,
  "GET /utils/supported_openai_params": ANY_KEY,

  "POST /key/generate": KEYS,
  "POST /key/service-account/generate": TEAM_KEYS,
  "GET /key/info": READ_TEAM_KEYS,
  "POST /v2/key/info": READ_TEAM_KEYS,
  "GET /key/list": READ_TEAM_KEYS,
  "GET /key/usage": READ_TEAM_KEYS,
  "GET /key/aliases": READ_TEAM_KEYS,
  "POST /key/health": ANY_KEY,
  "POST /key/update": KEYS,
  "POST /key/bulk_update": ADMIN,
  "POST /key/delete": KEYS,
  "POST /key/block": TEAM_KEYS,
  "POST /key/unblock": TEAM_KEYS,
  "POST /key/regenerate": KEYS,
  "POST /key/:key/regenerate": KEYS,
  "POST /key/:key/reset_spend": TEAM,
  "POST /team/key/bulk_update": TEAM_KEYS,

  "POST /user/new": ORGANIZATION,
  "GET /user/info": READ,
  "GET /v2/user/info": READ,
  "POST /user/update": ORGANIZATION,
  "POST /user/bulk_update": ADMIN,
  "GET /user/list": READ_ORGANIZATION,
  "POST /user/delete": ORGANIZATION,
  "GET /user/available_roles": ANY_KEY,
  "GET /user/daily/activity": READ,
  "GET /user/daily/activity/aggregated": READ,

  "POST /team/new": ORGANIZATION,
  "POST /team/update": TEAM,
  "GET /team/info": READ_TEAM,
  "GET /team/list": READ_TEAM,
  "GET /v2/team/list": READ_TEAM,
  "POST /team/member_add": TEAM,
  "POST /team/bulk_member_add": TEAM,
  "POST /team/member_accept": ACCEPT,
  "POST /team/member_update": TEAM,
  "POST /team/member_delete": TEAM,
  "POST /team/:team_id/member/:user_id/reset_spend": TEAM,
  "POST /team/delete": ORGANIZATION,
  "POST /team/block": ORGANIZATION,
  "POST /team/unblock": ORGANIZATION,
  "POST /team/model/add": TEAM,
  "POST /team/model/delete": TEAM,
  "POST /team/permissions_update": TEAM,
  "GET /team/permissions_list": READ_TEAM,
  "GET /team/daily/activity": READ_TEAM_KEYS,
  "GET /team/daily/activity/aggregated": READ_TEAM_KEYS,

  "POST /organization/new": ADMIN,
  "PATCH /organization/update": ADMIN,
  "POST /organization/delete": ADMIN,
  "DELETE /organization/delete": ADMIN,
  "GET /organization/info": READ_ORGANIZATION,
  "POST /organization/info": READ_ORGANIZATION,
  "GET /organization/list": READ_ORGANIZATION,
  "POST /organization/member_add": ORGANIZATION,
  "PATCH /organization/member_update": ORGANIZATION,
  "DELETE /organization/member_delete": ORGANIZATION,
  "GET /organization/daily/activity": READ_ORGANIZATION,
  "GET /organization/daily/activity/aggregated": READ_ORGANIZATION,

  "POST /customer/new": ADMIN,
  "POST /customer/update": ADMIN,
  "POST /customer/delete": ADMIN,
  "POST /customer/block": ADMIN,
  "POST /customer/unblock": ADMIN,
  "GET /customer/info": READ_ALL,
  "GET /customer/list": READ_ALL,
  "GET /customer/daily/activity": READ_ALL,
  "GET /customer/daily/activity/aggregated": READ_ALL,
  "POST /tag/new": ADMIN,
  "POST /tag/update": ADMIN,
  "POST /tag/delete": ADMIN,
  "POST /tag/info": READ_ALL,
  "GET /tag/list": READ_ALL,
  "GET /tag/daily/activity": READ_ALL,
  "GET /tag/daily/activity/aggregated": READ_ALL,
  "POST /budget/new": ADMIN,
  "POST /budget/update": ADMIN,
  "POST /budget/delete": ADMIN,
  "POST /budget/info": READ_ALL,
  "GET /budget/list": READ_ALL,

  "GET /guardrails/list": ANY_KEY,
  "POST /guardrails/apply_guardrail": CALL,

  "GET /me/usage": ANY_KEY,
  "GET /me/calls": ANY_KEY,
  "GET /refusals": READ,
  "POST /model/new": TEAM,
  "POST /model/update": TEAM,
  "PATCH /model/:model_id/update": TEAM,
  "POST /model/delete": TEAM,
  "POST /model/block": ADMIN,
  "POST /model/unblock": ADMIN,
  "GET /model/statistics": READ_ALL,
  "GET /model/history": READ_ALL,
  "GET /model/info": ANY_KEY,
  "GET /v2/model/info": ANY_KEY,
  "GET /model_group/info": ANY_KEY,

  "POST /credentials": ADMIN,
  "GET /credentials": READ_ALL,
  "GET /credentials/by_name/:credential_name": READ_ALL,
  "GET /credentials/by_model/:model_id": READ_ALL,
  "PATCH /credentials/:credential_name": ADMIN,
  "DELETE /credentials/:credential_name": ADMIN,
  "POST /access_group/new": ADMIN,
  "GET /access_group/list": READ_ALL,
  "GET /access_group/:access_group/info": READ_ALL,
  "PUT /access_group/:access_group/update": ADMIN,
  "DELETE /access_group/:access_group/delete": ADMIN,
  "POST /v1/access_group": ADMIN,
  "GET /v1/access_group": READ_ALL,
  "GET /v1/access_group/:access_group_id": READ_ALL,
  "PUT /v1/access_group/:access_group_id": ADMIN,
  "DELETE /v1/access_group/:access_group_id": ADMIN,

  "GET /spend/logs": READ_TEAM_KEYS,
  "GET /spend/logs/v2": READ_TEAM_KEYS,
  "GET /spend/calls": READ_TEAM_KEYS,
  "GET /spend/calls/:request_id": READ_TEAM_KEYS,
  "GET /spend/calls/:request_id/prompt": READ_TEAM_KEYS,
  "GET /spend/keys": READ_ALL,
  "GET /spend/users": READ_ALL,
  "GET /spend/tags": READ_ALL,
  "POST /spend/calculate": ANY_KEY,
  "GET /spend/check": READ_ALL,
  "GET /notices": READ_ALL,
  "GET /audit": READ_ALL,
  "GET /global/spend": READ_ALL,
  "GET /global/spend/logs": READ_ALL,
  "GET /global/spend/keys": READ_ALL,
  "GET /global/spend/models": READ_ALL,
  "GET /global/spend/teams": READ_ALL,
  "GET /global/spend/tags": READ_ALL,
  "GET /global/spend/provider": READ_ALL,
  "GET /global/spend/report": READ_ALL,
  "GET /global/activity": READ_ALL,
  "GET /global/activity/model": READ_ALL,
  "GET /global/activity/cache_hits": READ_ALL,

  "GET /health": READ_ALL,
  "GET /health/services": READ_ALL,
  "POST /health/test_connection": TEAM,
  "GET /metrics": READ_ALL,
  "GET /cache/ping": READ_ALL,
  "GET /cache/redis/info": READ_ALL,
  "POST /cache/delete": ADMIN,
  "POST /cache/flushall": ADMIN,
  "POST /config/check": ADMIN,
  "POST /config/reload": ADMIN,
  "GET /instances": READ_ALL,
  "POST /instances/forget": ADMIN,
} as const satisfies Readonly<Record<string, Rule>>;

/** Method and pattern of a route that needs a key, such as `POST /key/generate`. */
export type RouteName = keyof typeof POLICY;

export const ROUTE_NAMES = Object.keys(POLICY) as readonly RouteName[];

export function ruleOf(route: RouteName): Rule {
  return POLICY[route];
}

/** Routes that another route's name in `team_member_permissions` opens too. */
const PERMITTED_WITH: ReadonlyMap<string, string> = new Map([
  ["/v2/key/info", "/key/info"],
  ["/key/usage", "/key/info"],
  ["/spend/logs/v2", "/spend/logs"],
  ["/spend/calls", "/spend/logs"],
  ["/spend/calls/:request_id", "/spend/logs"],
  ["/spend/calls/:request_id/prompt", "/spend/logs"],
  ["/team/daily/activity/aggregated", "/team/daily/activity"],
  ["/team/key/bulk_update", "/key/update"],
]);

/** Whether `team_member_permissions` name a route, by the path of its pattern. LiteLLM writes `:key` as `{key_id}`. */
export function isPermitted(
  permissions: readonly string[] | undefined,
  path: string,
): boolean {
  const named = PERMITTED_WITH.get(path) ?? path;
  return (
    permissions?.some((one) => one.replace("{key_id}", ":key") === named) ??
    false
  );
}

/** Whether a role may use a route at all, given its part in any team. */
export function mayUseRoute(
  { reach, teamAdmin, teamUser }: Rule,
  role: Role,
  part: { readonly adminOfATeam: boolean; readonly memberOfATeam: boolean },
): boolean {
  if (reach[role] !== "none") {
    return true;
  }
  // A viewer of everything changes nothing, whatever its teams are.
  if (role === "proxy_admin_viewer") {
    return false;
  }
  return (
    (teamAdmin && part.adminOfATeam) ||
    (teamUser !== "never" && part.memberOfATeam)
  );
}

/** The roles that may use a route, for the error message. */
export function whoMay({ reach, teamAdmin, teamUser }: Rule): string {
  const roles: string[] = Object.entries(reach)
    .filter(([, whose]) => whose !== "none")
    .map(([role, whose]) =>
      whose === "organization"
        ? `${role} of its organization`
        : whose === "own"
          ? `${role} for its own`
          : role,
    );
  if (teamAdmin) {
    roles.push("admin of its team");
  }
  if (teamUser === "always") {
    roles.push("member of its team");
  }
  if (teamUser === "permitted") {
    roles.push("member whose team_member_permissions name this route");
  }
  return roles.length === 1
    ? (roles[0] ?? "")
    : `${roles.slice(0, -1).join(", ")} or ${roles.at(-1)}`;
}
