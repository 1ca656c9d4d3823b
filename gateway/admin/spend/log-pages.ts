import { z } from "zod";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import { CallError, invalidParam } from "../../http/errors.ts";
import type { Route } from "../../http/route.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { out } from "../kinds/out.ts";
import { name, queryFlag, queryNumber } from "../kinds/values.ts";
import {
  applyFilters,
  conditions,
  pageOf,
  type Conditions,
  type Filters,
} from "../paging.ts";
import { keepReachableSpend } from "./former-keys.ts";
import { spendLogRow } from "./log-answer.ts";
import { namedInLog, restrictToNamed } from "./log-filters.ts";
import { queryMoment, keepRange } from "./log-range.ts";
import { DURATION_MS, readLog } from "./log-rows.ts";

/** Rows are counted, and pages can be skipped, up to here; beyond it `cursor` continues. */
const MAX_COUNTED = 10_000;

const SORTABLE = {
  startTime: "l.started_at",
  endTime: "l.ended_at",
  spend: "l.spend",
  total_tokens: "l.prompt_tokens + l.completion_tokens",
  request_duration_ms: DURATION_MS,
  model: "l.model",
  ttft_ms:
    "CASE WHEN l.completion_started_at < l.ended_at THEN l.completion_started_at - l.started_at END",
} as const;

type SortField = keyof typeof SORTABLE;
const SORT_FIELDS = Object.keys(SORTABLE) as readonly SortField[];

const KEYS_OF_ALIAS = "SELECT token FROM keys WHERE strpos(key_alias, ?) > 0";

const FILTERS: Filters = {
  session_id: "strpos(l.session_id, ?) > 0",
  model: "l.model = ?",
  model_id: "l.model_id = ?",
  model_group: "l.model_group = ?",
  key_alias: `l.api_key IN (${KEYS_OF_ALIAS} UNION ALL SELECT old_token FROM rotated_keys WHERE token IN (${KEYS_OF_ALIAS}))`,
  status_filter: "l.status = ?",
  min_spend: "l.spend >= ?",
  max_spend: "l.spend <= ?",
  error_code: "l.metadata #>> '{error_information,error_code}' = ?",
  error_message:
    "strpos(l.metadata #>> '{error_information,error_message}', ?) > 0",
};

const dollars = z
  .string()
  .regex(/^\d+(\.\d+)?(e-?\d+)?$/i, "must be a number of dollars")
  .meta({ type: "number", pattern: undefined })
  .transform(Number)
  .optional();

const filters = {
  session_id: name.optional(),
  model: name.optional(),
  model_id: name.optional(),
  model_group: name.optional(),
  key_alias: name.optional(),
  status_filter: z
    .enum(
      ["success", "failure", "interrupted"],
      "must be success, failure or interrupted",
    )
    .optional(),
  cache_hit_filter: z.enum(["hit", "miss"], "must be hit or miss").optional(),
  min_spend: dollars,
  max_spend: dollars,
  error_code: name.optional(),
  error_message: name.optional(),
  exclude_internal_health_checks: queryFlag.default(false),
} as const;

const pagesQuery = z.object({
  ...namedInLog,
  ...filters,
  start_date: queryMoment.optional(),
  end_date: queryMoment.optional(),
  sort_by: z
    .enum(SORT_FIELDS, `must be one of ${SORT_FIELDS.join(", ")}`)
    .default("startTime"),
  sort_order: z.enum(["asc", "desc"], "must be asc or desc").default("desc"),
  page: queryNumber(1, MAX_COUNTED, 1),
  page_size: queryNumber(1, 1_000, 50),
  cursor: name.optional(),
  count_up_to: queryNumber(0, MAX_COUNTED, MAX_COUNTED),
});

type PagesQuery = z.output<typeof pagesQuery>;

