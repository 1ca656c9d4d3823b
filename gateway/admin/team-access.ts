import { allows, NO_MODELS } from "../access/models.ts";
import type { Client, Pool } from "../database/pool.ts";
import { findRows, type Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { Admin } from "./admin-route.ts";
import { changesMetadata } from "./metadata.ts";
import { ORGANIZATION } from "./kinds/organization.ts";
import { TEAM } from "./kinds/team.ts";
import { findOne, unknown } from "./payers.ts";

/**
 * The team that a request names; throws 403 when it is out of reach, whether or not it exists, else 404. `what` names it in
 * a denial.
 */
export async function reachableTeam(
  admin: Admin,
  from: Pool | Client,
  teamId: string,
  what = `team ${teamId}`,
): Promise<Row> {
  const [team] = await findRows(from, TEAM.table, { team_id: teamId });
  admin.requireReach({
    what,
    teamId,
    organizationId: team?.["organization_id"] as string | null | undefined,
  });
  if (team === undefined) {
    throw unknown(TEAM, teamId);
  }
  return team;
}

/** Whether the caller has the rights of those who pay for a team, not only those of its admin. */
export function paysFor(admin: Admin, team: Row): boolean {
  const { actor } = admin;
  return (
    admin.reachesAll ||
    actor.organizations.has(String(team["organization_id"])) ||
    actor.organizationTeams.has(String(team["team_id"]))
  );
}

export function denyOtherFields(before: Row, fields: Row): void {
  const changed = Object.keys({ ...TEAM.fields, ...fields }).filter(
    (field) =>
      fields[field] !== undefined || changesMetadata(field, before, fields),
  );
  const other = changed.find(
    (field) => TEAM.fields[field]?.byTeamAdmin !== true,
  );
  if (other !== undefined) {
    throw new CallError(
      "permission_denied",
      `A team's admin may not set \`${other}\`: only a proxy_admin or an org_admin of its organization may.`,
      { param: other },
    );
  }
}

/** Throws 403 for models that the team's organization does not have; an empty list means all of the organization's. */
export async function denyModels(
  admin: Admin,
  team: Row,
  from: Pool | Client = admin.pool,
): Promise<void> {
  const id = team["organization_id"] as string | null | undefined;
  const models = (team["models"] ?? []) as readonly string[];
  if (admin.reachesAll || id == null || models.length === 0) {
    return;
  }
  const organization = await findOne(from, ORGANIZATION, {
    organization_id: id,
  });
  const allowed = organization["models"] as readonly string[];
  const other = models.find(
    (model) => model !== NO_MODELS && !allows(allowed, model),
  );
  if (other !== undefined) {
    throw new CallError(
      "permission_denied",
      `Organization ${id} is not allowed to access model ${other}. Allowed models: ${allowed.join(", ")}.`,
      { param: "models" },
    );
  }
}

/** The organization that a request names; throws 403 when it is out of reach, whether or not it exists, else 404. */
export async function reachableOrganization(
  admin: Admin,
  organizationId: string,
): Promise<Row> {
  admin.requireReach({
    what: `organization ${organizationId}`,
    organizationId,
  });
  return findOne(admin.pool, ORGANIZATION, {
    organization_id: organizationId,
  });
}

/** Throws 403 or 404 unless the organization of a new or moved team is within reach and exists. */
export async function denyOrganization(
  admin: Admin,
  organizationId: string | null | undefined,
): Promise<void> {
  if (organizationId != null) {
    await reachableOrganization(admin, organizationId);
  } else if (!admin.reachesAll) {
    throw new CallError(
      "permission_denied",
      "`organization_id` is required: an org_admin can only create teams of its own organizations.",
      { param: "organization_id" },
    );
  }
}
