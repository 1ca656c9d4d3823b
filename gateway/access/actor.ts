import type { IncomingHttpHeaders } from "node:http";
import { query, type Pool } from "../db/pool.ts";
import { CallError } from "../http/errors.ts";
import type { Caller, KeyCaller, PayerLimits } from "./callers.ts";
import {
  isRole,
  keyAllowsRoute,
  mayUseRoute,
  whoMay,
  type Role,
  type RouteName,
  type Rule,
} from "./policy.ts";

/** Who asks something of an admin route, with what it is part of. */
export interface Actor {
  /** For the audit log. */
  readonly name: string;
  readonly role: Role;
  readonly userId: string | null;
  /** Of the key that asks; null for the master key. */
  readonly token: string | null;
  /** A key with limits of its own may not make keys that have none. */
  readonly restricted: boolean;
  readonly teams: ReadonlyMap<string, "admin" | "user">;
  /** `team_member_permissions` of those teams. */
  readonly permissions: ReadonlyMap<string, readonly string[]>;
  /** Organizations that it administers, and their teams. */
  readonly organizations: ReadonlySet<string>;
  readonly organizationTeams: ReadonlySet<string>;
  /** Organizations that it is a member of. */
  readonly memberOf: ReadonlySet<string>;
}

/** What decides whether an object is within somebody's reach. */
export interface ObjectFacts {
  /** Names the object in a refusal: `key sk-...abcd`, `team t1`. */
  readonly what: string;
  readonly token?: string | null;
  readonly userId?: string | null;
  readonly teamId?: string | null;
  readonly organizationId?: string | null;
}

const EMPTY = {
  teams: new Map(),
  permissions: new Map(),
  organizations: new Set<string>(),
  organizationTeams: new Set<string>(),
  memberOf: new Set<string>(),
} as const;

/** Finds out what a caller is part of; throws {@link CallError} 403 when the route is not for it. */
export async function actorFor(
  pool: Pool,
  caller: Caller,
  headers: IncomingHttpHeaders,
  route: RouteName,
  rule: Rule,
): Promise<Actor> {
  if (caller.kind === "master") return masterActor(caller.userId, headers);
  if (
    !keyAllowsRoute(caller, rule, route.slice(route.indexOf(" ") + 1)) &&
    rule.kind !== "any"
  )
    throw new CallError(
      "permission_denied",
      `This key may not use ${route}: its key_type or allowed_routes leave it out.`,
    );
  const actor = await keyActor(pool, caller);
  const part = {
    adminOfATeam: [...actor.teams.values()].includes("admin"),
    memberOfATeam: actor.teams.size > 0,
  };
  if (!mayUseRoute(rule, actor.role, part))
    throw new CallError(
      "permission_denied",
      `The role ${actor.role} may not use ${route}: it is for ${whoMay(rule)}.`,
    );
  return actor;
}

/** The holder of the master key may name the person who acts. */
function masterActor(userId: string, headers: IncomingHttpHeaders): Actor {
  const named = headers["x-hearth-changed-by"] ?? headers["litellm-changed-by"];
  return {
    ...EMPTY,
    name: typeof named === "string" && named !== "" ? named : userId,
    role: "proxy_admin",
    userId,
    token: null,
    restricted: false,
  };
}

interface Parts {
  readonly teams: Record<string, "admin" | "user">;
  readonly permissions: Record<string, string[]>;
  readonly organizations: Record<string, string>;
  readonly organization_teams: string[];
}

