import { z } from "zod";
import { findModel, unknownModel } from "../../access/models.ts";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import { invalidParam } from "../../http/errors.ts";
import type { Route } from "../../http/route.ts";
import { billOf } from "../../pricing/cost.ts";
import { inputOnly, usageFromOpenAI } from "../../tokens/reported-usage.ts";
import { publishedPrices } from "../../pricing/price-catalogue.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { KEY, keyRow } from "../kinds/key.ts";
import type { Kind } from "../kinds/kind.ts";
import { out } from "../kinds/out.ts";
import { USER, userRow } from "../kinds/user.ts";
import { name, object, queryNumber } from "../kinds/values.ts";
import { answerRows, unknown } from "../payers.ts";
import { dayRange, onDays } from "./days.ts";

const paged = z.object({
  limit: queryNumber(1, 1_000, 100),
  page: queryNumber(1, 100_000, 1),
});

/** Rows of a kind by total spend, most expensive first. */
async function byTotalSpend(
  admin: Admin,
  of: Kind,
  { limit, page }: z.output<typeof paged>,
): Promise<readonly Row[]> {
  const [id = ""] = of.id;
  const rows = await query<Row>(
    admin.pool,
    `SELECT o.*, t.spend AS total_spend FROM spend_totals t JOIN ${of.table} o ON o.${id} = substr(t.entity, ${`${of.entity}:`.length + 1})
       WHERE t.window_name = 'all' AND starts_with(t.entity, '${of.entity}:')
       ORDER BY t.spend DESC, t.entity LIMIT ${limit} OFFSET ${(page - 1) * limit}`,
  );
  return answerRows(admin, of, rows);
}

const keys = adminRoute(
  "GET /spend/keys",
  {
    summary: "List keys by total spend, most expensive first.",
    input: paged,
    answer: z.array(z.object({ ...keyRow.shape, total_spend: out.dollars })),
  },
  (admin, input) => byTotalSpend(admin, KEY, input),
);

const users = adminRoute(
  "GET /spend/users",
  {
    summary: "List users by total spend, most expensive first.",
    input: paged.extend({ user_id: name.optional() }),
    answer: z.array(
      z.object({ ...userRow.shape, total_spend: out.dollars.optional() }),
    ),
  },
  async (admin, { user_id: userId, ...input }) => {
    if (userId === undefined) {
      return byTotalSpend(admin, USER, input);
    }
    const rows = await query<Row>(
      admin.pool,
      "SELECT * FROM users WHERE user_id = $1",
      [userId],
    );
    if (rows.length === 0) {
      throw unknown(USER, userId);
    }
    return answerRows(admin, USER, rows);
  },
);

const tags = adminRoute(
  "GET /spend/tags",
  {
    summary: "List tags by spend.",
    input: z.object({ ...dayRange, limit: queryNumber(1, 1_000, 100) }),
    answer: z.array(
      z.object({
        individual_request_tag: out.text,
        log_count: out.count,
        total_spend: out.dollars,
      }),
    ),
  },
  async (admin, { limit, ...range }) => {
    const filter = onDays(admin, range);
    return query<Row>(
      admin.pool,
      `SELECT tag AS individual_request_tag, sum(requests) AS log_count, sum(spend) AS total_spend
         FROM daily_tag_spend ${filter.where()} GROUP BY tag ORDER BY 3 DESC, 1 LIMIT ${limit}`,
      filter.values,
    );
  },
);

/** POST /spend/calculate */
const calculate = adminRoute(
  "POST /spend/calculate",
  {
    summary:
      "Calculate the cost of a call, from the usage in its answer or by counting its messages. A model that is not configured has the catalogue's price.",
    input: z.object({
      model: name.nullish(),
      messages: z.array(object).nullish(),
      completion_response: z
        .looseObject({ model: name.nullish(), usage: object.nullish() })
        .nullish(),
    }),
    answer: z.object({ cost: out.dollars, unpriced: z.boolean() }),
  },
  async (admin, { model, messages, completion_response: answer }) => {
    const { gateway, caller } = admin;
    const { catalog, tokens } = gateway;
    const named = model ?? answer?.model;
    if (named == null) {
      throw invalidParam(
        "model",
        "is required: an alias, or a model of the price catalogue.",
      );
    }
    const deployment = findModel(catalog, caller, named)?.deployments[0];
    const priceCard =
      deployment === undefined ? publishedPrices(named) : deployment.priceCard;
    if (deployment === undefined && priceCard === null) {
      throw unknownModel(named);
    }
    if (priceCard === null) {
      return { cost: 0, unpriced: true };
    }
    const usage =
      (answer?.usage == null ? null : usageFromOpenAI(answer.usage)) ??
      inputOnly(
        tokens.countChat(
          { messages: messages ?? [] },
          deployment?.model ?? named,
        ),
      );
    const { cost, unpriced } = billOf(priceCard, usage);
    return { cost, unpriced: cost === 0 && unpriced.length > 0 };
  },
);

export const TABLES: readonly Route[] = [keys, users, tags, calculate];
