import { z } from "zod";
import type { RouteName } from "../../access/policy.ts";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import type { Route, RouteSchema } from "../../http/route.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { tokenOf } from "../key-tokens.ts";
import { name, queryNumber } from "../kinds/values.ts";
import type { Conditions } from "../paging.ts";
import { dailyRowsWith, type PayerColumn } from "./daily-rows.ts";
import { dayRange, onDays } from "./days.ts";
import { ofKey } from "./former-keys.ts";

const ranged = z.object({
  ...dayRange,
  api_key: name.optional(),
  limit: queryNumber(1, 1_000, 100),
});

type Ranged = z.output<typeof ranged>;

async function filterOf(admin: Admin, input: Ranged): Promise<Conditions> {
  const filter = onDays(admin, input);
  if (input.api_key !== undefined) {
    await ofKey(admin.pool, filter, "api_key", tokenOf(input.api_key));
  }
  return filter;
}

/** A report that is one statement over the requested days, from daily rows with `columns`. */
export function report(
  route: RouteName,
  about: Pick<RouteSchema, "summary" | "answer">,
  columns: readonly PayerColumn[],
  statement: (from: string, where: string, limit: number) => string,
  answer: (rows: readonly Row[]) => unknown = (rows) => rows,
): Route {
  return adminRoute(
    route,
    { ...about, input: ranged },
    async (admin, input) => {
      const filter = await filterOf(admin, input);
      const from = dailyRowsWith(
        input.api_key === undefined ? columns : [...columns, "api_key"],
      );
      return answer(
        await query<Row>(
          admin.pool,
          statement(from, filter.where(), input.limit),
          filter.values,
        ),
      );
    },
  );
}
