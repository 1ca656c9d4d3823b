import { z } from "zod";
import { name, queryLimit, queryNumber } from "../fields.ts";
import { tokenOf } from "../key-fields.ts";
import type { Conditions } from "../paging.ts";
import { adminRoute, type Admin, type AdminRoute } from "../route.ts";
import { LIFETIME, windowAt } from "../../ledger/windows.ts";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import { readTotals } from "../../database/totals.ts";
import { dailyRowsWith, type PayerColumn } from "./daily-rows.ts";
import { DAY, dayRange, onDays } from "./days.ts";
import { dearestOfEachDay, MOST_NAMES } from "./dearest.ts";
import { KEY_NOW, ofKey, RENAMED } from "./former-keys.ts";

/** GET /global/spend: of the whole proxy, in its budget's window. */
const spend = adminRoute("GET /global/spend", z.object({}), async (admin) => {
  const { maxBudget, budgetDuration } = admin.gateway.config.general;
  const window = windowAt(budgetDuration, admin.now, admin.windowing.timeZone);
  const [current, total] = await readTotals(admin.pool, [
    { entity: "proxy:", window: window.name },
    { entity: "proxy:", window: LIFETIME.name },
  ]);
  return {
    spend: current?.spend ?? 0,
    total_spend: total?.spend ?? 0,
    max_budget: maxBudget,
    budget_duration: budgetDuration,
    budget_reset_at: Number.isFinite(window.end)
      ? new Date(window.end).toISOString()
      : null,
  };
});

const ranged = z.object({
  ...dayRange,
  api_key: name.optional(),
  limit: queryNumber(1, 1_000, 100),
});

type Ranged = z.output<typeof ranged>;

async function filterOf(admin: Admin, asked: Ranged): Promise<Conditions> {
  const filter = onDays(admin, asked);
  if (asked.api_key !== undefined) {
    await ofKey(admin.pool, filter, "api_key", tokenOf(asked.api_key));
  }
  return filter;
}

/** A report that is one statement over the days asked for, made from daily rows with `columns`. */
function report(
  route: Parameters<typeof adminRoute>[0],
  columns: readonly PayerColumn[],
  statement: (from: string, where: string, limit: number) => string,
  answer: (rows: readonly Row[]) => unknown = (rows) => rows,
): AdminRoute {
  return adminRoute(route, ranged, async (admin, asked) => {
    const filter = await filterOf(admin, asked);
    const from = dailyRowsWith(
      asked.api_key === undefined ? columns : [...columns, "api_key"],
    );
    return answer(
      await query<Row>(
        admin.pool,
        statement(from, filter.where(), asked.limit),
        filter.values,
      ),
    );
  });
}

/** What was spent by each value of a column, the dearest first. */
function dearest(column: string, as: string, spend: string, joined = "") {
  return (from: string, where: string, limit: number) =>
    `SELECT ${column} AS ${as}, sum(spend) AS ${spend}, sum(requests) AS api_requests,
        sum(prompt_tokens + completion_tokens) AS total_tokens
      FROM ${from} ${joined} ${where} AND ${column} <> '' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${limit}`;
}

const logs = report(
  "GET /global/spend/logs",
  [],
  (from, where) =>
    `SELECT ${DAY} AS date, sum(spend) AS spend FROM ${from} ${where} GROUP BY day ORDER BY day`,
);

const keys = report(
  "GET /global/spend/keys",
  ["api_key"],
  (from, where, limit) =>
    `SELECT d.*, k.key_alias, k.key_name FROM (${dearest(KEY_NOW, "api_key", "total_spend", RENAMED)(from, where, limit)}) d
       LEFT JOIN keys k ON k.token = d.api_key ORDER BY total_spend DESC, api_key`,
);

const models = report(
  "GET /global/spend/models",
  [],
  dearest("model_group", "model", "total_spend"),
);

const providers = report(
  "GET /global/spend/provider",
  [],
  dearest("provider", "provider", "spend"),
);

const teams = report(
  "GET /global/spend/teams",
  ["team_id"],
  (from, where) =>
    `SELECT ${DAY} AS date, d.team_id, coalesce(t.team_alias, d.team_id) AS team, sum(d.spend) AS spend
       FROM (SELECT day, team_id, sum(spend) AS spend FROM ${from} ${where} AND team_id <> '' GROUP BY 1, 2) d
       LEFT JOIN teams t ON t.team_id = d.team_id GROUP BY 1, 2, 3 ORDER BY 1, 2`,
  (rows) => {
    const days = Map.groupBy(rows, (row) => String(row["date"]));
    const byTeam = Map.groupBy(rows, (row) => String(row["team_id"]));
    return {
      daily_spend: [...days].map(([date, ofDay]) => ({
        date,
        ...Object.fromEntries(
          ofDay.map((row) => [String(row["team"]), row["spend"]]),
        ),
      })),
      teams: [...new Set(rows.map((row) => row["team"]))],
      total_spend_per_team: [...byTeam].map(([id, ofTeam]) => ({
        team_id: id,
        team: ofTeam[0]?.["team"],
        total_spend: ofTeam.reduce((sum, row) => sum + Number(row["spend"]), 0),
      })),
    };
  },
);

const tags = report(
  "GET /global/spend/tags",
  [],
  (_, where, limit) =>
    `SELECT tag AS name, sum(spend) AS spend, sum(requests) AS log_count FROM daily_tag_spend ${where}
       GROUP BY tag ORDER BY 2 DESC, 1 LIMIT ${limit}`,
  (rows) => ({ spend_per_tag: rows }),
);

const daily = `${DAY} AS date, sum(requests) AS api_requests, sum(prompt_tokens + completion_tokens) AS total_tokens,
  sum(spend) AS spend, sum(failed) AS failed_requests`;

