import type { Actor } from "../access/actor.ts";
import { query, type Client, type Pool } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import type { Admin } from "./admin-route.ts";
import { MEMBER } from "./kinds/member.ts";
import { create } from "./payers.ts";

/**
 * Whether the caller may accept that keys of a team spend a user's own budget: a proxy admin, an admin of the team's
 * organization for its members, and the user itself with a personal key without limits.
 */
export async function mayAccept(
  { role, userId, within, restrictedBy, organizations }: Actor,
  from: Pool | Client,
  member: Row,
): Promise<boolean> {
  if (role === "proxy_admin") {
    return true;
  }
  if (
    userId !== null &&
    userId === member["user_id"] &&
    within === null &&
    restrictedBy === "nothing"
  ) {
    return true;
  }
  const shared = await query(
    from,
    `SELECT FROM teams t JOIN organization_members m USING (organization_id)
       WHERE t.team_id = $1 AND m.user_id = $2 AND t.organization_id = ANY($3)`,
    [member["team_id"], member["user_id"], [...organizations]],
  );
  return shared.length > 0;
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
