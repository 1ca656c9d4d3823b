import type { Actor } from "../access/actor.ts";
import type { Client, Pool } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import type { Admin } from "./admin-route.ts";
import { MEMBER } from "./kinds/member.ts";
import { create } from "./payers.ts";
import { usersWithinReach } from "./user-access.ts";

/**
 * Whether the caller may accept that keys of a team spend a user's own budget: a proxy admin, an admin of the team's
 * organization for users who belong to its organizations only, and the user itself with a personal key without limits.
 */
export async function mayAccept(
  actor: Actor,
  from: Pool | Client,
  { team_id: teamId, user_id: userId }: Row,
): Promise<boolean> {
  if (actor.role === "proxy_admin") {
    return true;
  }
  if (
    actor.userId !== null &&
    actor.userId === userId &&
    actor.within === null &&
    actor.restrictedBy === "nothing"
  ) {
    return true;
  }
  return (
    actor.organizationTeams.has(String(teamId)) &&
    (await usersWithinReach(actor, from, [userId])).has(String(userId))
  );
}

/** Creates a membership, accepted if its creator may accept it; null if `ifNew` and it exists. */
export async function createMember(
  admin: Admin,
  client: Client,
  member: Row,
  ifNew = false,
): Promise<Row | null> {
  const accepted = await mayAccept(admin.actor, client, member);
  return create(admin, client, MEMBER, { ...member, accepted }, ifNew);
}
