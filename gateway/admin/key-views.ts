import { z } from "zod";
import { query } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { invalidParam } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { sortableBySpend } from "./budgets-in-force.ts";
import { keysWithinReach, reachableKey } from "./key-owner.ts";
import { tokensNow } from "./key-tokens.ts";
import {
  answerRowsInUse,
  countByState,
  IN_STATE,
  LAST_USE_ORDER,
  WITH_STATUS,
} from "./key-use.ts";
import {
  deletedKeyRow,
  KEY,
  KEY_STATES,
  KEY_STATUSES,
  keyRow,
  usedKeyRow,
} from "./kinds/key.ts";
import { out } from "./kinds/out.ts";
import { name, queryFlag, queryNumber, someNames } from "./kinds/values.ts";
import {
  applyFilters,
  contains,
  orderOf,
  readPage,
  searchOf,
  sortableFields,
  type Conditions,
  type Filters,
} from "./paging.ts";
import { answerRows } from "./payers.ts";
import { reachableKeys } from "./reachable-rows.ts";
import { SAME_EMAIL } from "./user-access.ts";

const info = adminRoute(
  "GET /key/info",
  {
    summary: "Get a key by its secret or hash; by default the caller's own.",
    input: z.object({ key: name.optional() }),
    answer: z.object({ key: out.text, info: usedKeyRow }),
  },
  async (admin, { key = ownKey(admin) }) => {
    const row = await reachableKey(admin, admin.pool, key);
    const [shownKey] = await answerRowsInUse(admin, [row]);
    return { key, info: shownKey };
  },
);

function ownKey(admin: Admin): string {
  if (admin.actor.token !== null) {
    return admin.actor.token;
  }
  throw invalidParam(
    "key",
    "is required with the master key, which is not a virtual key: send a key or its hash.",
  );
}

const infoOfSeveral = adminRoute(
  "POST /v2/key/info",
  {
    summary:
      "Get several keys; unknown ones and those out of reach are left out.",
    input: z.object({ keys: someNames }),
    answer: z.object({ key: out.texts, info: z.array(keyRow) }),
  },
  async (admin, { keys }) => {
    const named = await tokensNow(admin.pool, keys);
    const rows = await query<Row>(
      admin.pool,
      "SELECT * FROM keys WHERE token = ANY($1)",
      [named],
    );
    const reachable = await keysWithinReach(admin, rows);
    const tokens = new Set(reachable.map((row) => row["token"]));
    return {
      key: keys.filter((_, at) => tokens.has(named[at])),
      info: await answerRows(admin, KEY, reachable),
    };
  },
);

const SORTABLE = {
  ...sortableFields(KEY),
  ...sortableBySpend(KEY),
  last_used_at: LAST_USE_ORDER,
  last_active: LAST_USE_ORDER,
  rpm_limit: "rpm_limit",
  tpm_limit: "tpm_limit",
};
const SORTABLE_DELETED = { deleted_at: "deleted_at", ...sortableFields(KEY) };

const FILTERS: Filters = {
  team_id: "team_id = ?",
  organization_id:
    "(organization_id = ? OR team_id IN (SELECT team_id FROM teams WHERE organization_id = ?))",
  key_alias: "key_alias = ?",
  user_email: `user_id IN (SELECT user_id FROM users WHERE ${SAME_EMAIL})`,
  search: `(${searchOf(KEY)} OR token = lower(?)
    OR user_id IN (SELECT user_id FROM users WHERE ${contains("user_email")})
    OR team_id IN (SELECT team_id FROM teams WHERE ${contains("team_alias")}))`,
};

const listQuery = z.object({
  page: queryNumber(1, 1_000_000, 1),
  size: queryNumber(1, 100, 10),
  user_id: name.optional(),
  user_email: name.optional(),
  team_id: name.optional(),
  organization_id: name.optional(),
  key_hash: name.optional(),
  key_alias: name.optional(),
  /** In the alias, the last characters, the hash, the owner's id or e-mail address, the team's id or name. */
  search: name.optional(),
  /** Of existing keys. */
  state: z
    .enum(KEY_STATES, `must be one of ${KEY_STATES.join(", ")}`)
    .optional(),
  return_full_object: queryFlag.default(false),
  include_team_keys: queryFlag.default(false),
  /** Adds the number of existing keys within reach in each state. */
  count_states: queryFlag.default(false),
  /** `revoked` are blocked keys, `deleted` deleted ones as they were then; by default all existing keys. */
  status: z
    .enum(KEY_STATUSES, `must be one of ${KEY_STATUSES.join(", ")}`)
    .optional(),
  sort_by: name.optional(),
  sort_order: z.enum(["asc", "desc"]).default("desc"),
});

