import { ruleOf } from "../access/policy.ts";
import { refuseUnlessReached } from "../access/reach.ts";
import { outranks, roleNamed, roleWith } from "../access/roles.ts";
import { query, type Client, type Pool } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { Admin } from "./admin-route.ts";
import { findKey } from "./key-tokens.ts";
import type { KeyFields } from "./kinds/key.ts";
import { TEAM } from "./kinds/team.ts";
import { USER } from "./kinds/user.ts";
import { create, findOne } from "./payers.ts";

/** What decides whose a key is: its team's and that team's organization's, else its own organization's. */
export async function keyFacts(
  from: Pool | Client,
  row: Row,
): Promise<{
  readonly what: string;
  readonly token: string;
  readonly userId: string | null;
  readonly teamId: string | null;
  readonly organizationId: string | null;
}> {
  const teamId = (row["team_id"] as string | null | undefined) ?? null;
  let organizationId = row["organization_id"] as string | null | undefined;
  if (teamId !== null) {
    const [team] = await query<{ organization_id: string | null }>(
      from,
      "SELECT organization_id FROM teams WHERE team_id = $1",
      [teamId],
    );
    organizationId = team?.organization_id;
  }
  return {
    what: `key ${String(row["key_name"])}`,
    token: String(row["token"]),
    userId: (row["user_id"] as string | null | undefined) ?? null,
    teamId,
    organizationId: organizationId ?? null,
  };
}

const OWNER_FIELDS = ["user_id", "team_id", "organization_id"];

/** Throws 403 for fields that whoever asks may not set on a key which it reaches, 404 for a team that is not there. */
export async function refuseChanges(
  admin: Admin,
  before: Row,
  fields: Row,
): Promise<void> {
  refuseSpecialRights(admin, fields, before);
  const blocked = fields["blocked"] ?? false;
  if (fields["blocked"] !== undefined && blocked !== before["blocked"]) {
    const blocking = blocked === true ? "block" : "unblock";
    refuseUnlessReached(
      admin.actor,
      ruleOf(`POST /key/${blocking}`),
      await keyFacts(admin.pool, before),
      `/key/${blocking}`,
    );
  }
  const after = { ...before, ...fields };
  if (OWNER_FIELDS.some((field) => after[field] !== before[field])) {
    await refuseOwner(admin, after);
  }
}

/** Throws 403 unless whoever asks may have keys with the user, the team and the organization of `key`, 404 for a team that is not there. */
export async function refuseOwner(admin: Admin, key: Row): Promise<void> {
  const { token: _, ...facts } = await keyFacts(admin.pool, key);
  if (facts.teamId !== null) {
    await findOne(admin.pool, TEAM, { team_id: facts.teamId });
  }
  if (admin.reachesAll) {
    return;
  }
  admin.refuse({ ...facts, what: describeOwner(facts) });
  await refuseHolder(admin, facts);
}

type Owner = Pick<
  Awaited<ReturnType<typeof keyFacts>>,
  "userId" | "teamId" | "organizationId"
>;

function describeOwner({ userId, teamId, organizationId }: Owner): string {
  if (teamId !== null) {
    return `keys of team ${teamId}`;
  }
  if (organizationId !== null) {
    return `keys of organization ${organizationId}`;
  }
  return userId === null ? "keys of nobody" : `keys of user ${userId}`;
}

/** Who looks after a team or an organization has keys of its people made, of nobody else and of nobody with more rights. */
async function refuseHolder(
  { actor, pool }: Admin,
  { userId, teamId, organizationId }: Owner,
): Promise<void> {
  if (userId === null || userId === actor.userId) {
    return;
  }
  const [user] = await query<{
    readonly user_role: string;
    readonly in_team: boolean;
    readonly in_organization: boolean;
    readonly administers: boolean;
  }>(
    pool,
    `SELECT user_role,
        EXISTS (SELECT FROM team_members m WHERE m.user_id = $1 AND m.team_id = $2) AS in_team,
        EXISTS (SELECT FROM organization_members m WHERE m.user_id = $1 AND m.organization_id = $3) AS in_organization,
        EXISTS (SELECT FROM organization_members m WHERE m.user_id = $1 AND m.role = 'org_admin') AS administers
      FROM users WHERE user_id = $1`,
    [
      userId,
      teamId,
      actor.organizations.has(organizationId ?? "") ? organizationId : null,
    ],
  );
  if (user === undefined || !(user.in_team || user.in_organization)) {
    throw new CallError(
      "permission_denied",
      teamId === null
        ? `User ${userId} is not in organization ${organizationId}. Add it with POST /organization/member_add.`
        : `User ${userId} is not in team ${teamId}. Add it with POST /team/member_add.`,
      { param: "user_id" },
    );
  }
  const { user_role: given, administers } = user;
  const role = roleWith(roleNamed(given), administers);
  if (outranks(role, actor.role)) {
    throw new CallError(
      "permission_denied",
      `User ${userId} has more rights than this key: only somebody with the role ${role} may make keys for it.`,
      { param: "user_id" },
    );
  }
}

/** A key's user is made where there is none. */
export async function makeHolder(
  admin: Admin,
  client: Client,
  { user_id: userId }: KeyFields,
): Promise<void> {
  if (userId != null) {
    await create(admin, client, USER, { user_id: userId }, true);
  }
}

/** Whether the key that asks may not make or change such keys. */
function isHeldBack({ actor, rule }: Admin, keys: readonly Row[]): boolean {
  if (rule.reach[actor.role] === "organization") {
    return false;
  }
  switch (actor.heldBackBy) {
    case "nothing":
      return false;
    case "key_type":
      return keys.some(
        ({ team_id: team }) =>
          typeof team !== "string" || actor.teams.get(team) !== "admin",
      );
    case "limits":
      return true;
  }
}

/** What only somebody with all rights may give a key: it frees its holder from rules that others set. */
export function refuseSpecialRights(
  admin: Admin,
  fields: Row,
  before: Row = fields,
): void {
  if (admin.reachesAll) {
    return;
  }
  if (isHeldBack(admin, [before, { ...before, ...fields }])) {
    throw new CallError(
      "permission_denied",
      "This key has limits of its own, so it may not make or change keys: use one without, or ask an admin.",
    );
  }
  const organization = fields["organization_id"] as string | null | undefined;
  if (organization != null && !admin.actor.memberOf.has(organization)) {
    throw new CallError(
      "permission_denied",
      `This key may not let organization ${organization} pay: only its members may.`,
      { param: "organization_id" },
    );
  }
  const metadata = fields["metadata"] as Row | null | undefined;
  if (metadata?.["allow_client_mock_response"] !== undefined) {
    throw new CallError(
      "permission_denied",
      "Only a proxy_admin may set metadata.allow_client_mock_response.",
      { param: "metadata" },
    );
  }
}
/** The key that an argument names; throws 404, 403 when it is out of reach. */
export async function reachableKey(
  admin: Admin,
  from: Pool | Client,
  keyOrHash: string,
): Promise<Row> {
  const row = await findKey(from, keyOrHash);
  admin.refuse(await keyFacts(from, row));
  return row;
}

export function refuseToSetSpend(admin: Admin): void {
  if (admin.reachesAll) {
    return;
  }
  throw new CallError(
    "permission_denied",
    "Only a proxy_admin may set `spend`.",
    { param: "spend" },
  );
}
