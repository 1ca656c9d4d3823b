import { z } from "zod";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import type { Admin } from "../admin-route.ts";
import { tokenOf } from "../key-tokens.ts";
import { out } from "../kinds/out.ts";
import { onDays, type DayRange } from "./days.ts";
import { KEY_NOW, ofKey, RENAMED } from "./former-keys.ts";

const sums = {
  total_cost: out.dollars,
  total_input_tokens: out.count,
  total_output_tokens: out.count,
} as const;

/** The spend of a key in a period, as LiteLLM's report shows it. */
export const keySpend = z
  .object({
    api_key: out.text,
    ...sums,
    model_details: z.array(z.object({ model: out.text, ...sums })),
  })
  .meta({ id: "KeySpend" });

const SUMS =
  "sum(spend) AS total_cost, sum(prompt_tokens) AS total_input_tokens, sum(completion_tokens) AS total_output_tokens";

interface KeySpendQuery extends DayRange {
  readonly api_key?: string | undefined;
  readonly internal_user_id?: string | undefined;
  readonly team_id?: string | undefined;
  readonly customer_id?: string | undefined;
}

/** The spend of one key, or of each key of a user, most expensive first, under their current hashes. */
export async function spendByKey(
  admin: Admin,
  { api_key, internal_user_id, team_id, customer_id, ...range }: KeySpendQuery,
  limit: number,
): Promise<readonly Row[]> {
  const filter = onDays(admin, range);
  if (api_key !== undefined) {
    await ofKey(admin.pool, filter, "api_key", tokenOf(api_key));
  }
  for (const [column, value] of [
    ["user_id", internal_user_id],
    ["team_id", team_id],
    ["end_user", customer_id],
  ] as const) {
    if (value !== undefined) {
      filter.and(`${column} = ?`, value);
    }
  }
  return query<Row>(
    admin.pool,
    `WITH by_model AS (
        SELECT ${KEY_NOW} AS api_key, model_group AS model, ${SUMS}
          FROM daily_spend ${RENAMED} ${filter.where()} AND api_key <> '' GROUP BY 1, 2)
      SELECT api_key, sum(total_cost) AS total_cost, sum(total_input_tokens) AS total_input_tokens, sum(total_output_tokens) AS total_output_tokens,
          json_agg(json_build_object('model', model, 'total_cost', total_cost, 'total_input_tokens', total_input_tokens,
            'total_output_tokens', total_output_tokens) ORDER BY total_cost DESC, model) AS model_details
        FROM by_model GROUP BY api_key ORDER BY 2 DESC, 1 LIMIT ${limit}`,
    filter.values,
  );
}
