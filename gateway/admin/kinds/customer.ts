import { z } from "zod";
import { readOnly, settable, STAMPS } from "./field.ts";
import { rowOf, type Kind } from "./kind.ts";
import { LIMITS } from "./limits.ts";
import { flag, name, object } from "./values.ts";

/** The `user` of a call: a customer of the caller's, also called end user. */
export const END_USER: Kind = {
  table: "end_users",
  noun: "end user",
  id: ["user_id"],
  field: "user_id",
  createdBy: "POST /customer/new",
  entity: "end_user",
  showsBudgetTable: true,
  fields: {
    user_id: readOnly("id"),
    alias: settable("text", name),
    blocked: settable("flag", flag),
    ...LIMITS,
    metadata: settable("json", object),
    ...STAMPS,
  },
};

export const endUserRow = z.object(rowOf(END_USER)).meta({ id: "EndUser" });
