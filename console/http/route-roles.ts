import { includesRole, type Role } from "../../supervisor/sign-in/roles.ts";

/**
 * What a request requires: a role; `metrics` the role viewer or the token of /metrics; `sign-in` only one of the supervisor's own names
 * as Host; `public` nothing.
 */
export type Requirement = Role | "metrics" | "sign-in" | "public";

/** What the pages of keys, users and teams show to viewers, too. */
export const VIEWED_AT_GATEWAY = [
  "/instances",
  "/key/list",
  "/key/usage",
  "/model/history",
  "/model/info",
  "/model/statistics",
  "/organization/list",
  "/refusals",
  "/spend/calls",
  "/team/info",
  "/user/list",
  "/v1/models",
  "/v2/team/list",
] as const;

/** Every route of the console. Routes and buttons check this table only; whatever is not in it requires an admin. */
export const ROUTE_ROLES: Readonly<Record<string, Requirement>> = {
  "GET /healthz": "public",
  "GET /ping/:name/:how?": "public",
  "POST /ping/:name/:how?": "public",
  "GET /readyz": "metrics",
  "GET /metrics": "metrics",

  "POST /sign-in": "sign-in",
  "GET /sign-in/:token": "sign-in",
  "GET /sign-in/with/:provider": "sign-in",
  "GET /sign-in/with/:provider/callback": "sign-in",
  // The provider's server sends it, with a signed token.
  "POST /sign-in/with/:provider/logout": "public",
  "POST /theme": "sign-in",
  "POST /sign-out": "user",
  // A link signs in as an admin.
  "POST /api/sign-in-links": "admin",
  "POST /api/sign-out-all": "admin",
  // Commands sign in with tokens of the provider, which are verified.
  "GET /api/sign-in": "public",
  "POST /api/sign-in": "public",
  "DELETE /api/sign-in": "user",
  "GET /api/me": "viewer",

  "GET /": "viewer",
  // Of the signed-in person only, with that person's rights at the gateway.
  "GET /me": "user",
  "GET /me/new": "user",
  "POST /me/new": "user",
  "GET /me/:token": "user",
  "GET /me/:token/edit": "user",
  "POST /me/:token/edit": "user",
  "POST /me/:token/rotate": "user",
  "POST /me/:token/delete": "user",

  "GET /search": "viewer",
  "GET /api/status": "viewer",
  "GET /api/history": "viewer",
  "GET /api/logs/:name": "viewer",
  "GET /services/:name": "viewer",
  "POST /services/:name/check": "operator",
  "POST /services/:name/pause": "operator",
  "POST /services/:name/resume": "operator",
  "POST /services/:name/restart": "operator",
  "POST /services/:name/silence": "operator",
  "POST /services/:name/end-silence": "operator",
  "GET /api/checks/:name": "viewer",
  "POST /api/checks/:name": "operator",
  "POST /api/pause/:name": "operator",
  "POST /api/resume/:name": "operator",
  "POST /api/restart/:name": "operator",
  "POST /api/stop": "admin",
  "GET /api/maintenance": "viewer",
  "POST /api/maintenance": "operator",
  "DELETE /api/maintenance/:id": "operator",

  "GET /alerts": "viewer",
  "POST /alerts/test": "operator",
  "POST /alerts/silence": "operator",
  "POST /alerts/end-silence": "operator",
  "GET /api/alerts": "viewer",
  "POST /api/alerts/test": "operator",
  "GET /api/silences": "viewer",
  "POST /api/silences": "operator",
  "DELETE /api/silences/:id": "operator",

  "GET /jobs": "viewer",
  "GET /jobs/:name": "viewer",
  "GET /jobs/:name/:run": "viewer",
  "POST /jobs/:name/run": "operator",
  "POST /jobs/:name/stop": "operator",
  "GET /api/jobs": "viewer",
  "GET /api/jobs/:name/runs": "viewer",
  "GET /api/job-runs/:id": "viewer",
  "POST /api/jobs/:name/run": "operator",
  "POST /api/jobs/:name/stop": "operator",

  "GET /backups": "viewer",
  "GET /api/backups": "viewer",
  "GET /api/peer-copies": "viewer",
  // The other host's supervisor, with the operator password.
  "GET /api/copies": "admin",
  "GET /api/copies/:kind/:name": "admin",
  "GET /api/copies/:kind/:name/:file": "admin",
  "PUT /api/copies/:kind/:name/:file": "admin",
  "POST /api/copies/:kind/:name": "admin",

  "GET /reports": "viewer",
  "GET /reports/": "viewer",
  "GET /reports/now": "viewer",
  "GET /reports/:file": "viewer",
  "GET /api/reports/:kind": "viewer",

  "GET /spend": "viewer",
  "GET /spend.csv": "viewer",
  "GET /spend/calls": "viewer",
  "GET /spend/calls/:id": "viewer",
  // What somebody wrote.
  "GET /spend/calls/:id/prompt": "admin",
  "GET /keys": "viewer",
  "GET /keys/:token": "viewer",
  "GET /keys/new": "admin",
  "POST /keys/new": "admin",
  "GET /keys/:token/edit": "admin",
  "POST /keys/:token/edit": "admin",
  "POST /keys/:token/block": "admin",
  "POST /keys/:token/unblock": "admin",
  "POST /keys/:token/rotate": "admin",
  "POST /keys/:token/delete": "admin",
  "GET /users": "viewer",
  "GET /users/user": "viewer",
  "GET /users/new": "admin",
  "POST /users/new": "admin",
  "GET /users/edit": "admin",
  "POST /users/edit": "admin",
  "POST /users/block": "admin",
  "POST /users/unblock": "admin",
  "POST /users/delete": "admin",
  // The same for commands: the gateway's admin API, with the master key.
  "GET /api/gateway": "viewer",
  ...viewedAtGateway(),
  "GET /api/gateway/*": "admin",
  "POST /api/gateway/*": "admin",
  "PATCH /api/gateway/*": "admin",
  "GET /teams": "viewer",
  "GET /teams/team": "viewer",
  "GET /teams/new": "admin",
  "POST /teams/new": "admin",
  "GET /teams/edit": "admin",
  "POST /teams/edit": "admin",
  "POST /teams/block": "admin",
  "POST /teams/unblock": "admin",
  "POST /teams/delete": "admin",
  "GET /teams/member": "admin",
  "POST /teams/member": "admin",
  "POST /teams/add-member": "admin",
  "POST /teams/remove-member": "admin",

  "GET /audit": "viewer",
  "GET /audit.csv": "viewer",
  "GET /invitations": "viewer",
  "POST /invitations": "admin",
  "POST /invitations/:id/revoke": "admin",
  "GET /api/invitations": "viewer",
  "POST /api/invitations": "admin",
  "DELETE /api/invitations/:id": "admin",
  // The link has a token; opening it changes nothing.
  "GET /invitation/:token": "sign-in",
  "POST /invitation/:token": "sign-in",

  "GET /models": "viewer",
  "GET /models/model": "viewer",
  "GET /models/:name": "viewer",
  "POST /models/test": "operator",
  "GET /models/new": "admin",
  "POST /models/new": "admin",
  "POST /models/discover": "admin",
  "POST /models/supply": "admin",
  "POST /models/switch-off": "admin",
  "POST /models/switch-on": "admin",
  "POST /models/delete": "admin",
  "GET /playground": "viewer",
  // With a key that the viewer types, which pays and decides; otherwise it requires the role of the session's route.
  "POST /playground": "viewer",
  "POST /playground/answer": "viewer",
  // With the master key.
  "POST /playground/session": "operator",
  "GET /playground/calls/:id": "viewer",

  "GET /notes": "viewer",
  "POST /notes": "operator",
  "GET /notes/*": "viewer",
  "GET /notes/:vault": "viewer",
  "GET /notes/:vault/history": "viewer",
  "POST /notes/:vault/history": "operator",
  "POST /notes/:vault/setup-uri": "operator",
  "POST /notes/:vault/rotate": "operator",
  "POST /notes/:vault/resolve": "operator",
  "POST /notes/:vault/restore-seed": "operator",
  "POST /notes/:vault/remove": "operator",
  "GET /api/notes": "viewer",
  "POST /api/notes": "operator",
  "GET /api/notes/*": "viewer",
  "POST /api/notes/*": "operator",
  "GET /api/notes/backups": "viewer",
  "GET /api/notes/:vault/conflicts": "viewer",
  "GET /api/notes/:vault/growth": "viewer",
  "GET /api/notes/:vault/devices": "viewer",
  "POST /api/notes/:vault/setup-uri": "operator",
  "POST /api/notes/:vault/rotate": "operator",
  "POST /api/notes/:vault/remove": "operator",
  "POST /api/notes/:vault/restore-seed": "operator",
  "POST /api/notes/:vault/resolve": "operator",
  "POST /api/notes/:vault/collect": "operator",
  "GET /api/notes/:vault/history": "viewer",
  "GET /api/notes/:vault/history/space": "viewer",
  "GET /api/notes/:vault/history/notes": "viewer",
  "GET /api/notes/:vault/history/held": "viewer",
  "GET /api/notes/:vault/history/versions": "viewer",
  "GET /api/notes/:vault/history/changes": "viewer",
  // Reads chunks by a list of ids that is too long for an address.
  "POST /api/notes/:vault/history/chunks": "viewer",
  "POST /api/notes/:vault/history/write": "operator",
};

