import type { Actor } from "../access/actor.ts";
import type { Admin } from "./admin-route.ts";
import { conditions, type Conditions } from "./paging.ts";

/** Columns of a statement that name the owner of a row. */
interface OwnerColumns {
  /** `l.` where the table has an alias. */
  readonly prefix?: string;
  readonly key: "token" | "api_key";
}

/**
 * Keeps the rows that the caller may see: of its key under all the hashes in `tokens`, of its user as far as its key
 * reaches, of organizations that it administers, and of teams within reach of the route.
 */
export function keepReachable(
  filter: Conditions,
  { actor, teams }: Pick<Admin, "actor" | "teams">,
  { prefix = "", key }: OwnerColumns,
  tokens: readonly string[],
): void {
  const own = [
    `${prefix}user_id = ${filter.bind(actor.userId)}`,
    ...within(filter, actor, prefix),
  ];
  const keys = filter.bind(tokens);
  const organizations = filter.bind([...actor.organizations]);
  filter.and(
    `((${own.join(" AND ")}) OR ${prefix}${key} = ANY(${keys})
      OR ${prefix}organization_id = ANY(${organizations}) OR ${prefix}team_id = ANY(?))`,
    teams,
  );
}

function within(
  filter: Conditions,
  { within }: Actor,
  prefix: string,
): readonly string[] {
  if (within === null) {
    return [];
  }
  if ("team_id" in within) {
    return [`${prefix}team_id = ${filter.bind(within.team_id)}`];
  }
  const id = filter.bind(within.organization_id);
  return [
    `(${prefix}organization_id = ${id} OR ${prefix}team_id IN (SELECT t.team_id FROM teams t WHERE t.organization_id = ${id}))`,
  ];
}

/** The keys that the caller may see. */
export function reachableKeys(admin: Admin): Conditions {
  const filter = conditions();
  const { actor } = admin;
  if (!admin.reachesAll) {
    keepReachable(
      filter,
      admin,
      { key: "token" },
      actor.token === null ? [] : [actor.token],
    );
  }
  return filter;
}

/** The teams that the caller may see. */
export function reachableTeams({
  actor,
  reachesAll,
  teams,
}: Admin): Conditions {
  const filter = conditions();
  if (!reachesAll) {
    filter.and("team_id = ANY(?)", [...actor.teams.keys(), ...teams]);
  }
  return filter;
}
