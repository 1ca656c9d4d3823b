import { z } from "zod";
import { query } from "../../database/pool.ts";
import type { Route } from "../../http/route.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { out } from "../kinds/out.ts";
import { queryFlag } from "../kinds/values.ts";
import { conditions } from "../paging.ts";
import {
  callFilters,
  restrictionsOf,
  type Restrictions,
} from "./call-filters.ts";
import { chosenNames, recentNames, rejectUnused } from "./call-names.ts";
import { CALL_PAGES } from "./call-page.ts";
import {
  callPageAnswer,
  callPaging,
  findCalls,
  readFound,
} from "./call-paging.ts";
import type { Found, Position } from "./call-search.ts";

/** Calls of a search without other conditions are counted up to here. */
const MAX_COUNTED = 10_000;

const input = z.object({
  ...callFilters,
  ...callPaging,
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
      ...callPageAnswer,
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
    const isNewest = asked.older === undefined && asked.newer === undefined;
    const isNamed = asked.with_names && admin.reachesAll;
    const [{ found, from, places }, counted, recent, names] = await Promise.all(
      [
        findCalls(admin, restrictions, asked),
        isNewest ? countOf(admin, restrictions) : null,
        isNamed ? recentNames(admin) : { models: [], providers: [] },
        chosenNames(admin, isNamed ? asked : {}),
      ],
    );
    if (found.calls.length === 0 && found.next === null && from === null) {
      await rejectUnused(admin, asked);
    }
    return {
      data: await readFound(admin, found),
      ...places,
      ...totalOf(found, from, counted),
      ...recent,
      names,
    };
  },
);

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

export const CALLS: readonly Route[] = [calls, ...CALL_PAGES];
