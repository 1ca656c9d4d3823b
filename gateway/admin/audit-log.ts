import { z } from "zod";
import { query } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import type { Route } from "../http/route.ts";
import { adminRoute } from "./admin-route.ts";
import { out } from "./kinds/out.ts";
import { name, queryLimit, queryNumber } from "./kinds/values.ts";
import { applyFilters, conditions, contains, type Filters } from "./paging.ts";
import { keepRange, queryMoment } from "./spend/log-range.ts";

const FILTERS: Filters = {
  actor: contains("actor"),
  action: "action = ?",
  object_type: "object_type = ?",
  object_id: "object_id = ?",
  before: "id < ?",
};

/** GET /audit */
const auditLog = adminRoute(
  "GET /audit",
  {
    summary:
      "List the changes of objects and their authors, newest first. `before`, the id of the last entry, continues a list.",
    input: z.object({
      page: queryNumber(1, 100_000, 1),
      page_size: queryNumber(1, 500, 100),
      /** A part of the author's name. */
      actor: name.optional(),
      action: name.optional(),
      object_type: name.optional(),
      object_id: name.optional(),
      start_date: queryMoment.optional(),
      end_date: queryMoment.optional(),
      before: queryLimit(999_999_999),
    }),
    answer: z.array(
      z.object({
        id: out.count,
        at: out.moment,
        actor: out.text,
        action: out.text,
        object_type: out.text,
        object_id: out.text,
        before: z.record(out.text, z.unknown()).nullable(),
        after: z.record(out.text, z.unknown()).nullable(),
      }),
    ),
  },
  async (admin, input) => {
    const { page, page_size: size } = input;
    const filter = conditions();
    applyFilters(filter, FILTERS, input);
    keepRange(filter, input, admin.windowing.timeZone, "at");
    return query<Row>(
      admin.pool,
      `SELECT * FROM audit_log ${filter.where()} ORDER BY id DESC LIMIT ${size} OFFSET ${(page - 1) * size}`,
      filter.values,
    );
  },
);

export const AUDIT_LOG: readonly Route[] = [auditLog];
