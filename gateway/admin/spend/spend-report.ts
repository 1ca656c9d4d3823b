import { z } from "zod";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import { adminRoute } from "../admin-route.ts";
import { tokenOf } from "../key-tokens.ts";
import { out } from "../kinds/out.ts";
import { name, queryLimit } from "../kinds/values.ts";
import { dailyRowsWith, type PayerColumn } from "./daily-rows.ts";
import { DAY, dayRange, onDays } from "./days.ts";
import { ofKey } from "./former-keys.ts";
import { keySpend, spendByKey } from "./spend-by-key.ts";
import {
  everyDay,
  MAX_NAMES,
  mostExpensiveOfEachDay,
} from "./most-expensive.ts";

const reportOf = z.object({
  id: out.text,
  total_spend: out.dollars,
  metadata: z.array(
    z.object({
      model: out.text,
      spend: out.dollars,
      total_tokens: out.count,
      api_requests: out.count,
    }),
  ),
});
const named = <Name extends string>(name: Name) =>
  z.array(reportOf.extend({ [name]: out.text })).optional();

/** Upper limit of names of a day. */
const MAX_LISTED = 1_000;

interface Grouping {
  /** null: the model, which every daily row has. */
  readonly payer: PayerColumn | null;
  readonly list: string;
  readonly name: string;
  /** Names of a day by default: the most expensive ones. */
  readonly limit: number;
}

/** What GET /global/spend/report can group by, with the names of the list and of its entries. */
const GROUPS = {
  team: {
    payer: "team_id",
    list: "teams",
    name: "team_name",
    limit: MAX_LISTED,
  },
  customer: {
    payer: "end_user",
    list: "customers",
    name: "customer",
    limit: MAX_NAMES,
  },
  user: {
    payer: "user_id",
    list: "users",
    name: "user_id",
    limit: MAX_NAMES,
  },
  api_key: {
    payer: "api_key",
    list: "api_keys",
    name: "api_key",
    limit: MAX_NAMES,
  },
  organization: {
    payer: "organization_id",
    list: "organizations",
    name: "organization_id",
    limit: MAX_LISTED,
  },
  model: {
    payer: null,
    list: "models",
    name: "model",
    limit: MAX_LISTED,
  },
} as const satisfies Record<string, Grouping>;

/** GET /global/spend/report */
export const spendReport = adminRoute(
  "GET /global/spend/report",
  {
    summary:
      "Get spend by day, grouped by team, customer, user, key, organization or model; of each day the most expensive, up to limit. Without group_by, of a key (api_key) or of each key of a user (internal_user_id).",
    input: z.object({
      ...dayRange,
      group_by: z
        .enum(
          Object.keys(GROUPS) as [keyof typeof GROUPS],
          `must be one of ${Object.keys(GROUPS).join(", ")}`,
        )
        .optional(),
      api_key: name.optional(),
      internal_user_id: name.optional(),
      team_id: name.optional(),
      customer_id: name.optional(),
      limit: queryLimit(MAX_LISTED),
    }),
    answer: z.array(
      z.union([
        keySpend,
        z.object({
          group_by_day: out.day,
          teams: named("team_name"),
          customers: named("customer"),
          users: named("user_id"),
          api_keys: named("api_key"),
          organizations: named("organization_id"),
          models: named("model"),
        }),
      ]),
    ),
  },
  async (admin, input) => {
    const { group_by: group = "team" } = input;
    if (
      input.group_by === undefined &&
      (input.api_key ?? input.internal_user_id) !== undefined
    ) {
      return spendByKey(admin, input, input.limit ?? MAX_LISTED);
    }
    const { payer, list, name: named, limit } = GROUPS[group];
    const filter = onDays(admin, input);
    const columns: PayerColumn[] = payer === null ? [] : [payer];
    const only = (column: PayerColumn, value: string | undefined) => {
      if (value === undefined) {
        return;
      }
      filter.and(`${column} = ?`, value);
      columns.push(column);
    };
    only("user_id", input.internal_user_id);
    only("team_id", input.team_id);
    only("end_user", input.customer_id);
    if (input.api_key !== undefined) {
      await ofKey(admin.pool, filter, "api_key", tokenOf(input.api_key));
      columns.push("api_key");
    }
    const label =
      group === "team" ? "coalesce(t.team_alias, c.name)" : "c.name";
    const cells = mostExpensiveOfEachDay({
      days: everyDay(admin, input, filter),
      from: dailyRowsWith(columns),
      filter,
      column: payer ?? "model_group",
      limit: input.limit ?? limit,
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
