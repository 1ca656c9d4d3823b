import type { Row } from "../database/rows.ts";
import type { Admin } from "./admin-route.ts";
import type { Kind } from "./kinds/kind.ts";
import { readPage, type Conditions } from "./paging.ts";
import { answerRows } from "./payers.ts";

/** Shown by answers that have no pages. */
const MAX_SHOWN = 1_000;

/** The newest rows of a kind and their total number, as `keys` and `total_keys` of an answer. */
export async function newestOf(
  admin: Admin,
  of: Kind,
  filter: Conditions,
): Promise<Row> {
  const { rows, total } = await readPage(admin.pool, {
    table: of.table,
    filter,
    order: `created_at DESC, ${of.id[0]}`,
    page: 1,
    size: MAX_SHOWN,
  });
  return {
    [of.table]: await answerRows(admin, of, rows),
    [`total_${of.table}`]: total,
  };
}
