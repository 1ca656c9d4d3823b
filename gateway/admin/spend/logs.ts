import { z } from "zod";
import { hideAddresses } from "../../calls/hide-addresses.ts";
import type { Attempt } from "../../calls/attempt.ts";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import type { Route } from "../../http/route.ts";
import { instantOf } from "../../ledger/wall-time.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { tokenOf } from "../key-tokens.ts";
import { name, queryDay, queryFlag, queryNumber } from "../kinds/values.ts";
import { conditions, type Conditions } from "../paging.ts";
import { keepReachableSpend, KEY_NOW, ofKey, RENAMED } from "./former-keys.ts";
import { spendLogRow, summedDay } from "./log-answer.ts";

const logQuery = z.object({
  api_key: name.optional(),
  user_id: name.optional(),
  team_id: name.optional(),
  end_user: name.optional(),
  request_id: name.optional(),
  start_date: queryDay.optional(),
  end_date: queryDay.optional(),
  summarize: queryFlag.default(false),
  page: queryNumber(1, 100_000, 1),
  page_size: queryNumber(1, 100, 100),
});

type LogQuery = z.output<typeof logQuery>;

/** GET /spend/logs: rows of the ledger, newest first; with `summarize` their sums by day. */
const logs = adminRoute(
  "GET /spend/logs",
  {
    summary:
      "List the rows of the ledger within reach, newest first; with summarize their sums by day.",
    input: logQuery,
    answer: z.union([z.array(spendLogRow), z.array(summedDay)]),
  },
  async (admin, input) => {
    const filter = conditions();
    await keepReachableSpend(admin, filter, "l.");
    await restrict(admin, filter, input);
    return input.summarize
      ? summary(admin, filter)
      : page(admin, filter, input);
  },
);

async function restrict(
  { pool, windowing: { timeZone } }: Admin,
  filter: Conditions,
  input: LogQuery,
): Promise<void> {
  if (input.api_key !== undefined) {
    await ofKey(pool, filter, "l.api_key", tokenOf(input.api_key));
  }
  if (input.user_id !== undefined) {
    filter.and("l.user_id = ?", input.user_id);
  }
  if (input.team_id !== undefined) {
    filter.and("l.team_id = ?", input.team_id);
  }
  if (input.end_user !== undefined) {
    filter.and("l.end_user = ?", input.end_user);
  }
  // The id of the call, or the provider's id of its answer.
  if (input.request_id !== undefined) {
    filter.and("(l.request_id = ? OR l.response_id = ?)", input.request_id);
  }
  if (input.start_date !== undefined) {
    filter.and("l.started_at >= ?", midnight(input.start_date, timeZone, 0));
  }
  if (input.end_date !== undefined) {
    filter.and("l.started_at < ?", midnight(input.end_date, timeZone, 1));
  }
}

/** The start of a day in the time zone, `daysOn` days later. */
function midnight(day: string, timeZone: string, daysOn: number): string {
  const wall = Date.parse(`${day}T00:00:00Z`) + daysOn * 86_400_000;
  return new Date(instantOf(wall, timeZone)).toISOString();
}

async function page(
  admin: Admin,
  filter: Conditions,
  { page: number, page_size: size }: LogQuery,
): Promise<readonly Row[]> {
  // The page is selected before names are joined to it.
  const rows = await query<Row>(
    admin.pool,
    `SELECT l.request_id, l.call_type, l.api_key, l.spend, l.prompt_tokens + l.completion_tokens AS total_tokens,
        l.prompt_tokens, l.completion_tokens, l.started_at AS "startTime", l.ended_at AS "endTime",
        l.completion_started_at AS "completionStartTime", l.model, l.model_id, l.model_group,
        l.provider AS custom_llm_provider, ${admin.reachesAll ? "d.api_base" : "NULL AS api_base"}, l.user_id AS "user", l.team_id, l.organization_id, l.end_user,
        coalesce(l.tags, '{}') AS request_tags, CASE WHEN l.cache_hit THEN 'True' ELSE 'False' END AS cache_hit,
        l.cache_key, l.session_id, l.status, l.requester_ip AS requester_ip_address, l.response_id, l.payer, l.saved,
        l.cached_tokens, l.cache_write_tokens, l.unpriced, p.request AS messages, p.response,
        jsonb_build_object('user_api_key', l.api_key, 'user_api_key_alias', k.key_alias, 'user_api_key_user_id', l.user_id,
          'user_api_key_team_id', l.team_id, 'user_api_key_org_id', l.organization_id, 'status', l.status,
          'error_information', NULL) || coalesce(l.metadata, '{}') AS metadata
      FROM (
        SELECT * FROM spend_log l ${filter.where()} ORDER BY l.started_at DESC, l.request_id
          LIMIT ${size} OFFSET ${(number - 1) * size}) l
      LEFT JOIN deployments d ON d.model_id = l.model_id
      ${RENAMED} LEFT JOIN keys k ON k.token = ${KEY_NOW}
      LEFT JOIN prompts p ON p.request_id = l.request_id
      ORDER BY l.started_at DESC, l.request_id`,
    filter.values,
  );
  return rows.map((row) => ({
    ...row,
    metadata: admin.reachesAll
      ? row["metadata"]
      : withoutAddresses(admin, row["metadata"] as Metadata),
    messages: parsed(row["messages"]),
    response: parsed(row["response"]),
  }));
}

interface Metadata extends Row {
  readonly error_information: { readonly error_message?: string } | null;
  readonly attempts?: readonly Attempt[];
}

/** Errors as the caller got them; internal addresses in the rows are for operators only. */
function withoutAddresses({ gateway }: Admin, metadata: Metadata): Metadata {
  const { error_information: error, attempts } = metadata;
  const hide = (text: string) => hideAddresses(gateway.catalog, text);
  return {
    ...metadata,
    error_information:
      error?.error_message === undefined
        ? error
        : { ...error, error_message: hide(error.error_message) },
    ...(attempts === undefined
      ? {}
      : {
          attempts: attempts.map((attempt) => ({
            ...attempt,
            error: hide(attempt.error),
          })),
        }),
  };
}

/** Parsed JSON, or the text where it was cut because of its length. */
function parsed(text: unknown): unknown {
  if (typeof text !== "string") {
    return null;
  }
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Spend by day, with its users and models. */
function summary(admin: Admin, filter: Conditions): Promise<readonly Row[]> {
  filter.and("l.payer IS NULL");
  return query(
    admin.pool,
    `WITH cells AS (
        SELECT l.day, coalesce(l.user_id, '') AS user_id, coalesce(l.model_group, '') AS model, sum(l.spend) AS spend
          FROM spend_log l ${filter.where()} GROUP BY 1, 2, 3)
      SELECT to_char(day, 'YYYY-MM-DD') AS "startTime", sum(spend) AS spend,
          (SELECT jsonb_object_agg(user_id, spend) FROM (SELECT user_id, sum(spend) AS spend FROM cells c WHERE c.day = cells.day GROUP BY 1) u) AS users,
          (SELECT jsonb_object_agg(model, spend) FROM (SELECT model, sum(spend) AS spend FROM cells c WHERE c.day = cells.day GROUP BY 1) m) AS models
        FROM cells GROUP BY day ORDER BY day`,
    filter.values,
  );
}

export const LOGS: readonly Route[] = [logs];
