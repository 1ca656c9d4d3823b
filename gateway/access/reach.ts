import { CallError } from "../http/errors.ts";
import type { Actor } from "./actor.ts";
import { isPermitted, whoMay, type Rule } from "./policy.ts";

/** The facts that decide whether an object is within reach. */
export interface ObjectFacts {
  /** Names the object in a denial: `key sk-...abcd`, `team t1`. */
  readonly what: string;
  readonly token?: string | null;
  readonly userId?: string | null;
  readonly teamId?: string | null;
  readonly organizationId?: string | null;
}

/** Whether a route reaches an object for an actor. `route` is what `team_member_permissions` names. */
export function reaches(
  actor: Actor,
  rule: Rule,
  object: ObjectFacts,
  path = "",
): boolean {
  const reach = rule.reach[actor.role];
  if (reach === "all") {
    return true;
  }
  if (actor.role === "proxy_admin_viewer") {
    return false;
  }
  if (reach === "organization" && isOfOrganization(actor, object)) {
    return true;
  }
  if (reach !== "none" && isOwn(actor, rule, object)) {
    return true;
  }
  return object.teamId != null && reachesTeam(actor, rule, object.teamId, path);
}

/** Whether a route reaches the objects of a team for an actor, because of its part in it. */
function reachesTeam(
  { teams, permissions, within }: Actor,
  { teamAdmin, teamUser }: Rule,
  teamId: string,
  path: string,
): boolean {
  const part = teams.get(teamId);
  if (teamAdmin && part === "admin") {
    return true;
  }
  switch (teamUser) {
    case "always":
      return (
        part !== undefined ||
        (within !== null && "team_id" in within && within.team_id === teamId)
      );
    case "permitted":
      return part !== undefined && isPermitted(permissions.get(teamId), path);
    case "never":
      return false;
  }
}

/** The teams whose objects a route reaches for an actor. */
export function reachedTeams(
  actor: Actor,
  rule: Rule,
  path: string,
): readonly string[] {
  const named = [
    ...actor.teams.keys(),
    ...(actor.within !== null && "team_id" in actor.within
      ? [actor.within.team_id]
      : []),
  ];
  return [
    ...new Set(named.filter((team) => reachesTeam(actor, rule, team, path))),
    ...actor.organizationTeams,
  ];
}

function isOfOrganization(actor: Actor, object: ObjectFacts): boolean {
  return (
    (object.organizationId != null &&
      actor.organizations.has(object.organizationId)) ||
    (object.teamId != null && actor.organizationTeams.has(object.teamId))
  );
}

/**
 * The caller's own objects: its key (to read), objects with its user id where its key counts, its organizations.
 * Changes of a team's key follow the team's rules.
 */
function isOwn(actor: Actor, rule: Rule, object: ObjectFacts): boolean {
  const changes = rule.kind === "management";
  if (!changes && object.token != null && object.token === actor.token) {
    return true;
  }
  if (
    object.userId != null &&
    object.userId === actor.userId &&
    isWithin(actor, object) &&
    !(changes && object.teamId != null)
  ) {
    return true;
  }
  return (
    !changes &&
    object.organizationId != null &&
    object.userId === undefined &&
    object.teamId === undefined &&
    actor.memberOf.has(object.organizationId)
  );
}

function isWithin({ within }: Actor, object: ObjectFacts): boolean {
  if (within === null) {
    return true;
  }
  return "team_id" in within
    ? object.teamId === within.team_id
    : object.organizationId === within.organization_id;
}

/** Throws 403 with who may, for an object that is out of reach. */
export function refuseUnlessReached(
  actor: Actor,
  rule: Rule,
  object: ObjectFacts,
  path: string,
): void {
  if (!reaches(actor, rule, object, path)) {
    throw outOfReach(rule, object.what);
  }
}

export function outOfReach(rule: Rule, what: string): CallError {
  return new CallError(
    "permission_denied",
    `This key may not ${rule.kind === "management" ? "change" : "read"} ${what}: that is for ${whoMay(rule)}.`,
  );
}
