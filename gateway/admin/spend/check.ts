import { z } from "zod";
import { longQuery, query, transaction } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import type { Route } from "../../http/route.ts";
import { adminRoute } from "../admin-route.ts";
import { out } from "../kinds/out.ts";
import { name, queryNumber } from "../kinds/values.ts";
import { conditions } from "../paging.ts";

/** Adding up a ledger of ten million rows takes about a minute. */
const CHECK_TIMEOUT_MS = 600_000;
const MAX_DIFFERENCES = 1_000;

/** GET /spend/check: compares every sum with its rows. */
const check = adminRoute(
  "GET /spend/check",
  {
    summary: "Compare every sum of the ledger with its rows.",
    input: z.object({}),
    answer: z.object({
      status: z.enum(["equal", "different"]),
      differences: z.array(
        z.object({
          kind: out.text,
          name: out.text,
          period: out.text,
          recorded: out.dollars,
          summed: out.dollars,
        }),
      ),
      totals_compared: out.count,
      spend: out.dollars,
      checked_at: out.moment,
    }),
  },
  async (admin) => {
    const differences = await transaction(admin.pool, (client) =>
      longQuery<Row>(
        client,
        `SELECT * FROM spend_check LIMIT ${MAX_DIFFERENCES}`,
        CHECK_TIMEOUT_MS,
      ),
    );
    const [counts] = await query<Row>(
      admin.pool,
      "SELECT count(*) AS totals, coalesce(sum(spend) FILTER (WHERE entity = 'proxy:' AND window_name = 'all'), 0) AS spend FROM spend_totals",
    );
    return {
      status: differences.length === 0 ? "equal" : "different",
      differences,
      totals_compared: counts?.["totals"],
      spend: counts?.["spend"],
      checked_at: new Date().toISOString(),
    };
  },
);

/** GET /notices */
const notices = adminRoute(
  "GET /notices",
  {
    summary: "List the soft budgets that were reached, newest first.",
    input: z.object({
      page: queryNumber(1, 100_000, 1),
      page_size: queryNumber(1, 100, 100),
      entity: name.optional(),
    }),
    answer: z.array(
      z.object({
        id: out.count,
        at: out.moment,
        kind: out.text,
        entity: out.text,
        window_name: out.text,
        spend: out.dollars,
        threshold: out.dollars,
      }),
    ),
  },
  async (admin, { page, page_size: size, entity }) => {
    const filter = conditions();
    if (entity !== undefined) {
      filter.and("entity = ?", entity);
    }
    return query<Row>(
      admin.pool,
      `SELECT id, at, kind, entity, window_name, spend, threshold FROM notices ${filter.where()}
         ORDER BY id DESC LIMIT ${size} OFFSET ${(page - 1) * size}`,
      filter.values,
    );
  },
);

export const CHECKS: readonly Route[] = [check, notices];
