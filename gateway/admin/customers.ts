import { z } from "zod";
import { query, transaction, type Pool } from "../database/pool.ts";
import { findRows, type Row } from "../database/rows.ts";
import { invalidParam } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute } from "./admin-route.ts";
import {
  alsoAt,
  commonRoutes,
  removeAll,
  type CommonNoun,
} from "./common-routes.ts";
import { END_USER, endUserRow } from "./kinds/customer.ts";
import { out } from "./kinds/out.ts";
import { name, someNames } from "./kinds/values.ts";
import { answerRow, changeAndAnswer, create, unknown } from "./payers.ts";

const CUSTOMERS: CommonNoun = {
  of: END_USER,
  row: endUserRow,
  path: "/customer",
  alsoPath: "/end_user",
  summaries: {
    new: "Create an end user (the `user` of a call) with a budget or limits.",
    update: "Update an end user; null resets a field.",
    list: "List end users.",
  },
};

const customerInfo = adminRoute(
  "GET /customer/info",
  {
    summary:
      "Get an end user, also one that only calls have named: with its spend and without limits.",
    input: z.object({ end_user_id: name.optional(), user_id: name.optional() }),
    answer: endUserRow,
  },
  async (admin, { end_user_id: endUser, user_id: user }) => {
    const id = endUser ?? user;
    if (id === undefined) {
      throw invalidParam("end_user_id", "is required.");
    }
    return answerRow(admin, END_USER, await endUserOf(admin.pool, id));
  },
  ["/end_user/info"],
);

/** A row as if it had been created without limits, if calls have named the end user; throws 404 for any other id. */
async function endUserOf(pool: Pool, id: string): Promise<Row> {
  const [row] = await findRows(pool, END_USER.table, { user_id: id });
  if (row !== undefined) {
    return row;
  }
  const named = await query(
    pool,
    "SELECT FROM spend_totals WHERE entity = $1 LIMIT 1",
    [`end_user:${id}`],
  );
  if (named.length === 0) {
    throw unknown(END_USER, id);
  }
  const unset = Object.keys(END_USER.fields).map((field) => [field, null]);
  return {
    ...(Object.fromEntries(unset) as Row),
    user_id: id,
    blocked: false,
    metadata: {},
  };
}

function setBlocked(
  route: "POST /customer/block" | "POST /customer/unblock",
  blocked: boolean,
  summary: string,
): Route {
  const answered = blocked ? "blocked_users" : "unblocked_users";
  return adminRoute(
    route,
    {
      summary,
      input: z.object({ user_ids: someNames }),
      answer: z.object({ [answered]: z.array(endUserRow) }),
    },
    async (admin, { user_ids: ids }) => {
      const rows: Row[] = [];
      for (const id of ids) {
        // An end user can be blocked before its first call.
        await transaction(admin.pool, (client) =>
          create(admin, client, END_USER, { user_id: id }, true),
        );
        rows.push(
          await changeAndAnswer(
            admin,
            END_USER,
            { user_id: id },
            { blocked },
            blocked ? "blocked" : "unblocked",
          ),
        );
      }
      return { [answered]: rows };
    },
    alsoAt(CUSTOMERS, route),
  );
}

const customerDelete = adminRoute(
  "POST /customer/delete",
  {
    summary: "Delete end users.",
    input: z.object({ user_ids: someNames }),
    answer: z.object({ deleted_customers: out.count }),
  },
  async (admin, { user_ids: ids }) => {
    const deleted = await removeAll(admin, END_USER, ids);
    return { deleted_customers: deleted.length };
  },
  ["/end_user/delete"],
);

export const CUSTOMER_ROUTES: readonly Route[] = [
  ...commonRoutes(CUSTOMERS),
  customerInfo,
  setBlocked(
    "POST /customer/block",
    true,
    "Block end users, also before their first call.",
  ),
  setBlocked("POST /customer/unblock", false, "Unblock end users."),
  customerDelete,
];
