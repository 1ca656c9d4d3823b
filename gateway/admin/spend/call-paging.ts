import { z } from "zod";
import type { Row } from "../../database/rows.ts";
import { invalidParam } from "../../http/errors.ts";
import type { Admin } from "../admin-route.ts";
import { out } from "../kinds/out.ts";
import { queryNumber } from "../kinds/values.ts";
import { conditions } from "../paging.ts";
import type { Restrictions } from "./call-filters.ts";
import { searchCalls, type Found, type Position } from "./call-search.ts";
import { spendLogRow } from "./log-answer.ts";
import { readLog } from "./log-rows.ts";

const MAX_SIZE = 200;

/** Which page of a list of calls is read. */
export const callPaging = {
  older: z.string().max(300).optional().meta({
    description: "Continue with calls before this place, from an answer.",
  }),
  newer: z.string().max(300).optional().meta({
    description: "Instead, with calls after this place.",
  }),
  page_size: queryNumber(1, MAX_SIZE, 50),
} as const;

export type CallPaging = z.output<z.ZodObject<typeof callPaging>>;

const place = out.text.nullable();

/** A page of calls, and where the pages before and after it continue. */
export const callPageAnswer = {
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
} as const;

/** The calls of a page, newest first; `from` is where it starts, null for the newest page. Throws 400 for an invalid place. */
export async function findCalls(
  admin: Admin,
  restrictions: Restrictions,
  { older, newer, page_size: size }: CallPaging,
) {
  if (older !== undefined && newer !== undefined) {
    throw invalidParam("newer", "must not be combined with `older`.");
  }
  const from = placeOf("older", older) ?? placeOf("newer", newer);
  const order = newer === undefined ? "desc" : "asc";
  const found = await searchCalls(admin, {
    ...restrictions,
    order,
    from,
    size,
  });
  return { found, from, places: placesOf(found, from, order) };
}

/** The rows of a page, newest first, with the names that belong to them. */
export async function readFound(
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
    throw invalidParam(param, `must be the \`${param}\` of an answer.`);
  }
  return { at, requestId };
}

function textOf({ at, requestId }: Position): string {
  return `${at},${requestId}`;
}
