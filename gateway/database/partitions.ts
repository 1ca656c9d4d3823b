import pg from "pg";
import type { Logger } from "pino";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import type { SpendRow } from "../ledger/rows.ts";
import { query, transaction, type Pool } from "./pool.ts";
import { lockWithin } from "./totals.ts";

/** The lock of instances that create partitions. */
const PARTITION_LOCK = 0x68_65_61_70;
const LOCK_TIMEOUT_MS = 1_000;
/** The next month's partition is created this long before its first row: no lock is held that long. */
const AHEAD_MS = 10 * DAY_MS;
const CHECK_EVERY_MS = HOUR_MS;

/** Creates the monthly partitions that rows need and that are not there yet. */
export async function ensurePartitions(
  pool: Pool,
  rows: readonly Pick<SpendRow, "started_at">[],
): Promise<void> {
  const months = new Set(
    rows.map((row) => row.started_at.slice(0, "2026-01".length)),
  );
  const missing = await query<{ month: string }>(
    pool,
    `SELECT month FROM unnest($1::text[]) AS month
       WHERE to_regclass('spend_log_' || replace(month, '-', '_')) IS NULL`,
    [[...months]],
  );
  for (const { month } of missing) {
    await createPartition(pool, month);
  }
}

/**
 * Created separately and then attached: the lock of an attachment neither blocks nor waits for readers and writers of the
 * ledger, such as a `pg_dump`.
 */
async function createPartition(pool: Pool, month: string): Promise<void> {
  const partition = partitionOf(month);
  const [year = 0, number = 0] = month.split("-").map(Number);
  const next = new Date(Date.UTC(year, number, 1)).toISOString();
  await transaction(pool, async (client) => {
    await lockWithin(client, PARTITION_LOCK, LOCK_TIMEOUT_MS);
    const [found] = await query<{ there: boolean }>(
      client,
      "SELECT to_regclass($1) IS NOT NULL AS there",
      [partition],
    );
    if (found?.there === true) {
      return;
    }
    await query(
      client,
      `CREATE TABLE ${partition} (LIKE spend_log INCLUDING ALL)`,
    );
    await query(
      client,
      `ALTER TABLE spend_log ATTACH PARTITION ${partition}
         FOR VALUES FROM ('${month}-01T00:00:00Z') TO ('${next}')`,
    );
  });
}

/** Creates partitions days before their month begins. */
export interface PartitionKeeper {
  /** Checks now, then every hour. A failure is logged: rows whose partition is missing create it. */
  start(): Promise<void>;
  stop(): void;
}

export function createPartitionKeeper(
  pool: Pool,
  log: Logger,
  now: () => number = Date.now,
): PartitionKeeper {
  let timer: NodeJS.Timeout | undefined;

  async function check(): Promise<void> {
    const months = [now(), now() + AHEAD_MS].map((at) => ({
      started_at: new Date(at).toISOString(),
    }));
    await ensurePartitions(pool, months).catch((error: unknown) =>
      log.warn(
        { error },
        "the ledger's next partition could not be created; retrying in an hour",
      ),
    );
  }

  return {
    async start() {
      timer = setInterval(() => void check(), CHECK_EVERY_MS);
      timer.unref();
      await check();
    },
    stop: () => clearInterval(timer),
  };
}

/** The name of a month's partition; `month` is `2026-01`. */
export function partitionOf(month: string): string {
  return `spend_log_${month.replace("-", "_")}`;
}

const CHECK_VIOLATION = "23514";

/** Whether a row was rejected because it has no partition. */
export function isPartitionMissing(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError &&
    error.code === CHECK_VIOLATION &&
    error.message.startsWith("no partition")
  );
}
