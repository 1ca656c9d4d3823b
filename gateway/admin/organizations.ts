import { z } from "zod";
import { query, transaction, type Client } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { budgetState, isUsedUp } from "./budgets-in-force.ts";
import { rejectWhileUsed } from "./in-use.ts";
import { KEY } from "./kinds/key.ts";
import {
  deletedOrganizationRow,
  grownOrganization,
  ORGANIZATION,
  ORGANIZATION_MEMBER,
  organizationFields,
  organizationInfo,
  organizationMemberRow,
  organizationRow,
} from "./kinds/organization.ts";
import { TEAM } from "./kinds/team.ts";
import { userReference } from "./kinds/user.ts";
import { name, queryNumber, someNames } from "./kinds/values.ts";
import {
  applyFilters,
  conditions,
  contains,
  type Conditions,
  type Filters,
} from "./paging.ts";
import {
  answerRow,
  answerRows,
  change,
  changeAndAnswer,
  create,
  remove,
} from "./payers.ts";
import { reachableOrganization } from "./team-access.ts";
import {
  findOrCreateUser,
  requireMembership,
  visibleUsers,
  type UserReference,
} from "./user-access.ts";

const role = z.enum(
  ["org_admin", "internal_user", "internal_user_viewer"],
  "must be org_admin, internal_user or internal_user_viewer",
);

const createOrganization = adminRoute(
  "POST /organization/new",
  {
    summary: "Create an organization.",
    input: z.object({ ...organizationFields, organization_id: name.nullish() }),
    answer: organizationRow,
  },
  async (admin, { organization_id: id, ...given }) => {
    const row = await transaction(admin.pool, (client) =>
      create(admin, client, ORGANIZATION, {
        ...given,
        organization_id: id ?? crypto.randomUUID(),
      }),
    );
    return answerRow(admin, ORGANIZATION, row ?? {});
  },
);

const update = adminRoute(
  "PATCH /organization/update",
  {
    summary: "Update an organization; null resets a field.",
    input: z.object({ ...organizationFields, organization_id: name }),
    answer: organizationRow,
  },
  (admin, { organization_id: id, ...given }) =>
    changeAndAnswer(admin, ORGANIZATION, { organization_id: id }, given),
);

/** Clients send either method. */
function deleteBy(
  route: "POST /organization/delete" | "DELETE /organization/delete",
): Route {
  return adminRoute(
    route,
    {
      summary:
        "Delete organizations. Rejected while teams or keys belong to one.",
      input: z.object({ organization_ids: someNames }),
      answer: z.array(deletedOrganizationRow),
    },
    async (admin, { organization_ids: ids }) => {
      for (const id of ids) {
        await reachableOrganization(admin, id);
      }
      return transaction(admin.pool, async (client) => {
        const deleted: Row[] = [];
        for (const id of new Set(ids)) {
          const where = { organization_id: id };
          await rejectWhileUsed(client, ORGANIZATION, id);
          await remove(admin, client, ORGANIZATION_MEMBER, where);
          deleted.push(...(await remove(admin, client, ORGANIZATION, where)));
        }
        return deleted;
      });
    },
  );
}

const info = adminRoute(
  "GET /organization/info",
  {
    summary: "Get an organization with members and teams.",
    input: z.object({ organization_id: name }),
    answer: organizationInfo,
  },
  async (admin, { organization_id: id }) => {
    const row = await reachableOrganization(admin, id);
    const [shown] = await withMembersAndTeams(
      admin,
      await answerRows(admin, ORGANIZATION, [row]),
    );
    return shown;
  },
);

/** Organizations with their members and the teams that the caller sees. */
async function withMembersAndTeams(
  admin: Admin,
  organizations: readonly Row[],
): Promise<readonly Row[]> {
  const { actor, reachesAll } = admin;
  const ids = organizations.map((row) => String(row["organization_id"]));
  const members = await membersOf(admin, ids);
  const teams = await query<Row>(
    admin.pool,
    "SELECT * FROM teams WHERE organization_id = ANY($1) ORDER BY created_at, team_id",
    [ids],
  );
  const seen = await answerRows(
    admin,
    TEAM,
    teams.filter(
      (team) =>
        reachesAll ||
        actor.organizations.has(String(team["organization_id"])) ||
        actor.teams.has(String(team["team_id"])),
    ),
  );
  const byId = (rows: readonly Row[]) =>
    Map.groupBy(rows, (row) => row["organization_id"]);
  const [memberships, seenTeams] = [byId(members), byId(seen)];
  return organizations.map((row) => ({
    ...row,
    members: memberships.get(row["organization_id"]) ?? [],
    teams: seenTeams.get(row["organization_id"]) ?? [],
  }));
}

function membersOf(
  admin: Admin,
  ids: readonly string[],
): Promise<readonly Row[]> {
  return query<Row>(
    admin.pool,
    `SELECT m.organization_id, m.user_id, u.user_email, u.user_alias, m.role, m.role AS user_role, m.created_at, m.updated_at
       FROM organization_members m JOIN users u USING (user_id)
       WHERE m.organization_id = ANY($1) ORDER BY m.created_at, m.user_id`,
    [ids],
  );
}

const infoOfSeveral = adminRoute(
  "POST /organization/info",
  {
    summary:
      "Get several organizations with members and teams; unknown ones and those out of reach are left out.",
    input: z.object({ organizations: someNames }),
    answer: z.array(organizationInfo),
  },
  (admin, { organizations }) => {
    const filter = withinReach(admin);
    filter.and("organization_id = ANY(?)", organizations);
    return organizationsOf(admin, filter);
  },
);