async function keyActor(pool: Pool, caller: KeyCaller): Promise<Actor> {
  const { userId, token, user } = caller;
  const role = user !== null && isRole(user.role) ? user.role : "internal_user";
  const own = {
    name: userId ?? `key:${token}`,
    userId,
    token,
    restricted: isRestricted(caller),
  };
  if (userId === null) return { ...EMPTY, ...own, role };
  const [parts] = await query<Parts>(
    pool,
    `SELECT
       (SELECT coalesce(json_object_agg(team_id, role), '{}') FROM team_members WHERE user_id = $1) AS teams,
       (SELECT coalesce(json_object_agg(team_id, team_member_permissions), '{}')
          FROM team_members JOIN teams USING (team_id) WHERE user_id = $1) AS permissions,
       (SELECT coalesce(json_object_agg(organization_id, role), '{}') FROM organization_members WHERE user_id = $1) AS organizations,
       (SELECT coalesce(array_agg(team_id), '{}') FROM teams JOIN organization_members m USING (organization_id)
          WHERE m.user_id = $1 AND m.role = 'org_admin') AS organization_teams`,
    [userId],
  );
  const memberships = Object.entries(parts?.organizations ?? {});
  const organizations = new Set(
    memberships
      .filter(([, part]) => part === "org_admin")
      .map(([organization]) => organization),
  );
  return {
    ...own,
    role:
      organizations.size > 0 && role.startsWith("internal_user")
        ? "org_admin"
        : role,
    teams: new Map(Object.entries(parts?.teams ?? {})),
    permissions: new Map(Object.entries(parts?.permissions ?? {})),
    organizations,
    organizationTeams: new Set(parts?.organization_teams),
    memberOf: new Set(memberships.map(([organization]) => organization)),
  };
}

function isRestricted(caller: KeyCaller): boolean {
  const { limits, modelLimits, models, allowedRoutes, expires, tags } = caller;
  return (
    hasLimit(limits) ||
    Object.keys(modelLimits).length > 0 ||
    models.length > 0 ||
    allowedRoutes.length > 0 ||
    tags.length > 0 ||
    expires !== null
  );
}

function hasLimit(limits: PayerLimits): boolean {
  return (
    limits.maxBudget !== null ||
    limits.tokensPerMinute !== null ||
    limits.requestsPerMinute !== null ||
    limits.parallel !== null
  );
}

/** Whether a route reaches an object for whoever asks. `route` is what `team_member_permissions` names. */
export function reaches(
  actor: Actor,
  rule: Rule,
  object: ObjectFacts,
  path = "",
): boolean {
  const reach = rule.reach[actor.role];
  if (reach === "all") return true;
  if (actor.role === "proxy_admin_viewer") return false;
  if (reach === "organization" && isOfOrganization(actor, object)) return true;
  if (reach !== "none" && isOwn(actor, rule, object)) return true;
  const part =
    object.teamId == null ? undefined : actor.teams.get(object.teamId);
  if (part === undefined) return false;
  if (rule.teamAdmin && part === "admin") return true;
  if (rule.teamUser === "always") return true;
  return (
    rule.teamUser === "permitted" &&
    object.userId === actor.userId &&
    (actor.permissions.get(object.teamId ?? "") ?? []).includes(path)
  );
}

function isOfOrganization(actor: Actor, object: ObjectFacts): boolean {
  return (
    (object.organizationId != null &&
      actor.organizations.has(object.organizationId)) ||
    (object.teamId != null && actor.organizationTeams.has(object.teamId))
  );
}

/** Own are one's key to look at, what bears one's user id, the organizations one is in. A team's key is the team's to change. */
function isOwn(actor: Actor, rule: Rule, object: ObjectFacts): boolean {
  const changes = rule.kind === "management";
  if (!changes && object.token != null && object.token === actor.token)
    return true;
  if (
    object.userId != null &&
    object.userId === actor.userId &&
    !(changes && object.teamId != null)
  )
    return true;
  return (
    !changes &&
    object.organizationId != null &&
    object.userId === undefined &&
    object.teamId === undefined &&
    actor.memberOf.has(object.organizationId)
  );
}

/** Throws 403 with who may, for an object that is out of reach. */
export function refuseUnlessReached(
  actor: Actor,
  rule: Rule,
  object: ObjectFacts,
  path = "",
): void {
  if (reaches(actor, rule, object, path)) return;
  throw new CallError(
    "permission_denied",
    `This key may not ${rule.kind === "management" ? "change" : "read"} ${object.what}: that is for ${whoMay(rule)}.`,
  );
}
