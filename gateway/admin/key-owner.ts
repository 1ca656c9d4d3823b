import { ruleOf } from "../access/policy.ts";
import { administersTeam } from "../access/actor.ts";
import { outOfReach, refuseUnlessReached } from "../access/reach.ts";
import { outranks, roleNamed, roleWith } from "../access/roles.ts";
import { query, type Client, type Pool } from "../database/pool.ts";
import { findRows, type Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { Admin } from "./admin-route.ts";
import { rejectUnknownGuardrails } from "./guardrail-names.ts";
import { findKey } from "./key-tokens.ts";
import type { KeyFields } from "./kinds/key.ts";
import { LIMITS } from "./kinds/limits.ts";
import { MEMBER } from "./kinds/member.ts";
import { TEAM } from "./kinds/team.ts";
import { USER } from "./kinds/user.ts";
import { changesMetadata } from "./metadata.ts";
import { create, findOne } from "./payers.ts";
import { usersWithinReach } from "./user-access.ts";

/** A key as errors name it, and its owners: its user, its team and that team's organization, else its own organization. */
interface KeyFacts {
  readonly what: string;
  readonly token: string;
  readonly userId: string | null;
  readonly teamId: string | null;
  readonly organizationId: string | null;
}

export async function keyFacts(
  from: Pool | Client,
  row: Row,
): Promise<KeyFacts> {
  return keyFactsIn(row, await organizationsOf(from, [row]));
}

/** Those of several keys that the caller reaches. */
export async function keysWithinReach(
  { pool, reaches }: Admin,
  rows: readonly Row[],
  from: Pool | Client = pool,
): Promise<readonly Row[]> {
  const organizations = await organizationsOf(from, rows);
  return rows.filter((row) => reaches(keyFactsIn(row, organizations)));
}

type Organizations = ReadonlyMap<string, string | null>;

/** The organizations of the teams of keys, by team. */
async function organizationsOf(
  from: Pool | Client,
  rows: readonly Row[],
): Promise<Organizations> {
  const teams = rows.map((row) => row["team_id"]).filter((id) => id != null);
  if (teams.length === 0) {
    return new Map();
  }
  const found = await query<{
    team_id: string;
    organization_id: string | null;
  }>(
    from,
    "SELECT team_id, organization_id FROM teams WHERE team_id = ANY($1)",
    [[...new Set(teams)]],
  );
  return new Map(found.map((team) => [team.team_id, team.organization_id]));
}

function keyFactsIn(row: Row, organizations: Organizations): KeyFacts {
  const teamId = (row["team_id"] as string | null | undefined) ?? null;
  const own = row["organization_id"] as string | null | undefined;
  return {
    what: `key ${String(row["key_name"])}`,
    token: String(row["token"]),
    userId: (row["user_id"] as string | null | undefined) ?? null,
    teamId,
    organizationId: (teamId === null ? own : organizations.get(teamId)) ?? null,
  };
}

const OWNER_FIELDS = ["user_id", "team_id", "organization_id"];

/** Throws 403 for fields that the caller may not set on a key within its reach, 404 for an unknown team. */
export async function denyChanges(
  admin: Admin,
  before: Row,
  fields: Row,
): Promise<void> {
  denySpecialRights(admin, fields, before);
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
  const changed = (field: string) =>
    after[field] !== before[field] || changesMetadata(field, before, fields);
  denyTokenKey(admin, before, OWNER_FIELDS.some(changed));
  await denyAdminsFields(admin, before, changed);
  if (OWNER_FIELDS.some(changed)) {
    await denyOwner(admin, after);
  }
}

/**
 * Throws 403 for changes of a key that counts a trusted issuer's tokens, unless by an admin: its holder would change what
 * the issuer decides. Its owners are those that the tokens name, so not even an admin changes them.
 */
export function denyTokenKey(
  { reachesAll }: Pick<Admin, "reachesAll">,
  row: Row,
  changesOwner = false,
): void {
  if (row["jwt_issuer"] == null || (reachesAll && !changesOwner)) {
    return;
  }
  throw new CallError(
    "permission_denied",
    `The key ${String(row["key_alias"])} counts calls with tokens of ${String(row["jwt_issuer"])}: ${changesOwner ? "its tokens name its user, team and organization" : "only a proxy_admin may change or delete it"}.`,
    { param: "key" },
  );
}

/** Limits of a key that bind those who use it. */
const LIMIT_FIELDS = [
  ...Object.keys(LIMITS),
  "model_max_budget",
  "model_rpm_limit",
  "model_tpm_limit",
  "temp_budget_increase",
  "temp_budget_expiry",
  "guardrails",
];

/** Throws 403 for fields that a plain member may not change on the team's keys, as in LiteLLM: limits and owners. */
async function denyAdminsFields(
  admin: Admin,
  before: Row,
  changed: (field: string) => boolean,
): Promise<void> {
  const field = [...OWNER_FIELDS, ...LIMIT_FIELDS].find(changed);
  if (
    field !== undefined &&
    isPlainMember(admin, await keyFacts(admin.pool, before))
  ) {
    throw new CallError(
      "permission_denied",
      `A member of a team may not change \`${field}\` of its keys: ask an admin of the team.`,
      { param: field },
    );
  }
}

/** Whether the caller reaches a key of a team only as one of its members. */
function isPlainMember(
  { actor, reachesAll }: Admin,
  { teamId, organizationId }: Pick<Owner, "teamId" | "organizationId">,
): boolean {
  return (
    !reachesAll &&
    teamId !== null &&
    !administersTeam(actor, teamId) &&
    !actor.organizations.has(organizationId ?? "")
  );
}

/**
 * Throws 403 for a key that is out of reach. Plain members do not change keys of the team's admins, whose rights they would
 * have with such a key.
 */
export async function requireKeyReach(
  admin: Admin,
  from: Pool | Client,
  row: Row,
): Promise<void> {
  const facts = await keyFacts(from, row);
  admin.requireReach(facts);
  const { userId, teamId, what } = facts;
  if (
    admin.rule.kind !== "management" ||
    userId === null ||
    userId === admin.actor.userId ||
    !isPlainMember(admin, facts)
  ) {
    return;
  }
  const id = { team_id: teamId, user_id: userId, role: "admin" };
  if ((await findRows(from, MEMBER.table, id)).length > 0) {
    throw outOfReach(admin.rule, `${what} of an admin of team ${teamId}`);
  }
}

/**
 * Throws 403 unless the caller may create keys of the user, the team and the organization of `key`, 404 for an unknown team, and 400
 * for an organization that is not the team's.
 */
export async function denyOwner(admin: Admin, key: Row): Promise<void> {
  const { token: _, ...facts } = await keyFacts(admin.pool, key);
  admin.requireReach({ ...facts, what: describeOwner(facts) });
  if (facts.teamId !== null) {
    await findOne(admin.pool, TEAM, { team_id: facts.teamId });
  }
  rejectOtherOrganization(facts, key);
  if (!admin.reachesAll) {
    await denyHolder(admin, facts);
  }
}

/** The budget and the models of a team's organization bind all keys of the team. */
export function rejectOtherOrganization(
  { teamId, organizationId }: Pick<Owner, "teamId" | "organizationId">,
  { organization_id: named }: Row,
): void {
  const isBound = teamId !== null && organizationId !== null;
  if (isBound && named != null && named !== organizationId) {
    throw new CallError(
      "invalid_request",
      `Team ${teamId} is of organization ${organizationId}, not of ${String(named)}: leave \`organization_id\` out.`,
      { param: "organization_id" },
    );
  }
}

type Owner = Pick<KeyFacts, "userId" | "teamId" | "organizationId">;

function describeOwner({ userId, teamId, organizationId }: Owner): string {
  if (teamId !== null) {
    return `keys of team ${teamId}`;
  }
  if (organizationId !== null) {
    return `keys of organization ${organizationId}`;
  }
  return userId === null ? "keys without an owner" : `keys of user ${userId}`;
}

/** An admin of a team or an organization may create keys for its members only, and for none that have more rights. */
async function denyHolder(admin: Admin, owner: Owner): Promise<void> {
  const { actor, pool } = admin;
  const { userId, teamId, organizationId } = owner;
  if (userId === null || userId === actor.userId) {
    return;
  }
  if (isPlainMember(admin, owner)) {
    throw new CallError(
      "permission_denied",
      `A member of team ${teamId} may create keys only for itself: ask an admin of the team.`,
      { param: "user_id" },
    );
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
  await denyOthersBudget(admin, owner);
  const { user_role: given, administers } = user;
  const role = roleWith(roleNamed(given), administers);
  if (outranks(role, actor.role)) {
    throw new CallError(
      "permission_denied",
      `User ${userId} has more rights than this key: only the role ${role} may create keys for it.`,
      { param: "user_id" },
    );
  }
}

/** Throws 403 for a key outside teams, which always spends its user's own budget, of a user who has more than this organization. */
async function denyOthersBudget(
  { actor, pool }: Admin,
  { userId, teamId }: Owner,
): Promise<void> {
  if (
    teamId === null &&
    !(await usersWithinReach(actor, pool, [userId])).has(String(userId))
  ) {
    throw new CallError(
      "permission_denied",
      `User ${userId} has keys, teams or organizations that this key does not administer, and the new key would spend the user's own budget: only a proxy_admin or the user itself may create it. A key of a team spends that budget only with the user's consent.`,
      { param: "user_id" },
    );
  }
}

/** Creates the key's user if it does not exist. */
export async function createHolder(
  admin: Admin,
  client: Client,
  { user_id: userId }: KeyFields,
): Promise<void> {
  if (userId != null) {
    await create(admin, client, USER, { user_id: userId }, true);
  }
}

/** Whether the caller's key may not create or change such keys. */
function isRestricted({ actor, rule }: Admin, keys: readonly Row[]): boolean {
  if (rule.reach[actor.role] === "organization") {
    return false;
  }
  switch (actor.restrictedBy) {
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

/** Throws 403 for rights that only an admin may give a key: they would free its holder from rules that others set. */
export function denySpecialRights(
  admin: Admin,
  fields: Row,
  before: Row = fields,
): void {
  rejectUnknownGuardrails(admin, fields["guardrails"]);
  if (admin.reachesAll) {
    return;
  }
  if (isRestricted(admin, [before, { ...before, ...fields }])) {
    throw new CallError(
      "permission_denied",
      "This key has its own limits, so it may not create or change keys: use a key without limits, or ask an admin.",
    );
  }
  const organization = fields["organization_id"] as string | null | undefined;
  if (organization != null && !admin.actor.memberOf.has(organization)) {
    throw new CallError(
      "permission_denied",
      `This key may not charge organization ${organization}: only its members may.`,
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
/** The key that an argument names; throws 404, or 403 when it is out of reach. */
export async function reachableKey(
  admin: Admin,
  from: Pool | Client,
  keyOrHash: string,
): Promise<Row> {
  const row = await findKey(from, keyOrHash);
  await requireKeyReach(admin, from, row);
  return row;
}

export function denySettingSpend(admin: Admin): void {
  if (admin.reachesAll) {
    return;
  }
  throw new CallError(
    "permission_denied",
    "Only a proxy_admin may set `spend`.",
    { param: "spend" },
  );
}
