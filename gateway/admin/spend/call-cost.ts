import { z } from "zod";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import type { Admin } from "../admin-route.ts";
import { out } from "../kinds/out.ts";

/** An exact amount in dollars, in decimal digits. */
const exact = out.text;

export const costOfCall = z
  .object({
    lines: z
      .array(
        z.object({
          part: out.text,
          used: z.number(),
          price: exact.meta({
            description:
              "Dollars: per million of what ends in `tokens`, each for everything else.",
          }),
          factor: exact.nullable().meta({
            description: "Of the service tier; null: the standard one.",
          }),
          amount: exact,
        }),
      )
      .nullable()
      .meta({
        description: "null: what the cost consists of is not recorded.",
      }),
    rounding: exact.meta({
      description:
        "What the sum of the amounts differs from the total by: computers add dollars in binary digits.",
    }),
    total: exact.meta({ description: "As in the ledger." }),
  })
  .meta({ id: "CostOfCall" });

interface Line {
  readonly part: string;
  readonly used: number;
  readonly price: string;
  readonly factor: string | null;
  readonly amount: string;
  readonly rounding: string;
}

/** What the cost of a call is the sum of. Postgres multiplies and adds decimal digits exactly. */
export async function costLinesOf(
  { pool }: Pick<Admin, "pool">,
  { request_id: id, startTime: startedAt }: Row,
): Promise<{
  readonly lines: readonly Omit<Line, "rounding">[] | null;
  readonly rounding: string;
}> {
  const rows = await query<Line>(
    pool,
    `SELECT part, used::float8 AS used, trim_scale(price)::text AS price, trim_scale(factor)::text AS factor,
        trim_scale(amount)::text AS amount, trim_scale(spend - sum(amount) OVER ())::text AS rounding
      FROM (
        SELECT l.spend, place, line ->> 0 AS part, (line ->> 1)::numeric AS used, (line ->> 2)::numeric AS price, (line ->> 3)::numeric AS factor,
            (line ->> 1)::numeric * (line ->> 2)::numeric * coalesce((line ->> 3)::numeric, 1)
              * CASE WHEN line ->> 0 LIKE '%tokens' THEN 0.000001 ELSE 1 END AS amount
          FROM spend_log l, json_array_elements(l.cost_lines) WITH ORDINALITY AS listed(line, place)
          WHERE l.request_id = $1 AND date_trunc('milliseconds', l.started_at) = $2) lines
      ORDER BY place`,
    [id, startedAt],
  );
  return {
    lines:
      rows.length === 0 ? null : rows.map(({ rounding: _, ...line }) => line),
    rounding: rows[0]?.rounding ?? "0",
  };
}
