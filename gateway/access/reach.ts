import { CallError } from "../http/errors.ts";
import type { Actor } from "./actor.ts";
import { whoMay, type Rule } from "./policy.ts";

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
  const part =
    object.teamId == null ? undefined : actor.teams.get(object.teamId);
  if (part === undefined) {
    return false;
  }
  if (rule.teamAdmin && part === "admin") {
    return true;
  }
  if (rule.teamUser === "always") {
    return true;
  }
  return (
    rule.teamUser === "permitted" &&
    object.userId === actor.userId &&
    isPermitted(actor.permissions.get(object.teamId ?? ""), path)
  );
}

/** `/key/:key/regenerate` is `/key/{key_id}/regenerate` for LiteLLM. */
function isPermitted(
  permissions: readonly string[] | undefined,
  path: string,
): boolean {
  return (
    permissions?.some((one) => one.replace("{key_id}", ":key") === path) ??
    false
  );
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
  path = "",
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
