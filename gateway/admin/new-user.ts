import { z } from "zod";
import { MASTER_USER } from "../access/callers.ts";
import { outOfReach } from "../access/reach.ts";
import { roleOfSharedKey } from "../access/roles.ts";
import {
  query,
  transaction,
  type Client,
  type Pool,
} from "../database/pool.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { KEY, keyFields, type KeyFields } from "./kinds/key.ts";
import { teamRole } from "./kinds/member.ts";
import { ORGANIZATION_MEMBER } from "./kinds/organization.ts";
import { newUserRow, USER, userFields } from "./kinds/user.ts";
import { dollars, flag, name, names, texts } from "./kinds/values.ts";
import { insertKey } from "./new-key.ts";
import { createMember } from "./new-member.ts";
import { answerRow, create } from "./payers.ts";
import { reachableTeam } from "./team-access.ts";
import { denyAccount, denyRole, rejectTakenEmail } from "./user-access.ts";

/** A team to join, with role and budget in the team. */
const teamOfUser = z.object({
  team_id: name,
  user_role: teamRole.default("user"),
  max_budget_in_team: dollars.nullish(),
});

const newUserFields = z.object({
  ...userFields,
  user_id: name.nullish(),
  /** Also a team to join; the first key belongs to it. */
  team_id: name.nullish(),
  teams: z
    .array(z.union([name, teamOfUser]))
    .max(1_000)
    .nullish(),
  organizations: names.nullish(),
  auto_create_key: flag.nullish(),
  key_alias: keyFields.key_alias,
  duration: keyFields.duration,
  aliases: texts.nullish(),
});

/** POST /user/new: a user, with memberships and a first key. */
export const newUser = adminRoute(
  "POST /user/new",
  {
    summary: "Create a user and, unless auto_create_key is false, a first key.",
    input: newUserFields,
    answer: newUserRow,
  },
  async (admin, fields) => {
    const {
      teams: _teams,
      team_id: _team,
      organizations,
      auto_create_key: withKey,
      key_alias,
      duration,
      aliases,
      ...columns
    } = fields;
    denyRole(admin, fields.user_role);
    denyAccount(admin, fields.sso_user_id);
    if (!admin.reachesAll && fields.user_id === MASTER_USER) {
      throw outOfReach(admin.rule, `user ${MASTER_USER}`);
    }
    denyOtherOrganizations(admin, organizations ?? []);
    const teams = await teamsToJoin(admin.pool, fields);
    const owner =
      withKey === false ? {} : await ownerOfFirstKey(admin, fields, teams);
    const created = await transaction(admin.pool, async (client) => {
      await rejectTakenEmail(client, fields.user_email, null);
      const user = await create(admin, client, USER, {
        ...columns,
        user_id: fields.user_id ?? crypto.randomUUID(),
      });
      const userId = String(user?.["user_id"]);
      await join(admin, client, userId, teams, organizations ?? []);
      // The key gets no limits: those of the user apply, and the same budget on both would be enforced twice.
      const key =
        withKey === false
          ? null
          : await insertKey(
              admin,
              client,
              {
                user_id: userId,
                ...owner,
                key_alias,
                duration,
                aliases,
              },
              null,
            );
      return { user: user ?? {}, key };
    });
    const { key } = created;
    const user = await answerRow(admin, USER, created.user);
    return {
      ...(key === null ? {} : await answerRow(admin, KEY, key.row)),
      ...user,
      key: key?.key ?? null,
      token: key?.row["token"] ?? null,
      token_id: key?.row["token"] ?? null,
      key_name: key?.row["key_name"] ?? null,
      expires: key?.row["expires"] ?? null,
    };
  },
);

/** Beside the user: the team that `team_id` names, which comes last, else an organization. */
async function ownerOfFirstKey(
  admin: Admin,
  fields: z.output<typeof newUserFields>,
  teams: readonly TeamToJoin[],
): Promise<Pick<KeyFields, "team_id" | "organization_id">> {
  return fields.team_id == null
    ? { organization_id: await payerOfFirstKey(admin, fields, teams) }
    : { team_id: teams.at(-1)?.team_id };
}

/**
 * The organization of a user's first key: the user's only one. A key with rights on everything, or in teams outside the
 * organization, belongs to the user alone.
 */
async function payerOfFirstKey(
  { pool, reachesAll }: Admin,
  { organizations, user_role: given }: z.output<typeof newUserFields>,
  teams: readonly TeamToJoin[],
): Promise<string | null> {
  const [only = null, ...others] = new Set(organizations);
  if (others.length > 0) {
    if (reachesAll) {
      return null;
    }
    throw invalidParam(
      "auto_create_key",
      "must be false for several organizations: create the key with POST /key/generate and the organization that pays for it.",
    );
  }
  if (given != null && roleOfSharedKey(given) !== given) {
    return null;
  }
  const outside = await query(
    pool,
    "SELECT FROM teams WHERE team_id = ANY($1) AND organization_id IS DISTINCT FROM $2 LIMIT 1",
    [teams.map((team) => team.team_id), only],
  );
  return outside.length === 0 ? only : null;
}

function denyOtherOrganizations(
  admin: Admin,
  organizations: readonly string[],
): void {
  if (admin.reachesAll) {
    return;
  }
  if (organizations.length === 0) {
    throw new CallError(
      "permission_denied",
      "`organizations` is required: an org_admin can only create users of its own organizations.",
      { param: "organizations" },
    );
  }
  for (const organizationId of organizations) {
    admin.requireReach({
      what: `organization ${organizationId}`,
      organizationId,
    });
  }
}

async function join(
  admin: Admin,
  client: Client,
  userId: string,
  teams: readonly TeamToJoin[],
  organizations: readonly string[],
): Promise<void> {
  for (const organizationId of new Set(organizations)) {
    await create(admin, client, ORGANIZATION_MEMBER, {
      organization_id: organizationId,
      user_id: userId,
    });
  }
  const byId = new Map(teams.map((team) => [team.team_id, team]));
  for (const [teamId, { user_role, max_budget_in_team }] of byId) {
    await reachableTeam(admin, client, teamId);
    await createMember(admin, client, {
      team_id: teamId,
      user_id: userId,
      role: user_role,
      max_budget: max_budget_in_team,
    });
  }
}

type TeamToJoin = z.output<typeof teamOfUser>;

/** The teams of a request by id, that of the first key last. A team may be named by its alias, if only one has it. */
async function teamsToJoin(
  pool: Pool,
  { teams, team_id: last }: z.output<typeof newUserFields>,
): Promise<readonly TeamToJoin[]> {
  const named = [...(teams ?? []), ...(last == null ? [] : [last])].map(
    (team) =>
      typeof team === "string" ? teamOfUser.parse({ team_id: team }) : team,
  );
  const found = await query<{ team_id: string; team_alias: string | null }>(
    pool,
    "SELECT team_id, team_alias FROM teams WHERE team_id = ANY($1) OR team_alias = ANY($1)",
    [named.map((team) => team.team_id)],
  );
  return named.map((team) => {
    const { team_id: given } = team;
    const ofAlias = found.filter((row) => row.team_alias === given);
    return found.some((row) => row.team_id === given) || ofAlias.length !== 1
      ? team
      : { ...team, team_id: ofAlias[0]?.team_id ?? given };
  });
}
