import { z } from "zod";
import { ROLES } from "../access/roles.ts";
import { query } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { invalidParam } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { budgetState, isUsedUp, sortableBySpend } from "./budgets-in-force.ts";
import { KEY, keyRow } from "./kinds/key.ts";
import { out } from "./kinds/out.ts";
import { TEAM, teamRow } from "./kinds/team.ts";
import {
  budgetedUserRow,
  listedUserRow,
  role,
  USER,
  userName,
} from "./kinds/user.ts";
import { name, queryNames, queryNumber } from "./kinds/values.ts";
import { newestOf } from "./newest.ts";
import {
  applyFilters,
  conditions,
  contains,
  orderOf,
  pageOf,
  readPage,
  namedBy,
  searchOf,
  sortableFields,
  type Filters,
} from "./paging.ts";
import { answerBudgetedRows } from "./payers.ts";
import { reachableKeys, reachableTeams } from "./reachable-rows.ts";
import { reachableUser, visibleUsers } from "./user-access.ts";

const info = adminRoute(
  "GET /user/info",
  {
    summary:
      "Get a user with the newest 1,000 keys and teams within reach; without user_id an admin gets those of all users. GET /key/list and GET /v2/team/list list all, page by page.",
    input: z.object({ user_id: name.optional() }),
    answer: z.object({
      user_id: out.text.nullable(),
      user_info: z.union([budgetedUserRow, userName]).nullable(),
      keys: z.array(keyRow),
      total_keys: out.count,
      teams: z.array(teamRow),
      total_teams: out.count,
    }),
  },
  async (admin, { user_id: requested }) => {
    const userId = requested ?? (admin.reachesAll ? null : admin.actor.userId);
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

const infoWithoutLists = adminRoute(
  "GET /v2/user/info",
  {
    summary:
      "Get a user without its keys and teams; by default the caller's own.",
    input: z.object({ user_id: name.optional() }),
    answer: z.union([budgetedUserRow, userName]),
  },
  async (admin, { user_id: requested }) => {
    const userId = requested ?? admin.actor.userId;
    if (userId === null) {
      throw invalidParam(
        "user_id",
        "is required: this key belongs to no user.",
      );
    }
    return infoOfUser(admin, userId);
  },
);

async function infoOfUser(admin: Admin, userId: string): Promise<Row | null> {
  const user = await reachableUser(admin, { user_id: userId });
  const [seen] = await visibleUsers(
    admin,
    await answerBudgetedRows(admin, USER, [user]),
  );
  return seen ?? null;
}

const SORTABLE = { ...sortableFields(USER), ...sortableBySpend(USER) };

const FILTERS: Filters = {
  role: "user_role = ?",
  user_ids: "user_id = ANY(?)",
  user_email: contains("user_email"),
  sso_user_id: "sso_user_id = ?",
  search: searchOf(USER),
  named: namedBy(USER),
  team: "user_id IN (SELECT user_id FROM team_members WHERE team_id = ?)",
};

const list = adminRoute(
  "GET /user/list",
  {
    summary:
      "List users within reach, page by page; of users partly within reach only the name.",
    input: z.object({
      page: queryNumber(1, 1_000_000, 1),
      page_size: queryNumber(1, 100, 25),
      role: role.optional(),
      user_ids: queryNames.optional(),
      user_email: name.optional(),
      sso_user_id: name.optional(),
      /** In id, e-mail address or name. */
      search: name.optional(),
      /** Whose id, e-mail address or name this is. */
      named: name.optional(),
      team: name.optional(),
      state: budgetState.optional(),
      sort_by: name.optional(),
      sort_order: z.enum(["asc", "desc"]).default("desc"),
    }),
    answer: pageOf("users", z.union([listedUserRow, userName])),
  },
  async (admin, input) => {
    const filter = conditions();
    if (!admin.reachesAll) {
      const { actor } = admin;
      const self = filter.bind(actor.userId);
      filter.and(
        `(user_id = ${self} OR user_id IN (SELECT user_id FROM organization_members WHERE organization_id = ANY(?)))`,
        [...actor.organizations],
      );
    }
    applyFilters(filter, FILTERS, input);
    if (input.state !== undefined) {
      filter.and(isUsedUp(USER));
    }
    const { page, page_size: size } = input;
    const found = await readPage(admin.pool, {
      table: "users",
      filter,
      order: orderOf(
        SORTABLE,
        input.sort_by ?? "created_at",
        input.sort_order,
        "user_id",
      ),
      page,
      size,
    });
    return {
      users: await visibleUsers(
        admin,
        await withKeyCounts(
          admin,
          await answerBudgetedRows(admin, USER, found.rows),
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
  {
    summary: "List the roles.",
    input: z.object({}),
    answer: z.record(
      out.text,
      z.object({ description: out.text, ui_label: out.text }),
    ),
  },
  async () =>
    Object.fromEntries(
      Object.entries(ROLES).map(([id, description]) => [
        id,
        { description, ui_label: id.replaceAll("_", " ") },
      ]),
    ),
);

export const USER_VIEWS: readonly Route[] = [
  info,
  infoWithoutLists,
  list,
  availableRoles,
];
