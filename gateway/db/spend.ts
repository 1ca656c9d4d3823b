import { windowAt } from "../accounting/windows.ts";
import { readTotals } from "./totals.ts";
import { query, type Client, type Pool } from "./pool.ts";
import type { Row } from "./rows.ts";

/** Rows of payers with `spend` added: in the budget's window where there is one, else over the whole life. */
export async function withSpend(
  from: Pool | Client,
  rows: readonly Row[],
  entityOf: (row: Row) => string,
  timeZone: string,
  at: number,
): Promise<readonly Row[]> {
  const durations = await query<{ entity: string; budget_duration: string }>(
    from,
    "SELECT entity, budget_duration FROM entity_budgets WHERE entity = ANY($1) AND budget_duration IS NOT NULL",
    [rows.map(entityOf)],
  );
  const byEntity = new Map(
    durations.map((row) => [row.entity, row.budget_duration]),
  );
  const windows = rows.map((row) =>
    windowAt(byEntity.get(entityOf(row)) ?? null, at, timeZone),
  );
  const totals = await readTotals(
    from,
    rows.map((row, index) => ({
      entity: entityOf(row),
      window: windows[index]?.name ?? "all",
    })),
  );
  return rows.map((row, index) => {
    const end = windows[index]?.end ?? Infinity;
    return {
      ...row,
      spend: totals[index]?.spend ?? 0,
      budget_reset_at: Number.isFinite(end)
        ? new Date(end).toISOString()
        : null,
    };
  });
}
