import { z } from "zod";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import { CallError } from "../../http/errors.ts";
import type { Route } from "../../http/route.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { out } from "../kinds/out.ts";
import { queryFlag, queryNumber } from "../kinds/values.ts";
import { conditions } from "../paging.ts";
import {
  callFilters,
  restrictionsOf,
  type Restrictions,
} from "./call-filters.ts";
import { chosenNames, recentNames, rejectUnused } from "./call-names.ts";
import { CALL_PAGES } from "./call-page.ts";
import { searchCalls, type Found, type Position } from "./call-search.ts";
import { spendLogRow } from "./log-answer.ts";
import { readLog } from "./log-rows.ts";

/** Calls of a search without other conditions are counted up to here. */
const MAX_COUNTED = 10_000;
const MAX_SIZE = 200;

const input = z.object({
  ...callFilters,
  older: z.string().max(300).optional().meta({
    description: "Continue with calls before this place, from an answer.",
  }),
  newer: z.string().max(300).optional().meta({
    description: "Instead, with calls after this place.",
  }),
  page_size: queryNumber(1, MAX_SIZE, 50),
  with_names: queryFlag.default(false).meta({
    description:
      "Add the models and providers of recent calls, and the names of what is selected by hash and id.",
  }),
});

const place = out.text.nullable();

/** GET /spend/calls: the last calls that fit, newest first. */
const calls = adminRoute(
  "GET /spend/calls",
  {
    summary:
      "List the last calls within reach, newest first. A search reads the ledger for a short time: `searched_back_to` says how far, and `older` continues there.",
    input,
    answer: z.object({
      data: z.array(spendLogRow),
      older: place.meta({
        description: "The `older` of the next page; null: there is none.",
      }),
      newer: place.meta({
        description: "The `newer` of the previous page; null: there is none.",
      }),
      searched_back_to: out.moment.nullable().meta({
        description: "null: everything in the range was searched.",
      }),
      total: out.count.nullable().meta({
        description: "null: the calls were not counted.",
      }),
      total_is_capped: z.boolean(),
      models: out.texts,
      providers: out.texts,
      names: z.object({ key: place, user: place, team: place }),
    }),
  },
  async (admin, asked) => {
    const restrictions = await restrictionsOf(admin, asked);
    const { older, newer, page_size: size, error } = asked;
    if (older !== undefined && newer !== undefined) {
      throw unfit("newer", "must not be combined with `older`");
    }
    const from = placeOf("older", older) ?? placeOf("newer", newer);
    const order = newer === undefined ? "desc" : "asc";
    const search = { ...restrictions, order, from, size } as const;
    const isNamed = asked.with_names && admin.reachesAll;
    const [found, counted, recent, names] = await Promise.all([
      searchCalls(admin, search),
      from === null ? countOf(admin, restrictions) : null,
      isNamed ? recentNames(admin) : { models: [], providers: [] },
      chosenNames(admin, isNamed ? asked : {}),
    ]);
    if (found.calls.length === 0 && found.next === null && from === null) {
      await rejectUnused(admin, asked);
    }
    const rows = await readFound(admin, found);
    return {
      // Addresses in errors are hidden from those who do not see all, and cannot be searched for.
      data: admin.reachesAll ? rows : rows.filter(has(error)),
      ...placesOf(found, from, order),
      ...totalOf(found, from, counted),
      ...recent,
      names,
    };
  },
);

function has(error: string | undefined): (row: Row) => boolean {
  if (error === undefined) {
    return () => true;
  }
  return ({ metadata }) => {
    const { error_information: information } = metadata as {
      readonly error_information: { readonly error_message?: string } | null;
    };
    const message = information?.error_message ?? "";
    return message.toLowerCase().includes(error.toLowerCase());
  };
}

/** The rows of a page, newest first, with the names that belong to them. */
async function readFound(
  admin: Admin,
  { calls: found }: Found,
): Promise<readonly Row[]> {
  if (found.length === 0) {
    return [];
  }
  const filter = conditions();
  const times = found.map(({ at }) => at).toSorted();
  filter.and(
    "l.request_id = ANY(?)",
    found.map(({ requestId }) => requestId),
  );
  // Other partitions are not read.
  filter.and("l.started_at >= ?::timestamptz", times[0]);
  filter.and("l.started_at <= ?::timestamptz", times.at(-1));
  return readLog(admin, {
    filter,
    order: "l.started_at DESC, l.request_id DESC",
    limit: found.length,
    offset: 0,
  });
}

/** Where pages continue in both directions. */
function placesOf(
  { calls: found, next }: Found,
  from: Position | null,
  order: "asc" | "desc",
) {
  const first = found[0] ?? from;
  const back = from === null || first === null ? null : textOf(first);
  const onwards = next === null ? null : textOf(next);
  const isWhole = found.length > 0 && next === found.at(-1);
  return order === "desc"
    ? {
        newer: back,
        older: onwards,
        searched_back_to: next === null || isWhole ? null : next.at,
      }
    : { newer: onwards, older: back, searched_back_to: null };
}

function totalOf(
  { calls: found, next }: Found,
  from: Position | null,
  counted: number | null,
) {
  if (from === null && next === null) {
    return { total: found.length, total_is_capped: false };
  }
  return {
    total: counted === null ? null : Math.min(counted, MAX_COUNTED),
    total_is_capped: counted !== null && counted > MAX_COUNTED,
  };
}

/** At most one more than is counted; null where an index alone does not tell. */
async function countOf(
  { pool }: Admin,
  { drivers, filters, range }: Restrictions,
): Promise<number | null> {
  if (filters.length > 0 || drivers.length > 1) {
    return null;
  }
  const filter = conditions();
  drivers[0]?.condition?.(filter);
  range(filter);
  const [row] = await query<{ count: number }>(
    pool,
    `SELECT count(*) AS count FROM (SELECT FROM spend_log l ${filter.where()} LIMIT ${MAX_COUNTED + 1}) counted`,
    filter.values,
  );
  return row?.count ?? 0;
}

const PLACE = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z),([^\0]{1,256})$/;

function placeOf(
  param: "older" | "newer",
  text: string | undefined,
): Position | null {
  if (text === undefined) {
    return null;
  }
  const [, at, requestId] = PLACE.exec(text) ?? [];
  if (
    at === undefined ||
    requestId === undefined ||
    Number.isNaN(Date.parse(at))
  ) {
    throw unfit(param, `must be the \`${param}\` of an answer`);
  }
  return { at, requestId };
}

function textOf({ at, requestId }: Position): string {
  return `${at},${requestId}`;
}

function unfit(param: string, reason: string): CallError {
  return new CallError("invalid_request", `\`${param}\` ${reason}.`, { param });
}

export const CALLS: readonly Route[] = [calls, ...CALL_PAGES];
