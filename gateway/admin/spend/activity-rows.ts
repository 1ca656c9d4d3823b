import { query } from "../../database/pool.ts";
import type { Admin } from "../admin-route.ts";
import type { Conditions } from "../paging.ts";
import { dailyRowsWith, type PayerColumn } from "./daily-rows.ts";
import { DAY, METRIC_NAMES, METRICS, type Metrics } from "./days.ts";
import { MAX_NAMES, mostExpensiveOfEachDay } from "./most-expensive.ts";

/** The parts of a day; `entities` are those that the route is about, such as teams. */
export const BREAKDOWN = [
  "models",
  "model_groups",
  "providers",
  "api_keys",
  "entities",
] as const;

export type Breakdown = (typeof BREAKDOWN)[number];

export interface ActivityRow extends Metrics {
  readonly date: string;
  /** The breakdown of the row; null: the whole day. */
  readonly part: Breakdown | null;
  readonly name: string | null;
  /** Of a key, with the team that it belongs to. */
  readonly key_alias: string | null;
  readonly team_id: string | null;
  /** The alias of a payer, such as `{team_alias}`; null: not a payer, or without aliases. */
  readonly payer: Readonly<Record<string, string | null>> | null;
}

/** Where the days of payers are, and what they are called. */
export interface ActivitySource {
  /** The column of `daily_spend` that names the payer; null: a tag, whose days are in their own table. */
  readonly column: PayerColumn | null;
  /** The table of the payers' aliases, if they have one, with the columns of id and alias. */
  readonly aliases: readonly [string, string, string] | null;
}

interface ActivityQuestion {
  readonly filter: Conditions;
  /** The filter names keys. */
  readonly byKey: boolean;
  /** The filter names no payers of `column`, and rows without one are included. */
  readonly ofAll: boolean;
  /** Keys shown of a day, most expensive first. */
  readonly keys: number;
  /** The days whose parts are read, of those with calls; null: all. */
  readonly page: PageOfDays | null;
}

export interface PageOfDays {
  /** The first one is 1. */
  readonly page: number;
  /** Days. */
  readonly page_size: number;
}

/** The sums of each day, and of the most expensive parts of each shown day; newest day first. */
export function readActivity(
  admin: Admin,
  { column, aliases }: ActivitySource,
  { filter, byKey, ofAll, keys: keyLimit, page }: ActivityQuestion,
): Promise<readonly ActivityRow[]> {
  const where = filter.where();
  const table = column === null ? "daily_tag_spend" : "daily_spend";
  // There are many keys and few models: the sums of models are read from rows without keys where possible.
  const keyColumns: readonly PayerColumn[] = byKey ? ["api_key"] : [];
  const rowsWith = (...columns: readonly PayerColumn[]) =>
    column === null ? table : dailyRowsWith([...columns, ...keyColumns]);
  const payerRows = column === null ? table : rowsWith(column);
  const modelRows = ofAll ? rowsWith() : payerRows;
  const top = (from: string, column: string, limit: number) =>
    mostExpensiveOfEachDay({
      days: "SELECT day AS of_day FROM shown",
      from,
      filter,
      column,
      limit,
      sums: METRICS,
    });
  const named = METRIC_NAMES.join(", ");
  return query<ActivityRow>(
    admin.pool,
    `WITH by_model AS (SELECT day, model, model_group, provider, ${METRICS} FROM ${modelRows} ${where} GROUP BY day, model, model_group, provider),
      shown AS (SELECT DISTINCT day FROM by_model ORDER BY day DESC ${rowsOfPage(page)}),
      sums AS (
        SELECT day, CASE WHEN grouping(model) = 0 THEN 'models' WHEN grouping(model_group) = 0 THEN 'model_groups' WHEN grouping(provider) = 0 THEN 'providers' END AS part,
            coalesce(model, model_group, provider) AS name, ${METRIC_NAMES.map((metric) => `sum(${metric}) AS ${metric}`).join(", ")}
          FROM by_model GROUP BY GROUPING SETS ((day), (day, model), (day, model_group), (day, provider))
        UNION ALL
        SELECT day, 'api_keys', name, ${named} FROM (${top(table, "api_key", keyLimit)}) keys
        UNION ALL
        SELECT day, 'entities', name, ${named} FROM (${top(payerRows, column ?? "tag", MAX_NAMES)}) entities),
      ranked AS (SELECT *, row_number() OVER (PARTITION BY day, part ORDER BY spend DESC, name) AS place FROM sums)
      SELECT ${DAY} AS date, part, name, k.key_alias, k.team_id, ${aliasOf(aliases)} AS payer, ${METRIC_NAMES.map((metric) => `r.${metric}`).join(", ")}
        FROM ranked r LEFT JOIN keys k ON r.part = 'api_keys' AND k.token = r.name
        WHERE place <= CASE part WHEN 'api_keys' THEN ${keyLimit} ELSE ${MAX_NAMES} END AND (part IS NULL OR name <> '' AND day IN (SELECT day FROM shown)) ORDER BY day DESC, place`,
    filter.values,
  );
}

function rowsOfPage(page: PageOfDays | null): string {
  return page === null
    ? ""
    : `LIMIT ${page.page_size} OFFSET ${(page.page - 1) * page.page_size}`;
}

function aliasOf(aliases: ActivitySource["aliases"]): string {
  if (aliases === null) {
    return "NULL";
  }
  const [table, id, alias] = aliases;
  return `CASE part WHEN 'entities' THEN jsonb_build_object('${alias}', (SELECT ${alias} FROM ${table} WHERE ${id} = r.name)) END`;
}
