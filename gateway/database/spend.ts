import { windowAt } from "../ledger/budget-windows.ts";
import { repeatedQuery, type Client, type Pool } from "./pool.ts";
import type { Row } from "./rows.ts";
import { durationsOf, readTotals, type Windowing } from "./totals.ts";

/** Rows of payers with `spend` added: in the budget's window if there is one, else in total. */
export async function withSpend(
  from: Pool | Client,
  rows: readonly Row[],
  entityOf: (row: Row) => string,
  windowing: Windowing,
  at: number,
): Promise<readonly Row[]> {
  if (rows.length === 0) {
    return [];
  }
  const durations = await durationsOf(from, rows.map(entityOf), windowing);
  const windows = rows.map((row) =>
    windowAt(durations.get(entityOf(row)) ?? null, at, windowing.timeZone),
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

/** Those of the payers that have spent anything, each once. */
export async function spentEntities(
  from: Pool | Client,
  entities: readonly string[],
): Promise<readonly string[]> {
  const rows = await repeatedQuery<{ entity: string }>(
    from,
    "SELECT DISTINCT entity FROM spend_totals WHERE entity = ANY($1) AND spend <> 0",
    [entities],
  );
  return rows.map(({ entity }) => entity);
}
