import { z } from "zod";
import { ROLES } from "../access/roles.ts";
import { query } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { name, queryNames, queryNumber } from "./fields.ts";
import { sortableBySpend, withBudgetInForce } from "./budgets-in-force.ts";
import {
  columns,
  conditions,
  containing,
  orderOf,
  readPage,
  type Sortable,
} from "./paging.ts";
import { newestOf } from "./newest.ts";
import { KEY, shown, TEAM, USER } from "./payers.ts";
import { reachableKeys, reachableTeams } from "./reachable-rows.ts";
import { adminRoute, type Admin, type AdminRoute } from "./route.ts";
import { refuseUser, requireUser, role, seenUsers } from "./user-fields.ts";

const info = adminRoute(
  "GET /user/info",
  z.object({ user_id: name.optional() }),
  async (admin, { user_id: asked }) => {
    const userId = asked ?? (admin.reachesAll ? null : admin.actor.userId);
    const keys = reachableKeys(admin);
    const teams = reachableTeams(admin);
    if (userId !== null) {
      keys.and("user_id = ?", userId);
      teams.and(
        "team_id IN (SELECT team_id FROM team_members WHERE user_id = ?)",
        userId,
      );
    }
    return {
      user_id: userId,
      user_info: userId === null ? null : await infoOfUser(admin, userId),
      ...(await newestOf(admin, KEY, keys)),
      ...(await newestOf(admin, TEAM, teams)),
    };
  },
);

async function infoOfUser(admin: Admin, userId: string): Promise<Row | null> {
  const user = await requireUser(admin.pool, { user_id: userId });
  await refuseUser(admin, user);
  const [seen] = await seenUsers(
    admin,
    await withBudgetInForce(admin, USER, await shown(admin, USER, [user])),
  );
  return seen ?? null;
}

const SORTABLE: Sortable = {
  ...columns(
    "created_at",
    "user_id",
    "user_email",
    "user_alias",
    "user_role",
    "max_budget",
  ),
  ...sortableBySpend(USER),
};

const list = adminRoute(
  "GET /user/list",
  z.object({
    page: queryNumber(1, 1_000_000, 1),
    page_size: queryNumber(1, 100, 25),
    role: role.optional(),
    user_ids: queryNames.optional(),
    user_email: name.optional(),
    /** In id, address or name. */
    search: name.optional(),
    team: name.optional(),
    sort_by: name.optional(),
    sort_order: z.enum(["asc", "desc"]).default("desc"),
  }),
  async (admin, asked) => {
    const filter = conditions();
    if (!admin.reachesAll) {
      const { actor } = admin;
      const self = filter.bind(actor.userId);
      filter.and(
        `(user_id = ${self} OR user_id IN (SELECT user_id FROM organization_members WHERE organization_id = ANY(?)))`,
        [...actor.organizations],
      );
    }
    if (asked.role !== undefined) {
      filter.and("user_role = ?", asked.role);
    }
    if (asked.user_ids !== undefined) {
      filter.and("user_id = ANY(?)", asked.user_ids);
    }
    if (asked.user_email !== undefined) {
      containing(filter, asked.user_email, ["user_email"]);
    }
    if (asked.search !== undefined) {
      containing(filter, asked.search, ["user_id", "user_email", "user_alias"]);
    }
    if (asked.team !== undefined) {
      filter.and(
        "user_id IN (SELECT user_id FROM team_members WHERE team_id = ?)",
        asked.team,
      );
    }
    const { page, page_size: size } = asked;
    const found = await readPage(
      admin.pool,
      "users",
      filter,
      orderOf(SORTABLE, asked.sort_by, asked.sort_order, "user_id"),
      page,
      size,
    );
    return {
      users: await seenUsers(
        admin,
        await withKeyCounts(
          admin,
          await withBudgetInForce(
            admin,
            USER,
            await shown(admin, USER, found.rows),
          ),
        ),
      ),
      total: found.total,
      page,
      page_size: size,
      total_pages: found.pages,
    };
  },
);

async function withKeyCounts(
  admin: Admin,
  users: readonly Row[],
): Promise<readonly Row[]> {
  const counts = await query<{ user_id: string; count: number }>(
    admin.pool,
    "SELECT user_id, count(*) AS count FROM keys WHERE user_id = ANY($1) GROUP BY user_id",
    [users.map((user) => user["user_id"])],
  );
  const byUser = new Map(counts.map((row) => [row.user_id, row.count]));
  return users.map((user) => ({
    ...user,
    key_count: byUser.get(String(user["user_id"])) ?? 0,
  }));
}

const availableRoles = adminRoute(
  "GET /user/available_roles",
  z.object({}),
  async () =>
    Object.fromEntries(
      Object.entries(ROLES).map(([id, description]) => [
        id,
        { description, ui_label: id.replaceAll("_", " ") },
      ]),
    ),
);

export const USER_VIEWS: readonly AdminRoute[] = [info, list, availableRoles];
