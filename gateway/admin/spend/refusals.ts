import { z } from "zod";
import { HOUR_MS } from "../../../core/duration.ts";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import type { Route } from "../../http/route.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { tokenOf } from "../key-tokens.ts";
import { out } from "../kinds/out.ts";
import { name, queryNumber } from "../kinds/values.ts";
import { conditions, type Conditions } from "../paging.ts";
import { reachableKeys } from "../reachable-rows.ts";
import { KEY_NOW, ofKey, RENAMED } from "./former-keys.ts";

const MAX_COUNTS = 1_000;

export const refusalRow = z
  .object({
    at: out.moment,
    api_key: out.text,
    key_alias: out.text.nullable(),
    key_name: out.text.nullable(),
    type: out.text,
    status: out.count,
    model: out.text.nullable(),
    message: out.text,
  })
  .meta({ id: "Refusal" });

/** GET /refusals */
const refusals = adminRoute(
  "GET /refusals",
  {
    summary:
      "List calls that were rejected before a provider was called: the latest of each key within reach, and counts by reason.",
    input: z.object({
      api_key: name.optional(),
      type: name.optional(),
      hours: queryNumber(1, 720, 24),
      page: queryNumber(1, 100_000, 1),
      page_size: queryNumber(1, 100, 100),
    }),
    answer: z.object({
      refusals: z.array(refusalRow),
      counts: z.array(
        z.object({
          api_key: out.text,
          key_alias: out.text.nullable(),
          key_name: out.text.nullable(),
          type: out.text,
          count: out.count,
          last_at: out.moment,
        }),
      ),
      total: out.count,
      since: out.moment,
    }),
  },
  async (admin, input) => {
    const since = admin.now - input.hours * HOUR_MS;
    const filter = ofReachableKeys(admin);
    if (input.api_key !== undefined) {
      await ofKey(admin.pool, filter, "r.api_key", tokenOf(input.api_key));
    }
    if (input.type !== undefined) {
      filter.and("r.type = ?", input.type);
    }
    const at = new Date(since).toISOString();
    const [rows, counts] = await Promise.all([
      latestRefusals(admin, filter, at, {
        page: input.page,
        size: input.page_size,
      }),
      refusalCounts(admin, filter, at),
    ]);
    return {
      refusals: rows,
      counts,
      total: counts.reduce((sum, { count }) => sum + Number(count), 0),
      since: at,
    };
  },
);

function ofReachableKeys(admin: Admin): Conditions {
  if (admin.reachesAll) {
    return conditions();
  }
  const keys = reachableKeys(admin);
  const filter = conditions();
  for (const value of keys.values) {
    filter.bind(value);
  }
  filter.and(`${KEY_NOW} IN (SELECT token FROM keys ${keys.where()})`);
  return filter;
}

/** Only the latest of each key are stored. */
export function latestRefusals(
  admin: Admin,
  filter: Conditions,
  since: string,
  { page, size }: { readonly page: number; readonly size: number },
): Promise<readonly Row[]> {
  return query<Row>(
    admin.pool,
    `SELECT r.at, r.api_key, k.key_alias, k.key_name, r.type, r.status, r.model, r.message
       FROM refusals r ${RENAMED} LEFT JOIN keys k ON k.token = ${KEY_NOW}
       ${and(filter, "r.at >=")} ORDER BY r.at DESC, r.id DESC LIMIT ${size} OFFSET ${(page - 1) * size}`,
    [...filter.values, since],
  );
}

/** Counted by whole hours: the first one counts from its start. */
function refusalCounts(
  admin: Admin,
  filter: Conditions,
  since: string,
): Promise<readonly Row[]> {
  return query<Row>(
    admin.pool,
    `SELECT ${KEY_NOW} AS api_key, k.key_alias, k.key_name, r.type, sum(r.count)::bigint AS count, max(r.last_at) AS last_at
       FROM refusal_hours r ${RENAMED} LEFT JOIN keys k ON k.token = ${KEY_NOW}
       ${and(filter, "r.last_at >=")} GROUP BY 1, 2, 3, 4 ORDER BY count DESC, 1, 4 LIMIT ${MAX_COUNTS}`,
    [...filter.values, since],
  );
}

/** The conditions and one more, whose value is bound last. */
function and(filter: Conditions, condition: string): string {
  const where = filter.where();
  return `${where === "" ? "WHERE" : `${where} AND`} ${condition} $${filter.values.length + 1}`;
}

export const REFUSALS: readonly Route[] = [refusals];
