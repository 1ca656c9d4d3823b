import type { IncomingHttpHeaders } from "node:http";
import { query, type Pool } from "../database/pool.ts";
import { CallError } from "../http/errors.ts";
import { utf8Text } from "./acting-user.ts";
import type { Caller, KeyCaller, PayerLimits } from "./callers.ts";
import { mayUseRoute, whoMay, type RouteName, type Rule } from "./policy.ts";
import { ACTING_KEY_TYPE, keyAllowsRoute } from "./key-routes.ts";
import { roleNamed, roleOfSharedKey, roleWith, type Role } from "./roles.ts";

/** The caller of an admin route, with its memberships. */
export interface Actor {
  /** For the audit log. */
  readonly name: string;
  readonly role: Role;
  readonly userId: string | null;
  /** The hash of the caller's key; null for the master key. */
  readonly token: string | null;
  /**
   * A restricted key may not create unrestricted keys. One restricted by its `key_type` alone still manages the keys of
   * teams that it administers.
   */
  readonly restrictedBy: "nothing" | "key_type" | "limits";
  /** Where the rights below and objects with its user's id count for it; null: everywhere. */
  readonly within: Within | null;
  readonly teams: ReadonlyMap<string, "admin" | "user">;
  /** `team_member_permissions` of those teams. */
  readonly permissions: ReadonlyMap<string, readonly string[]>;
  /** Organizations that it administers, and their teams. */
  readonly organizations: ReadonlySet<string>;
  readonly organizationTeams: ReadonlySet<string>;
  /** Organizations that it is a member of. */
  readonly memberOf: ReadonlySet<string>;
}

/**
 * The team, else the organization, that a key belongs to. Their admins can take over such a key, so it has the rights of
 * its user there and nowhere else.
 */
type Within =
  { readonly team_id: string } | { readonly organization_id: string };

const EMPTY = {
  teams: new Map(),
  permissions: new Map(),
  organizations: new Set<string>(),
  organizationTeams: new Set<string>(),
  memberOf: new Set<string>(),
} as const;

/** Reads the memberships of a caller; throws {@link CallError} 403 when it may not use the route. */
export async function actorFor(
  pool: Pool,
  caller: Caller,
  headers: IncomingHttpHeaders,
  route: RouteName,
  rule: Rule,
): Promise<Actor> {
  if (caller.kind === "master") {
    return masterActor(caller.userId, headers);
  }
  if (
    !keyAllowsRoute(caller, rule, route.slice(route.indexOf(" ") + 1)) &&
    rule.kind !== "any"
  ) {
    throw new CallError(
      "permission_denied",
      `This key may not use ${route}: its key_type or allowed_routes do not include it.`,
    );
  }
  const actor = await keyActor(pool, caller, headers);
  const part = {
    adminOfATeam: [...actor.teams.values()].includes("admin"),
    memberOfATeam: actor.teams.size > 0,
  };
  if (!mayUseRoute(rule, actor.role, part)) {
    throw new CallError(
      "permission_denied",
      `The role ${actor.role} may not use ${route}: it is for ${whoMay(rule)}.`,
    );
  }
  return actor;
}

/** With the master key the acting person can be named. */
function authorIn(headers: IncomingHttpHeaders): string | undefined {
  const named = headers["x-hearth-changed-by"] ?? headers["litellm-changed-by"];
  return typeof named === "string" && named !== ""
    ? utf8Text(named)
    : undefined;
}

function masterActor(userId: string, headers: IncomingHttpHeaders): Actor {
  return {
    ...EMPTY,
    name: authorIn(headers) ?? userId,
    role: "proxy_admin",
    userId,
    token: null,
    restrictedBy: "nothing",
    within: null,
  };
}

interface Parts {
  readonly teams: Record<string, "admin" | "user">;
  readonly permissions: Record<string, string[]>;
  readonly organizations: Record<string, string>;
  readonly organization_teams: string[];
}

function withinOf({ team, organization }: KeyCaller): Within | null {
  if (team !== null) {
    return { team_id: team.id };
  }
  return organization === null ? null : { organization_id: organization.id };
}

