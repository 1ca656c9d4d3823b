import { z } from "zod";
import { isPermitted } from "../access/policy.ts";
import { query } from "../database/pool.ts";
import { findRows, type Row } from "../database/rows.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { budgetState, isUsedUp, sortableBySpend } from "./budgets-in-force.ts";
import { KEY, keyRow } from "./kinds/key.ts";
import { budgetedMemberRow, MEMBER } from "./kinds/member.ts";
import { out } from "./kinds/out.ts";
import { budgetedTeamRow, TEAM, teamRow } from "./kinds/team.ts";
import { name, queryNumber } from "./kinds/values.ts";
import { newestOf } from "./newest.ts";
import {
  conditions,
  contains,
  applyFilters,
  orderOf,
  pageOf,
  readPage,
  namedBy,
  searchOf,
  sortableFields,
  type Conditions,
  type Filters,
} from "./paging.ts";
import { answerBudgetedRows, answerRows } from "./payers.ts";
import { reachableTeams } from "./reachable-rows.ts";
import { paysFor, reachableTeam } from "./team-access.ts";

const info = adminRoute(
  "GET /team/info",
  {
    summary: "Get a team with its newest 1,000 keys and its members.",
    input: z.object({ team_id: name }),
    answer: z.object({
      team_id: out.text,
      team_info: budgetedTeamRow,
      keys: z.array(keyRow),
      total_keys: out.count,
      team_memberships: z.array(budgetedMemberRow),
    }),
  },
  async (admin, { team_id: teamId }) => {
    const team = await reachableTeam(admin, admin.pool, teamId);
    const { actor } = admin;
    const seesAll = paysFor(admin, team) || actor.teams.get(teamId) === "admin";
    // A plain member, or a key of the team, sees the team and its own objects in the team.
    const id = seesAll
      ? { team_id: teamId }
      : { team_id: teamId, user_id: actor.userId };
    const keys = conditions();
    keys.and("team_id = ?", teamId);
    if (!seesAll && !isPermitted(actor.permissions.get(teamId), "/key/list")) {
      const token = keys.bind(actor.token);
      keys.and(`(user_id = ? OR token = ${token})`, actor.userId);
    }
    const members = await findRows(
      admin.pool,
      "team_members",
      id,
      "ORDER BY created_at, user_id",
    );
    const [shownTeam] = await answerBudgetedRows(admin, TEAM, [team]);
    return {
      team_id: teamId,
      team_info: shownTeam,
      ...(await newestOf(admin, KEY, keys)),
      team_memberships: await answerBudgetedRows(admin, MEMBER, members),
    };
  },
);

const SORTABLE = { ...sortableFields(TEAM), ...sortableBySpend(TEAM) };

const FILTERS: Filters = {
  user_id: "team_id IN (SELECT team_id FROM team_members WHERE user_id = ?)",
  organization_id: "organization_id = ?",
  team_id: "team_id = ?",
  team_alias: contains("team_alias"),
  search: searchOf(TEAM),
  named: namedBy(TEAM),
};

const filters = {
  user_id: name.optional(),
  organization_id: name.optional(),
  team_id: name.optional(),
  team_alias: name.optional(),
  /** In id or name. */
  search: name.optional(),
  /** Whose id or name this is. */
  named: name.optional(),
};

function matchingTeams(
  admin: Admin,
  input: { readonly [Field in keyof typeof filters]?: string | undefined },
): Conditions {
  const filter = reachableTeams(admin);
  applyFilters(filter, FILTERS, input);
  return filter;
}

const list = adminRoute(
  "GET /team/list",
  {
    summary: "List teams within reach.",
    input: z.object({
      ...filters,
      page: queryNumber(1, 1_000_000, 1),
      page_size: queryNumber(1, 1_000, 1_000),
    }),
    answer: z.array(teamRow),
  },
  async (admin, { page, page_size: size, ...input }) => {
    const filter = matchingTeams(admin, input);
    const rows = await query<Row>(
      admin.pool,
      `SELECT * FROM teams ${filter.where()} ORDER BY created_at DESC, team_id LIMIT ${size} OFFSET ${(page - 1) * size}`,
      filter.values,
    );
    return answerRows(admin, TEAM, rows);
  },
);

const listPaged = adminRoute(
  "GET /v2/team/list",
  {
    summary: "List teams within reach, page by page.",
    input: z.object({
      ...filters,
      page: queryNumber(1, 1_000_000, 1),
      page_size: queryNumber(1, 100, 10),
      /** Blocked teams are in no other state. */
      state: budgetState.optional(),
      sort_by: name.optional(),
      sort_order: z.enum(["asc", "desc"]).default("desc"),
    }),
    answer: pageOf("teams", budgetedTeamRow),
  },
  async (admin, input) => {
    const { page, page_size: size } = input;
    const filter = matchingTeams(admin, input);
    if (input.state !== undefined) {
      filter.and("NOT teams.blocked");
      filter.and(isUsedUp(TEAM));
    }
    const found = await readPage(admin.pool, {
      table: "teams",
      filter,
      order: orderOf(
        SORTABLE,
        input.sort_by ?? "created_at",
        input.sort_order,
        "team_id",
      ),
      page,
      size,
    });
    return {
      teams: await answerBudgetedRows(admin, TEAM, found.rows),
      total: found.total,
      page,
      page_size: size,
      total_pages: found.pages,
    };
  },
);

export const TEAM_VIEWS: readonly Route[] = [info, list, listPaged];
