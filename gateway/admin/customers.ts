import { z } from "zod";
import { transaction } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute } from "./admin-route.ts";
import {
  alsoAt,
  commonRoutes,
  removeAll,
  several,
  type CommonNoun,
} from "./common-routes.ts";
import { END_USER, endUserRow } from "./kinds/customer.ts";
import { out } from "./kinds/out.ts";
import { name, someNames } from "./kinds/values.ts";
import { answerRow, changeAndAnswer, create } from "./payers.ts";

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
    summary: "Get an end user.",
    input: z.object({ end_user_id: name.optional(), user_id: name.optional() }),
    answer: endUserRow,
  },
  async (admin, { end_user_id: endUser, user_id: user }) => {
    const id = endUser ?? user;
    if (id === undefined) {
      throw new CallError("invalid_request", "`end_user_id` is required.", {
        param: "end_user_id",
      });
    }
    const [row] = await several(admin, END_USER, [id]);
    return answerRow(admin, END_USER, row ?? {});
  },
  ["/end_user/info"],
);

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
