import { z } from "zod";
import { readOnly, settable, STAMPS } from "./field.ts";
import { rowOf, type Kind } from "./kind.ts";
import { LIMITS } from "./limits.ts";

/** A label of calls, by which spend is summed and limited. */
export const TAG: Kind = {
  table: "tags",
  noun: "tag",
  id: ["name"],
  field: "name",
  createdBy: "POST /tag/new",
  entity: "tag",
  showsBudgetTable: true,
  fields: {
    name: readOnly("id"),
    description: settable("text", z.string().max(2_000)),
    ...LIMITS,
    ...STAMPS,
  },
};

export const tagRow = z.object(rowOf(TAG)).meta({ id: "Tag" });