function sumOf(rows: readonly Row[], column: string): number {
  return rows.reduce((sum, row) => sum + Number(row[column]), 0);
}

const activity = report(
  "GET /global/activity",
  [],
  (from, where) =>
    `SELECT ${daily} FROM ${from} ${where} GROUP BY day ORDER BY day`,
  (rows) => ({
    daily_data: rows,
    sum_api_requests: sumOf(rows, "api_requests"),
    sum_total_tokens: sumOf(rows, "total_tokens"),
  }),
);

const modelActivity = report(
  "GET /global/activity/model",
  [],
  (from, where) =>
    `SELECT model_group AS model, ${daily} FROM ${from} ${where} AND model_group <> '' GROUP BY model_group, day ORDER BY day`,
  (rows) =>
    [...Map.groupBy(rows, (row) => row["model"])]
      .map(([model, ofModel]) => ({
        model,
        daily_data: ofModel.map(({ model: _, ...day }) => day),
        sum_api_requests: sumOf(ofModel, "api_requests"),
        sum_total_tokens: sumOf(ofModel, "total_tokens"),
      }))
      .sort((one, other) => other.sum_api_requests - one.sum_api_requests),
);

const cacheHits = report(
  "GET /global/activity/cache_hits",
  [],
  (from, where) =>
    `SELECT ${DAY} AS date, sum(cache_hits) AS cache_hits, sum(requests - cache_hits) AS cache_misses, sum(saved) AS saved
       FROM ${from} ${where} GROUP BY day ORDER BY day`,
  (rows) => {
    const hits = sumOf(rows, "cache_hits");
    const misses = sumOf(rows, "cache_misses");
    return {
      daily_data: rows,
      sum_cache_hits: hits,
      sum_cache_misses: misses,
      sum_saved: sumOf(rows, "saved"),
      hit_rate: hits + misses === 0 ? 0 : hits / (hits + misses),
    };
  },
);

/** The most that is ever listed of a day. */
const MOST_LISTED = 1_000;

interface Grouping {
  /** null: the model, which every daily row has. */
  readonly payer: PayerColumn | null;
  readonly list: string;
  readonly name: string;
  /** Listed of a day where nobody says how many: of what there is much, the dearest. */
  readonly most: number;
}

/** What GET /global/spend/report can group by, and what its list and its names are called. */
const GROUPS = {
  team: {
    payer: "team_id",
    list: "teams",
    name: "team_name",
    most: MOST_LISTED,
  },
  customer: {
    payer: "end_user",
    list: "customers",
    name: "customer",
    most: MOST_NAMES,
  },
  user: {
    payer: "user_id",
    list: "users",
    name: "user_id",
    most: MOST_NAMES,
  },
  api_key: {
    payer: "api_key",
    list: "api_keys",
    name: "api_key",
    most: MOST_NAMES,
  },
  organization: {
    payer: "organization_id",
    list: "organizations",
    name: "organization_id",
    most: MOST_LISTED,
  },
  model: {
    payer: null,
    list: "models",
    name: "model",
    most: MOST_LISTED,
  },
} as const satisfies Record<string, Grouping>;

const grouped = adminRoute(
  "GET /global/spend/report",
  z.object({
    ...dayRange,
    group_by: z
      .enum(
        Object.keys(GROUPS) as [keyof typeof GROUPS],
        `it may be ${Object.keys(GROUPS).join(", ")}`,
      )
      .default("team"),
    api_key: name.optional(),
    internal_user_id: name.optional(),
    team_id: name.optional(),
    customer_id: name.optional(),
    limit: queryLimit(MOST_LISTED),
  }),
  async (admin, asked) => {
    const { payer, list, name: named, most } = GROUPS[asked.group_by];
    const filter = onDays(admin, asked);
    const columns: PayerColumn[] = payer === null ? [] : [payer];
    const only = (column: PayerColumn, value: string | undefined) => {
      if (value === undefined) {
        return;
      }
      filter.and(`${column} = ?`, value);
      columns.push(column);
    };
    only("user_id", asked.internal_user_id);
    only("team_id", asked.team_id);
    only("end_user", asked.customer_id);
    if (asked.api_key !== undefined) {
      await ofKey(admin.pool, filter, "api_key", tokenOf(asked.api_key));
      columns.push("api_key");
    }
    const label =
      asked.group_by === "team" ? "coalesce(t.team_alias, c.name)" : "c.name";
    const cells = dearestOfEachDay(admin, asked, {
      from: dailyRowsWith(columns),
      filter,
      column: payer ?? "model_group",
      most: asked.limit ?? most,
      sums: `model_group AS model, sum(spend) AS spend, sum(prompt_tokens + completion_tokens) AS total_tokens, sum(requests) AS api_requests`,
      by: "model_group",
    });
    return query<Row>(
      admin.pool,
      `WITH named AS (
          SELECT day, name, sum(spend) AS total_spend,
              json_agg(json_build_object('model', model, 'spend', spend, 'total_tokens', total_tokens, 'api_requests', api_requests) ORDER BY spend DESC) AS metadata
            FROM (${cells}) cells GROUP BY 1, 2)
        SELECT ${DAY} AS group_by_day,
            json_agg(json_build_object('${named}', ${label}, 'id', c.name, 'total_spend', c.total_spend, 'metadata', c.metadata) ORDER BY c.total_spend DESC) AS ${list}
          FROM named c LEFT JOIN teams t ON t.team_id = c.name GROUP BY day ORDER BY day`,
      filter.values,
    );
  },
);

export const GLOBAL: readonly AdminRoute[] = [
  spend,
  logs,
  keys,
  models,
  providers,
  teams,
  tags,
  activity,
  modelActivity,
  cacheHits,
  grouped,
];
