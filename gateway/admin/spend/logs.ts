import { z } from "zod";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import { invalidParam } from "../../http/errors.ts";
import type { Route } from "../../http/route.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { queryDay, queryFlag, queryNumber } from "../kinds/values.ts";
import { conditions, type Conditions } from "../paging.ts";
import { keepReachableSpend } from "./former-keys.ts";
import { spendLogWithPrompts, summedDay } from "./log-answer.ts";
import {
  endOfDay,
  namedInLog,
  restrictToNamed,
  startOfDay,
} from "./log-filters.ts";
import { readLogWithPrompts } from "./log-rows.ts";
import { LOG_PAGES } from "./log-pages.ts";

const logQuery = z.object({
  ...namedInLog,
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
    answer: z.union([z.array(spendLogWithPrompts), z.array(summedDay)]),
  },
  async (admin, input) => {
    const { start_date: start, end_date: end } = input;
    if (start !== undefined && end !== undefined && start > end) {
      throw invalidParam("end_date", "must be on or after `start_date`.");
    }
    const filter = conditions();
    await keepReachableSpend(admin, filter, "l.");
    await restrictToNamed(admin, filter, input);
    return input.summarize
      ? summary(admin, filter, input)
      : page(admin, filter, input);
  },
);

/** Prompts and answers are shown where they are stored. */
function page(
  admin: Admin,
  filter: Conditions,
  { page: number, page_size: size, start_date, end_date }: LogQuery,
): Promise<readonly Row[]> {
  const { timeZone } = admin.windowing;
  if (start_date !== undefined) {
    filter.and("l.started_at >= ?", startOfDay(start_date, timeZone));
  }
  if (end_date !== undefined) {
    filter.and("l.started_at < ?", endOfDay(end_date, timeZone));
  }
  return readLogWithPrompts(admin, {
    filter,
    order: "l.started_at DESC, l.request_id",
    limit: size,
    offset: (number - 1) * size,
  });
}

/**
 * Spend by day, with its users and models: as in every report, a call belongs to the day on which it ended. Daily rows have the
 * same sums as the ledger, except those of a single call.
 */
function summary(
  admin: Admin,
  filter: Conditions,
  { start_date, end_date, request_id }: LogQuery,
): Promise<readonly Row[]> {
  const table = request_id === undefined ? "daily_spend" : "spend_log";
  if (table === "spend_log") {
    filter.and("l.payer IS NULL");
  }
  if (start_date !== undefined) {
    filter.and("l.day >= ?", start_date);
  }
  if (end_date !== undefined) {
    filter.and("l.day <= ?", end_date);
  }
  return query(
    admin.pool,
    `WITH cells AS (
        SELECT l.day, coalesce(l.user_id, '') AS user_id, coalesce(l.model_group, '') AS model, sum(l.spend) AS spend
          FROM ${table} l ${filter.where()} GROUP BY 1, 2, 3),
        users AS (SELECT day, sum(spend) AS spend, jsonb_object_agg(user_id, spend) AS users
          FROM (SELECT day, user_id, sum(spend) AS spend FROM cells GROUP BY 1, 2) of_users GROUP BY 1),
        models AS (SELECT day, jsonb_object_agg(model, spend) AS models
          FROM (SELECT day, model, sum(spend) AS spend FROM cells GROUP BY 1, 2) of_models GROUP BY 1)
      SELECT to_char(day, 'YYYY-MM-DD') AS "startTime", spend, users, models FROM users JOIN models USING (day) ORDER BY day`,
    filter.values,
  );
}

export const LOGS: readonly Route[] = [logs, ...LOG_PAGES];