const list = adminRoute(
  "GET /key/list",
  {
    summary:
      "List keys within reach, page by page: hashes, or with return_full_object whole rows. Can be searched, filtered by state, and sorted, also by spend, by the used share of the budget and by the last use; status=deleted lists deleted keys.",
    input: listQuery,
    answer: z.object({
      keys: z.array(z.union([out.text, deletedKeyRow, usedKeyRow])),
      total_count: out.count,
      current_page: out.count,
      total_pages: out.count,
      state_counts: z
        .object({
          active: out.count,
          over_budget: out.count,
          blocked: out.count,
          expired: out.count,
        })
        .optional()
        .meta({ description: "With `count_states`." }),
    }),
  },
  async (admin, input) => {
    const { page, size } = input;
    const deleted = input.status === "deleted";
    const [found, state_counts] = await Promise.all([
      readPage(admin.pool, {
        table: deleted ? "deleted_keys" : "keys",
        filter: await filterOf(admin, input),
        order: orderOf(
          deleted ? SORTABLE_DELETED : SORTABLE,
          input.sort_by ?? (deleted ? "deleted_at" : "created_at"),
          input.sort_order,
          "token",
        ),
        page,
        size,
      }),
      input.count_states
        ? countByState(admin, reachableKeys(admin))
        : undefined,
    ]);
    return {
      ...(state_counts === undefined ? {} : { state_counts }),
      keys: !input.return_full_object
        ? found.rows.map((row) => row["token"])
        : deleted
          ? await answerRows(admin, KEY, found.rows)
          : await answerRowsInUse(admin, found.rows),
      total_count: found.total,
      current_page: page,
      total_pages: found.pages,
    };
  },
);

async function filterOf(
  admin: Admin,
  input: z.output<typeof listQuery>,
): Promise<Conditions> {
  const filter = reachableKeys(admin);
  if (input.user_id !== undefined) {
    filter.and(
      input.include_team_keys
        ? "(user_id = ? OR team_id IN (SELECT team_id FROM team_members WHERE user_id = ?))"
        : "user_id = ?",
      input.user_id,
    );
  }
  if (input.key_hash !== undefined) {
    filter.and("token = ANY(?)", await tokensNow(admin.pool, [input.key_hash]));
  }
  applyFilters(filter, FILTERS, input);
  if (input.status !== undefined && input.status !== "deleted") {
    filter.and(WITH_STATUS[input.status]);
  }
  if (input.state !== undefined) {
    if (input.status === "deleted") {
      throw invalidParam(
        "state",
        "cannot be combined with `status=deleted`: deleted keys have no state.",
      );
    }
    filter.and(IN_STATE[input.state]);
  }
  return filter;
}

const ALIAS_FILTERS: Filters = {
  search: contains("key_alias"),
  team_id: "team_id = ?",
};

const aliases = adminRoute(
  "GET /key/aliases",
  {
    summary: "List the aliases of keys within reach.",
    input: z.object({
      page: queryNumber(1, 1_000_000, 1),
      size: queryNumber(1, 1_000, 100),
      search: name.optional(),
      team_id: name.optional(),
    }),
    answer: z.object({
      aliases: out.texts,
      total_count: out.count,
      current_page: out.count,
      total_pages: out.count,
    }),
  },
  async (admin, { page, size, ...named }) => {
    const filter = reachableKeys(admin);
    filter.and("key_alias IS NOT NULL");
    applyFilters(filter, ALIAS_FILTERS, named);
    const found = await readPage(admin.pool, {
      table: "keys",
      filter,
      order: "key_alias",
      page,
      size,
    });
    return {
      aliases: found.rows.map((row) => row["key_alias"]),
      total_count: found.total,
      current_page: page,
      total_pages: found.pages,
    };
  },
);

/** A request that gets here has a valid key. */
const health = adminRoute(
  "POST /key/health",
  {
    summary: "Check that the caller's key works.",
    input: z.object({}),
    answer: z.object({ key: z.literal("healthy") }),
  },
  async () => ({
    key: "healthy",
  }),
);

export const KEY_VIEWS: readonly Route[] = [
  info,
  infoOfSeveral,
  list,
  aliases,
  health,
];