function viewedAtGateway(): Readonly<Record<string, Requirement>> {
  return Object.fromEntries(
    VIEWED_AT_GATEWAY.map((path) => [`GET /api/gateway${path}`, "viewer"]),
  );
}

/** What a route requires; `url` is its pattern, undefined for an unknown path. */
export function requirementOf(
  method: string,
  url: string | undefined,
): Requirement {
  if (url === undefined) {
    return "user";
  }
  return ROUTE_ROLES[routeName(method, url)] ?? "admin";
}

/** HEAD requests are answered by the route for GET. */
export function routeName(method: string, url: string): string {
  return `${method === "HEAD" ? "GET" : method} ${url}`;
}

interface Row {
  readonly matches: (path: string) => boolean;
  readonly requirement: Requirement;
}

const ROWS_BY_METHOD = new Map<string, Row[]>();
for (const [route, requirement] of Object.entries(ROUTE_ROLES)
  // A fixed part takes precedence over a parameter, as in the router.
  .toSorted(([a], [b]) => parametersIn(a) - parametersIn(b))) {
  const [method = "", pattern = ""] = route.split(" ");
  const rows = ROWS_BY_METHOD.get(method) ?? [];
  const expression = patternOf(pattern);
  rows.push({ matches: (path) => expression.test(path), requirement });
  ROWS_BY_METHOD.set(method, rows);
}

/** Whether a role may use a button or link of a page, by its address. False without a role. */
export function mayRequest(
  role: Role | null,
  method: "GET" | "POST",
  address: string,
): boolean {
  if (role === null) {
    return false;
  }
  const [path = ""] = address.split(/[?#]/);
  const row = ROWS_BY_METHOD.get(method)?.find(({ matches }) => matches(path));
  const requirement = row?.requirement ?? "admin";
  switch (requirement) {
    case "public":
    case "sign-in":
      return true;
    case "metrics":
      return includesRole(role, "viewer");
    case "user":
    case "viewer":
    case "operator":
    case "admin":
      return includesRole(role, requirement);
  }
}

function parametersIn(route: string): number {
  return route.match(/:|\*/g)?.length ?? 0;
}

function patternOf(pattern: string): RegExp {
  const source = pattern
    .replace(/\/:\w+\?/g, "(?:/[^/]*)?")
    .replace(/:\w+/g, "[^/]+")
    .replace("*", ".*");
  return new RegExp(`^${source}$`);
}
