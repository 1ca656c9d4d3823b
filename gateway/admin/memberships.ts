import { query, type Client, type Pool } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";

/** Teams with their members. */
export async function withMembers(
  from: Pool | Client,
  teams: readonly Row[],
): Promise<readonly Row[]> {
  const members = await query<Row & { readonly team_id: string }>(
    from,
    `SELECT m.team_id, m.user_id, u.user_email, m.role FROM team_members m JOIN users u USING (user_id)
       WHERE m.team_id = ANY($1) ORDER BY m.created_at, m.user_id`,
    [teams.map((team) => team["team_id"])],
  );
  const byTeam = Map.groupBy(members, (member) => member.team_id);
  return teams.map((team) => ({
    ...team,
    members_with_roles: (byTeam.get(String(team["team_id"])) ?? []).map(
      ({ team_id: _, ...member }) => member,
    ),
  }));
}

/** Users with the ids of their teams. */
export async function withTeams(
  from: Pool | Client,
  users: readonly Row[],
): Promise<readonly Row[]> {
  const members = await query<{ user_id: string; teams: string[] }>(
    from,
    "SELECT user_id, array_agg(team_id ORDER BY created_at, team_id) AS teams FROM team_members WHERE user_id = ANY($1) GROUP BY user_id",
    [users.map((user) => user["user_id"])],
  );
  const byUser = new Map(members.map(({ user_id, teams }) => [user_id, teams]));
  return users.map((user) => ({
    ...user,
    teams: byUser.get(String(user["user_id"])) ?? [],
  }));
}
