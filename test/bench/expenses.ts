import pg from "pg";
import { rounded } from "./measure.ts";
import type { Testbed } from "./testbed.ts";
import { withClient } from "../servers/with-client.ts";

/** The cost of calls in Postgres and Redis. */
export interface Expenses {
  /** Size of `spend_log` with its indexes, per row. */
  readonly ledger_bytes_per_call: number;
  /** Bytes written to Postgres' write-ahead log, per row. */
  readonly wal_bytes_per_call: number;
  readonly postgres_transactions_per_call: number;
  /** Scripts run by Redis, such as the ones that admit and settle a call. */
  readonly redis_scripts_per_call: number;
  /** Time that Redis' only thread spends in these scripts. */
  readonly redis_micros_per_call: number;
}

interface Reading {
  readonly rows: number;
  readonly walBytes: number;
  readonly transactions: number;
  readonly scripts: number;
  readonly scriptMicros: number;
}

/** Starts counting; the returned function reads the expenses since then. */
export async function countExpenses(
  testbed: Testbed,
): Promise<() => Promise<Expenses>> {
  const before = await read(testbed);
  return async () => {
    const after = await read(testbed);
    const rows = Math.max(1, after.rows - before.rows);
    return {
      ledger_bytes_per_call: Math.round(
        (await ledgerBytes(testbed)) / Math.max(1, after.rows),
      ),
      wal_bytes_per_call: Math.round((after.walBytes - before.walBytes) / rows),
      postgres_transactions_per_call: rounded(
        (after.transactions - before.transactions) / rows,
        4,
      ),
      redis_scripts_per_call: rounded(
        (after.scripts - before.scripts) / rows,
        3,
      ),
      redis_micros_per_call: Math.round(
        (after.scriptMicros - before.scriptMicros) / rows,
      ),
    };
  };
}

async function read({ superuserUrl, redis }: Testbed): Promise<Reading> {
  const row = await ask<{ rows: string; wal: string; transactions: string }>(
    superuserUrl,
    `SELECT (SELECT count(*) FROM spend_log) AS rows,
       pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS wal,
       (SELECT xact_commit FROM pg_stat_database WHERE datname = 'hearth') AS transactions`,
  );
  const stats = await redis.client.info("commandstats");
  const [, scripts, micros] =
    /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(stats) ?? [];
  return {
    rows: Number(row.rows),
    walBytes: Number(row.wal),
    transactions: Number(row.transactions),
    scripts: Number(scripts ?? 0),
    scriptMicros: Number(micros ?? 0),
  };
}

async function ledgerBytes({ superuserUrl }: Testbed): Promise<number> {
  const row = await ask<{ bytes: string }>(
    superuserUrl,
    "SELECT sum(pg_total_relation_size(relid)) AS bytes FROM pg_partition_tree('spend_log')",
  );
  return Number(row.bytes);
}

async function ask<Row extends pg.QueryResultRow>(
  url: string,
  statement: string,
): Promise<Row> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<Row>(statement);
    const [row] = rows;
    if (row === undefined) {
      throw new Error("the query returned no row");
    }
    return row;
  });
}
