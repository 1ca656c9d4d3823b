import { z } from "zod";
import { query } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import { name, queryFlag, queryNumber, someNames } from "./fields.ts";
import { tokensNow } from "./key-fields.ts";
import { reachableKey } from "./key-owner.ts";
import { keyFacts } from "./key-owner.ts";
import { reachableKeys } from "./reachable-rows.ts";
import { reaches } from "../access/reach.ts";
import { sortableBySpend } from "./budgets-in-force.ts";
import { IN_STATE, KEY_STATES, shownInUse } from "./key-use.ts";
import { KEY, shown } from "./payers.ts";
import {
  columns,
  containing,
  orderOf,
  readPage,
  type Conditions,
  type Sortable,
} from "./paging.ts";
import { adminRoute, type Admin, type AdminRoute } from "./route.ts";

const info = adminRoute(
  "GET /key/info",
  z.object({ key: name.optional() }),
  async (admin, { key = ownKey(admin) }) => {
    const row = await reachableKey(admin, admin.pool, key);
    const [shownKey] = await shownInUse(admin, [row]);
    return { key, info: shownKey };
  },
);

function ownKey(admin: Admin): string {
  if (admin.actor.token !== null) {
    return admin.actor.token;
  }
  throw new CallError(
    "invalid_request",
    "`key` is missing: the master key is no virtual key. Name one, as itself or by its hash.",
    { param: "key" },
  );
}

const infoOfSeveral = adminRoute(
  "POST /v2/key/info",
  z.object({ keys: someNames }),
  async (admin, { keys }) => {
    const named = await tokensNow(admin.pool, keys);
    const rows = await query<Row>(
      admin.pool,
      "SELECT * FROM keys WHERE token = ANY($1)",
      [named],
    );
    const reachable: Row[] = [];
    for (const row of rows) {
      if (reaches(admin.actor, admin.rule, await keyFacts(admin.pool, row))) {
        reachable.push(row);
      }
    }
    const tokens = new Set(reachable.map((row) => row["token"]));
    return {
      key: keys.filter((_, at) => tokens.has(named[at])),
      info: await shown(admin, KEY, reachable),
    };
  },
);

const COLUMNS = columns(
  "created_at",
  "updated_at",
  "key_alias",
  "key_name",
  "user_id",
  "team_id",
  "max_budget",
  "expires",
);
const SORTABLE: Sortable = { ...COLUMNS, ...sortableBySpend(KEY) };
const SORTABLE_GONE: Sortable = { ...columns("deleted_at"), ...COLUMNS };

const listQuery = z.object({
  page: queryNumber(1, 1_000_000, 1),
  size: queryNumber(1, 100, 10),
  user_id: name.optional(),
  team_id: name.optional(),
  organization_id: name.optional(),
  key_hash: name.optional(),
  key_alias: name.optional(),
  /** In the alias, the last letters, the hash, the owner's id or address, the team's id or name. */
  search: name.optional(),
  /** Of those that there are. */
  state: z.enum(KEY_STATES, `it may be ${KEY_STATES.join(", ")}`).optional(),
  return_full_object: queryFlag.default(false),
  include_team_keys: queryFlag.default(false),
  /** `deleted`: those of the history, as they were when they went. */
  status: z.enum(["active", "deleted"]).default("active"),
  sort_by: name.optional(),
  sort_order: z.enum(["asc", "desc"]).default("desc"),
});

const list = adminRoute("GET /key/list", listQuery, async (admin, asked) => {
  const filter = reachableKeys(admin);
  if (asked.user_id !== undefined) {
    if (asked.include_team_keys) {
      filter.and(
        "(user_id = ? OR team_id IN (SELECT team_id FROM team_members WHERE user_id = ?))",
        asked.user_id,
      );
    } else {
      filter.and("user_id = ?", asked.user_id);
    }
  }
  if (asked.team_id !== undefined) {
    filter.and("team_id = ?", asked.team_id);
  }
  if (asked.organization_id !== undefined) {
    filter.and(
      "(organization_id = ? OR team_id IN (SELECT team_id FROM teams WHERE organization_id = ?))",
      asked.organization_id,
    );
  }
  if (asked.key_hash !== undefined) {
    filter.and("token = ANY(?)", await tokensNow(admin.pool, [asked.key_hash]));
  }
  if (asked.key_alias !== undefined) {
    filter.and("key_alias = ?", asked.key_alias);
  }
  if (asked.search !== undefined) {
    searchFor(filter, asked.search);
  }
  const { page, size } = asked;
  const deleted = asked.status === "deleted";
  if (asked.state !== undefined && deleted) {
    throw new CallError(
      "invalid_request",
      "`state` is not right: deleted keys have none, so leave it out, or `status=deleted`.",
      { param: "state" },
    );
  }
  if (asked.state !== undefined) {
    filter.and(IN_STATE[asked.state]);
  }
  const found = await readPage(
    admin.pool,
    deleted ? "deleted_keys" : "keys",
    filter,
    orderOf(
      deleted ? SORTABLE_GONE : SORTABLE,
      asked.sort_by,
      asked.sort_order,
      "token",
    ),
    page,
    size,
  );
  return {
    keys: !asked.return_full_object
      ? found.rows.map((row) => row["token"])
      : deleted
        ? await shown(admin, KEY, found.rows)
        : await shownInUse(admin, found.rows),
    total_count: found.total,
    current_page: page,
    total_pages: found.pages,
  };
});

function searchFor(filter: Conditions, text: string): void {
  const found = filter.bind(text.toLowerCase());
  const has = (column: string) => `strpos(lower(${column}), ${found}) > 0`;
  filter.and(
    `(${has("key_alias")} OR ${has("key_name")} OR ${has("user_id")} OR ${has("team_id")} OR token = ${found}
      OR user_id IN (SELECT u.user_id FROM users u WHERE ${has("u.user_email")})
      OR team_id IN (SELECT t.team_id FROM teams t WHERE ${has("t.team_alias")}))`,
  );
}

const aliases = adminRoute(
  "GET /key/aliases",
  z.object({
    page: queryNumber(1, 1_000_000, 1),
    size: queryNumber(1, 1_000, 100),
    search: name.optional(),
  }),
  async (admin, { page, size, search }) => {
    const filter = reachableKeys(admin);
    filter.and("key_alias IS NOT NULL");
    if (search !== undefined) {
      containing(filter, search, ["key_alias"]);
    }
    const found = await readPage(
      admin.pool,
      "keys",
      filter,
      "key_alias",
      page,
      size,
    );
    return {
      aliases: found.rows.map((row) => row["key_alias"]),
      total_count: found.total,
      current_page: page,
      total_pages: found.pages,
    };
  },
);

/** Whoever gets as far as here has a key that works. */
const health = adminRoute("POST /key/health", z.object({}), async () => ({
  key: "healthy",
}));

export const KEY_VIEWS: readonly AdminRoute[] = [
  info,
  infoOfSeveral,
  list,
  aliases,
  health,
];
