import pg from "pg";
import type { SpendRow } from "../accounting/rows.ts";
import { lockLedger } from "./totals.ts";
import { query, transaction, type Pool } from "./pool.ts";

/** Months whose partition this instance has seen. */
const seen = new WeakMap<Pool, Set<string>>();

/** Makes the monthly partitions that rows need; each instance asks once a month. */
export async function ensurePartitions(
  pool: Pool,
  rows: readonly Pick<SpendRow, "started_at">[],
): Promise<void> {
  const known = seen.get(pool) ?? new Set<string>();
  seen.set(pool, known);
  const months = new Set(
    rows.map((row) => row.started_at.slice(0, "2026-01".length)),
  );
  for (const month of months) {
    if (known.has(month)) continue;
    const [year = 0, number = 0] = month.split("-").map(Number);
    const next = new Date(Date.UTC(year, number, 1)).toISOString();
    await transaction(pool, async (client) => {
      await lockLedger(client);
      await query(
        client,
        `CREATE TABLE IF NOT EXISTS ${partitionOf(month)} PARTITION OF spend_log
           FOR VALUES FROM ('${month}-01T00:00:00Z') TO ('${next}')`,
      );
    });
    known.add(month);
  }
}

/** Retention dropped partitions, here or on another instance: what is known of them is forgotten. */
export function forgetPartitions(pool: Pool): void {
  seen.delete(pool);
}

/** The name of a month's partition; `month` is `2026-01`. */
export function partitionOf(month: string): string {
  return `spend_log_${month.replace("-", "_")}`;
}

const CHECK_VIOLATION = "23514";

/** Whether a row was refused because no partition takes it. */
export function isPartitionMissing(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError &&
    error.code === CHECK_VIOLATION &&
    error.message.startsWith("no partition")
  );
}
