import { z } from "zod";
import { roleOfSharedKey } from "../access/roles.ts";
import { query, transaction, type Client } from "../db/pool.ts";
import type { Row } from "../db/rows.ts";
import { refusalOf } from "../http/conflicts.ts";
import { CallError } from "../http/errors.ts";
import { checkInput } from "./body.ts";
import { dollars, flag, name, names, someNames, texts } from "./fields.ts";
import { keyFields } from "./key-fields.ts";
import { insertKey } from "./keys.ts";
import {
  change,
  create,
  findOne,
  KEY,
  MEMBER,
  ORGANIZATION_MEMBER,
  remove,
  shownOne,
  TEAM,
  USER,
} from "./payers.ts";
import { adminRoute, type Admin, type AdminRoute } from "./route.ts";
import { setSpend } from "./spend.ts";
import { teamRole } from "./team-fields.ts";
import {
  refuseRole,
  refuseTakenEmail,
  refuseUser,
  requireUser,
  userFields,
  userReference,
} from "./user-fields.ts";

/** A team to join, with the part and the budget there. */
const teamOfUser = z.object({
  team_id: name,
  user_role: teamRole.default("user"),
  max_budget_in_team: dollars.nullish(),
});

const newUserFields = z.object({
  ...userFields,
  user_id: name.nullish(),
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

const newUser = adminRoute(
  "POST /user/new",
  newUserFields,
  async (admin, fields) => {
    const {
      teams,
      organizations,
      auto_create_key: withKey,
      key_alias,
      duration,
      aliases,
      ...columns
    } = fields;
    refuseRole(admin, fields.user_role);
    refuseUnlessOfOrganization(admin, organizations ?? []);
    const payer = withKey === false ? null : payerOfFirstKey(admin, fields);
    const made = await transaction(admin.pool, async (client) => {
      await refuseTakenEmail(client, fields.user_email, null);
      const user = await create(admin, client, USER, {
        ...columns,
        user_id: fields.user_id ?? crypto.randomUUID(),
      });
      const userId = String(user?.["user_id"]);
      await join(admin, client, userId, teams ?? [], organizations ?? []);
      // Limits are the user's own: a key that had them too would be a second, smaller budget.
      const key =
        withKey === false
          ? null
          : await insertKey(
              admin,
              client,
              {
                user_id: userId,
                organization_id: payer,
                key_alias,
                duration,
                aliases,
              },
              null,
            );
      return { user: user ?? {}, key };
    });
    const { key } = made;
    const user = await shownOne(admin, USER, made.user);
    return {
      ...(key === null ? {} : await shownOne(admin, KEY, key.row)),
      ...user,
      key: key?.key ?? null,
      token: key?.row["token"] ?? null,
      token_id: key?.row["token"] ?? null,
      key_name: key?.row["key_name"] ?? null,
      expires: key?.row["expires"] ?? null,
      teams: (teams ?? []).map(teamIdOf),
    };
  },
);

/**
 * The organization that a user's first key belongs to: the only one. A key that is to have rights on everything belongs to
 * nobody else.
 */
function payerOfFirstKey(
  { reachesAll }: Admin,
  { organizations, user_role: given }: z.output<typeof newUserFields>,
): string | null {
  const [only = null, ...others] = new Set(organizations);
  if (others.length === 0)
    return given != null && roleOfSharedKey(given) !== given ? null : only;
  if (reachesAll) return null;
  throw new CallError(
    "invalid_request",
    "`auto_create_key` is not right: of several organizations one has to pay for a key. Send false, and name that one with POST /key/generate.",
    { param: "auto_create_key" },
  );
}

function refuseUnlessOfOrganization(
  admin: Admin,
  organizations: readonly string[],
): void {
  if (admin.reachesAll) return;
  if (organizations.length === 0)
    throw new CallError(
      "permission_denied",
      "An org_admin makes users of its organization: name it in `organizations`.",
      { param: "organizations" },
    );
  for (const organizationId of organizations)
    admin.refuse({ what: `organization ${organizationId}`, organizationId });
}

async function join(
  admin: Admin,
  client: Client,
  userId: string,
  teams: readonly (string | z.output<typeof teamOfUser>)[],
  organizations: readonly string[],
): Promise<void> {
  for (const organizationId of new Set(organizations))
    await create(admin, client, ORGANIZATION_MEMBER, {
      organization_id: organizationId,
      user_id: userId,
    });
  const byId = new Map(teams.map((team) => [teamIdOf(team), team]));
  for (const [teamId, asked] of byId) {
    const team = await findOne(client, TEAM, { team_id: teamId });
    if (!admin.reachesAll)
      admin.refuse({
        what: `team ${teamId}`,
        teamId,
        organizationId: team["organization_id"] as string | null,
      });
    await create(admin, client, MEMBER, {
      team_id: teamId,
      user_id: userId,
      ...(typeof asked === "string"
        ? {}
        : { role: asked.user_role, max_budget: asked.max_budget_in_team }),
    });
  }
}

function teamIdOf(team: string | z.output<typeof teamOfUser>): string {
  return typeof team === "string" ? team : team.team_id;
}

const updateFields = z.object({
  ...userFields,
  ...userReference,
  spend: z.number().min(0, "a spend is at least 0 dollars").nullish(),
});

async function updateUser(
  admin: Admin,
  { spend, user_id, ...fields }: z.output<typeof updateFields>,
): Promise<Row> {
  const user = await requireUser(admin.pool, {
    user_id,
    user_email: fields.user_email,
  });
  await refuseUser(admin, user);
  refuseRole(admin, fields.user_role);
  if (spend != null && !admin.reachesAll)
    throw new CallError(
      "permission_denied",
      "Only a proxy_admin may set `spend`.",
      { param: "spend" },
    );
  const id = { user_id: user["user_id"] };
  const row = await transaction(admin.pool, async (client) => {
    await refuseTakenEmail(client, fields.user_email, String(id.user_id));
    return change(admin, client, USER, id, fields);
  });
  if (spend != null) await setSpend(admin, USER, row, spend);
  return shownOne(admin, USER, row);
}

const update = adminRoute(
  "POST /user/update",
  updateFields,
  async (admin, fields) => {
    const data = await updateUser(admin, fields);
    return { user_id: data["user_id"], data };
  },
);

const MOST_AT_ONCE = 500;

const bulkUpdate = adminRoute(
  "POST /user/bulk_update",
  z.object({
    users: z
      .array(z.looseObject(userReference))
      .max(MOST_AT_ONCE, `at most ${MOST_AT_ONCE} at once`)
      .nullish(),
    all_users: flag.nullish(),
    user_updates: z.looseObject({}).nullish(),
  }),
  async (admin, { users, all_users: all, user_updates: updates }) => {
    const entries =
      all === true
        ? (
            await query<{ user_id: string }>(
              admin.pool,
              "SELECT user_id FROM users ORDER BY user_id",
            )
          ).map((user) => ({ ...updates, ...user }))
        : users;
    if (entries == null || entries.length === 0)
      throw new CallError(
        "invalid_request",
        "`users` is missing: send a list of users with their changes, or `all_users` with `user_updates`.",
        { param: "users" },
      );
    const results: Row[] = [];
    for (const entry of entries)
      try {
        const updated = await updateUser(
          admin,
          checkInput(updateFields, entry),
        );
        results.push({
          user_id: updated["user_id"],
          user_email: updated["user_email"],
          success: true,
          error: null,
          updated_user: updated,
        });
      } catch (error) {
        results.push({
          user_id: entry.user_id ?? null,
          user_email: null,
          success: false,
          error: refusalOf(error).message,
          updated_user: null,
        });
      }
    const successful = results.filter((result) => result["success"] === true);
    return {
      results,
      total_requested: results.length,
      successful_updates: successful.length,
      failed_updates: results.length - successful.length,
    };
  },
);

const deleteUsers = adminRoute(
  "POST /user/delete",
  z.object({ user_ids: someNames }),
  async (admin, { user_ids: userIds }) => {
    for (const userId of userIds)
      await refuseUser(
        admin,
        await requireUser(admin.pool, { user_id: userId }),
      );
    return transaction(admin.pool, async (client) => {
      let count = 0;
      for (const userId of new Set(userIds)) {
        const id = { user_id: userId };
        for (const kind of [KEY, MEMBER, ORGANIZATION_MEMBER])
          await remove(admin, client, kind, id);
        count += (await remove(admin, client, USER, id)).length;
      }
      return count;
    });
  },
);

export const USER_CHANGES: readonly AdminRoute[] = [
  newUser,
  update,
  bulkUpdate,
  deleteUsers,
];