/** The role that a key gives: its user's, if no admin can take the key over. */
export function roleOf(caller: KeyCaller): Role {
  const role = roleNamed(caller.user?.role);
  return withinOf(caller) === null ? role : roleOfSharedKey(role);
}

async function keyActor(
  pool: Pool,
  caller: KeyCaller,
  headers: IncomingHttpHeaders,
): Promise<Actor> {
  const { userId, token, team, organization } = caller;
  const author = caller.keyType === ACTING_KEY_TYPE ? authorIn(headers) : null;
  const role = roleOf(caller);
  const own = {
    name: author ?? userId ?? `key:${token}`,
    userId,
    token,
    restrictedBy: restrictedBy(caller),
    within: withinOf(caller),
  };
  if (userId === null) {
    return { ...EMPTY, ...own, role };
  }
  const [parts] = await query<Parts>(pool, PARTS, [
    userId,
    team?.id,
    team === null ? organization?.id : null,
  ]);
  const memberships = Object.entries(parts?.organizations ?? {});
  const organizations = new Set(
    memberships
      .filter(([, part]) => part === "org_admin")
      .map(([organization]) => organization),
  );
  return {
    ...own,
    role: roleWith(role, organizations.size > 0),
    teams: new Map(Object.entries(parts?.teams ?? {})),
    permissions: new Map(Object.entries(parts?.permissions ?? {})),
    organizations,
    organizationTeams: new Set(parts?.organization_teams),
    memberOf: new Set(memberships.map(([organization]) => organization)),
  };
}

/** The memberships of a user; with $2 in that team only, with $3 in that organization only. */
const PARTS = `
  WITH in_teams AS (
      SELECT m.team_id, m.role, t.team_member_permissions FROM team_members m JOIN teams t USING (team_id)
        WHERE m.user_id = $1 AND ($2::text IS NULL OR m.team_id = $2) AND ($3::text IS NULL OR t.organization_id = $3)),
    in_organizations AS (
      SELECT organization_id, role FROM organization_members
        WHERE user_id = $1 AND $2::text IS NULL AND ($3::text IS NULL OR organization_id = $3))
  SELECT
    (SELECT coalesce(json_object_agg(team_id, role), '{}') FROM in_teams) AS teams,
    (SELECT coalesce(json_object_agg(team_id, team_member_permissions), '{}') FROM in_teams) AS permissions,
    (SELECT coalesce(json_object_agg(organization_id, role), '{}') FROM in_organizations) AS organizations,
    (SELECT coalesce(array_agg(team_id), '{}') FROM teams JOIN in_organizations o USING (organization_id)
       WHERE o.role = 'org_admin') AS organization_teams`;

export function administersTeam(actor: Actor, teamId: string): boolean {
  return (
    actor.teams.get(teamId) === "admin" || actor.organizationTeams.has(teamId)
  );
}

/** Teams that it manages as their admin, or as their organization's. */
export function administeredTeams(actor: Actor): readonly string[] {
  const teams = [...actor.teams]
    .filter(([, part]) => part === "admin")
    .map(([team]) => team);
  return [...teams, ...actor.organizationTeams];
}

function restrictedBy(caller: KeyCaller): Actor["restrictedBy"] {
  const { limits, modelLimits, models, allowedRoutes, expires, tags } = caller;
  const { guardrails } = caller;
  const isLimited =
    hasLimit(limits) ||
    modelLimits.size > 0 ||
    models.length > 0 ||
    allowedRoutes.length > 0 ||
    tags.length > 0 ||
    guardrails.length > 0 ||
    expires !== null;
  if (isLimited) {
    return "limits";
  }
  return caller.keyType === "default" || caller.keyType === ACTING_KEY_TYPE
    ? "nothing"
    : "key_type";
}

function hasLimit(limits: PayerLimits): boolean {
  return (
    limits.maxBudget !== null ||
    limits.tokensPerMinute !== null ||
    limits.requestsPerMinute !== null ||
    limits.parallel !== null
  );
}