const FILTERS: Filters = {
  org_id: "organization_id = ?",
  org_alias: contains("organization_alias"),
};

const list = adminRoute(
  "GET /organization/list",
  {
    summary: "List organizations within reach, with members and teams.",
    input: z.object({
      page: queryNumber(1, 1_000_000, 1),
      page_size: queryNumber(1, 1_000, 1_000),
      state: budgetState.optional(),
      org_id: name.optional(),
      /** Contained in the alias, in any case. */
      org_alias: name.optional(),
    }),
    answer: z.array(organizationInfo),
  },
  (admin, { page, page_size: size, state, ...named }) => {
    const filter = withinReach(admin);
    applyFilters(filter, FILTERS, named);
    if (state !== undefined) {
      filter.and(isUsedUp(ORGANIZATION));
    }
    return organizationsOf(
      admin,
      filter,
      `LIMIT ${size} OFFSET ${(page - 1) * size}`,
    );
  },
);

function withinReach(admin: Admin): Conditions {
  const filter = conditions();
  if (!admin.reachesAll) {
    filter.and("organization_id = ANY(?)", [...admin.actor.memberOf]);
  }
  return filter;
}

/** The newest first. */
async function organizationsOf(
  admin: Admin,
  filter: Conditions,
  page = "",
): Promise<readonly Row[]> {
  const rows = await query<Row>(
    admin.pool,
    `SELECT * FROM organizations ${filter.where()} ORDER BY created_at DESC, organization_id ${page}`,
    filter.values,
  );
  return withMembersAndTeams(
    admin,
    await answerRows(admin, ORGANIZATION, rows),
  );
}

const newMember = z.object({
  ...userReference,
  role: role.default("internal_user"),
});

const memberAdd = adminRoute(
  "POST /organization/member_add",
  {
    summary: "Add members. Users are created if they do not exist.",
    input: z.object({
      organization_id: name,
      member: z.union([newMember, z.array(newMember).min(1).max(1_000)]),
    }),
    answer: grownOrganization,
  },
  async (admin, { organization_id: id, member }) => {
    await reachableOrganization(admin, id);
    const users = await transaction(admin.pool, async (client) => {
      const users: Row[] = [];
      for (const one of [member].flat()) {
        const user = await findOrCreateUser(admin, client, one);
        const created = await create(
          admin,
          client,
          ORGANIZATION_MEMBER,
          { organization_id: id, user_id: user["user_id"], role: one.role },
          true,
        );
        if (created === null) {
          throw new CallError(
            "invalid_request",
            `User ${String(user["user_id"])} is already in organization ${id}. Change it with PATCH /organization/member_update.`,
            { param: "member" },
          );
        }
        users.push(user);
      }
      return users;
    });
    return {
      organization_id: id,
      updated_users: await visibleUsers(admin, users),
      updated_organization_memberships: await membersOf(admin, [id]),
    };
  },
);

/** The membership that a request names; throws 400 for a user who is not a member. */
async function membership(
  admin: Admin,
  organizationId: string,
  reference: UserReference,
): Promise<Row> {
  const group = { organization_id: organizationId };
  const member = await requireMembership(
    admin.pool,
    ORGANIZATION_MEMBER,
    group,
    reference,
  );
  return { ...group, user_id: member["user_id"] };
}

const memberUpdate = adminRoute(
  "PATCH /organization/member_update",
  {
    summary: "Change the role of a member.",
    input: z.object({ ...userReference, organization_id: name, role }),
    answer: organizationMemberRow,
  },
  async (admin, { organization_id: id, role: part, ...reference }) => {
    await reachableOrganization(admin, id);
    const member = await membership(admin, id, reference);
    return withUserRole(
      await transaction(admin.pool, (client) =>
        change(admin, client, ORGANIZATION_MEMBER, member, { role: part }),
      ),
    );
  },
);

const memberDelete = adminRoute(
  "DELETE /organization/member_delete",
  {
    summary:
      "Remove a member and that user's keys of the organization outside of its teams.",
    input: z.object({ ...userReference, organization_id: name }),
    answer: organizationMemberRow,
  },
  async (admin, { organization_id: id, ...reference }) => {
    await reachableOrganization(admin, id);
    const member = await membership(admin, id, reference);
    const [deleted] = await transaction(admin.pool, async (client) => {
      for (const { token } of await keysOutsideTeams(client, member)) {
        await remove(admin, client, KEY, { token });
      }
      return remove(admin, client, ORGANIZATION_MEMBER, member);
    });
    return withUserRole(deleted ?? {});
  },
);

/** The keys of a member that the organization pays for, without those in teams, which have members of their own, and those of an issuer's tokens. */
function keysOutsideTeams(
  client: Client,
  { organization_id: id, user_id: userId }: Row,
): Promise<readonly Row[]> {
  return query<Row>(
    client,
    `SELECT token FROM keys WHERE organization_id = $1 AND user_id = $2 AND team_id IS NULL AND jwt_issuer IS NULL
       ORDER BY token FOR UPDATE`,
    [id, userId],
  );
}

function withUserRole(member: Row): Row {
  return { ...member, user_role: member["role"] };
}

export const ORGANIZATIONS: readonly Route[] = [
  createOrganization,
  update,
  deleteBy("POST /organization/delete"),
  deleteBy("DELETE /organization/delete"),
  info,
  infoOfSeveral,
  list,
  memberAdd,
  memberUpdate,
  memberDelete,
];