/** GET /spend/logs/v2: a page of rows of the ledger in a range of time. */
const pages = adminRoute(
  "GET /spend/logs/v2",
  {
    summary:
      "Page through the rows of the ledger within reach in a range of time (not needed with request_id), filtered and sorted. Rows are counted up to 10,000, or count_up_to; next_cursor continues beyond them.",
    input: pagesQuery,
    answer: pageOf("data", spendLogRow).extend({
      total_is_capped: z.boolean(),
      next_cursor: out.text.nullable().meta({
        description:
          "The `cursor` of the next page, sorted by startTime; null: there is none.",
      }),
    }),
  },
  async (admin, input) => {
    rejectUnfit(input);
    denyErrorSearch(admin, input);
    const filter = conditions();
    await keepReachableSpend(admin, filter, "l.");
    await restrictToNamed(admin, filter, input);
    applyFilters(filter, FILTERS, input);
    if (input.cache_hit_filter !== undefined) {
      filter.and("l.cache_hit = ?", input.cache_hit_filter === "hit");
    }
    if (input.exclude_internal_health_checks) {
      filter.and("l.call_type <> 'health_check'");
    }
    keepRange(filter, input, admin.windowing.timeZone);
    const { count_up_to: limit, page_size: size } = input;
    const [counted, page] = await Promise.all([
      // First: the cursor restricts only the page.
      limit === 0 ? 0 : countUpTo(limit, admin, filter),
      readPage(admin, filter, input),
    ]);
    const total = Math.min(counted, limit);
    return {
      ...page,
      total,
      total_is_capped: limit === 0 ? page.data.length > 0 : counted > limit,
      total_pages: Math.ceil(total / size),
    };
  },
  ["/spend/logs/ui"],
);

function rejectUnfit(input: PagesQuery): void {
  const { sort_by: sortBy, page, page_size: size, cursor } = input;
  const missing = (["start_date", "end_date"] as const).find(
    (field) => input[field] === undefined,
  );
  if (missing !== undefined && input.request_id === undefined) {
    throw invalidParam(
      missing,
      "is required, such as 2026-11-21 or 2026-11-21 12:00:00 (UTC).",
    );
  }
  if ((page - 1) * size >= MAX_COUNTED) {
    throw invalidParam(
      "page",
      `must be at most ${Math.ceil(MAX_COUNTED / size)} with this \`page_size\`: continue with \`cursor\`, the \`next_cursor\` of the page before.`,
    );
  }
  if (cursor !== undefined && (sortBy !== "startTime" || page !== 1)) {
    throw invalidParam(
      "cursor",
      "must not be combined with `page`, or with a `sort_by` other than startTime.",
    );
  }
}

/** A search in the stored text would tell the addresses that are hidden from those who do not see all. */
function denyErrorSearch({ reachesAll }: Admin, input: PagesQuery): void {
  if (!reachesAll && input.error_message !== undefined) {
    throw new CallError(
      "permission_denied",
      "Only those who see all calls may search by `error_message`: GET /spend/calls searches errors as they are shown (`error`).",
      { param: "error_message" },
    );
  }
}

/** The number of rows, at most one more than the limit; by the conditions as they are when it is called. */
async function countUpTo(
  limit: number,
  admin: Admin,
  filter: Conditions,
): Promise<number> {
  const [row] = await query<{ count: number }>(
    admin.pool,
    `SELECT count(*) AS count FROM (SELECT FROM spend_log l ${filter.where()} LIMIT ${limit + 1}) counted`,
    [...filter.values],
  );
  return row?.count ?? 0;
}

async function readPage(admin: Admin, filter: Conditions, input: PagesQuery) {
  const { sort_by: sortBy, sort_order: way, cursor, page } = input;
  const size = input.page_size;
  if (cursor !== undefined) {
    const at = await momentOf(admin, cursor);
    filter.and(
      `(l.started_at, l.request_id) ${way === "desc" ? "<" : ">"} (?::timestamptz, ${filter.bind(cursor)})`,
      at,
    );
  }
  const rows = await readLog(admin, {
    filter,
    order: orderBy(sortBy, way),
    // One more tells whether there is a next page.
    limit: size + 1,
    offset: (page - 1) * size,
  });
  const data = rows.slice(0, size);
  const last =
    rows.length > size ? (data.at(-1)?.["request_id"] ?? null) : null;
  return {
    data,
    page,
    page_size: size,
    next_cursor: sortBy === "startTime" ? last : null,
  };
}

/** The index of times orders the rows without a sort; of columns that may be null, rows without a value come last. */
function orderBy(sortBy: SortField, way: "asc" | "desc"): string {
  const nulls = sortBy === "startTime" ? "" : " NULLS LAST";
  return `${SORTABLE[sortBy]} ${way}${nulls}, l.request_id ${way}`;
}

/** Exactly, as a text: a date of JavaScript has no microseconds. */
async function momentOf({ pool }: Admin, requestId: string): Promise<string> {
  const [row] = await query<Row>(
    pool,
    "SELECT started_at::text AS at FROM spend_log WHERE request_id = $1",
    [requestId],
  );
  if (row === undefined) {
    throw invalidParam(
      "cursor",
      "must be the `next_cursor` of an answer; its row is no longer in the ledger.",
    );
  }
  return String(row["at"]);
}

export const LOG_PAGES: readonly Route[] = [pages];
