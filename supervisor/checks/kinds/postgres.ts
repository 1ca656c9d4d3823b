import { z } from "zod";
import { duration, whole } from "../../config/fields.ts";
import { inWords } from "../../../core/duration.ts";
import { everyCheck } from "./every-check.ts";
import {
  failing,
  okUnless,
  type ProbeContext,
  type ProbeResult,
} from "./probe.ts";

export const postgresCheck = z.strictObject({
  ...everyCheck(),
  kind: z.literal("postgres"),
  url: z.url({
    protocol: /^postgres(ql)?$/,
    error: "must be a postgres:// address",
  }),
  expect: z
    .strictObject({
      connections_below_percent: whole(1, 100).default(90),
      transactions_younger_than: duration.prefault("1h"),
      replication_lag_below: duration.prefault("5m"),
    })
    .prefault({}),
});

/**
 * A standby reports its lag behind what it has received; a primary that of its slowest standby. Ages of other roles are null
 * without pg_monitor and count as 0.
 */
const QUERY = `
  SELECT current_setting('max_connections')::int AS allowed,
         (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
         (SELECT coalesce(extract(epoch FROM max(now() - xact_start)), 0)::float8 FROM pg_stat_activity
           WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) AS oldest_seconds,
         pg_is_in_recovery() AS standby,
         CASE WHEN pg_is_in_recovery() THEN
           CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
                ELSE extract(epoch FROM now() - pg_last_xact_replay_timestamp())::float8 END
         ELSE (SELECT extract(epoch FROM max(replay_lag))::float8 FROM pg_stat_replication) END AS lag_seconds,
         pg_database_size(current_database())::float8 AS bytes`;

interface Answer {
  readonly allowed: number;
  readonly used: number;
  readonly oldest_seconds: number;
  readonly standby: boolean;
  /** null: no replication. */
  readonly lag_seconds: number | null;
  readonly bytes: number;
}

/** Runs a query on a new connection: accepting new connections is part of being healthy. */
export async function probePostgres(
  { url, timeout, expect }: z.output<typeof postgresCheck>,
  { signal }: ProbeContext,
): Promise<ProbeResult> {
  const { Client } = await import("pg");
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: timeout,
    query_timeout: timeout,
    application_name: "hearth check",
  });
  client.on("error", () => {});
  const hangUp = () => void client.end().catch(() => {});
  signal.addEventListener("abort", hangUp, { once: true });
  try {
    await client.connect();
    const { rows } = await client.query<Answer>(QUERY);
    const row = rows[0];
    return row === undefined
      ? failing("no answer to the query")
      : judge(row, expect);
  } finally {
    signal.removeEventListener("abort", hangUp);
    await client.end().catch(() => {});
  }
}

function judge(
  answer: Answer,
  expect: z.output<typeof postgresCheck>["expect"],
): ProbeResult {
  const { allowed, used, standby } = answer;
  const percent = Math.round((100 * used) / allowed);
  const oldestMs = answer.oldest_seconds * 1000;
  const lagMs =
    answer.lag_seconds === null ? undefined : answer.lag_seconds * 1000;
  const text = [
    `${used} of ${allowed} connections`,
    `oldest transaction ${inWords(oldestMs)}`,
    ...(lagMs === undefined
      ? []
      : [`${standby ? "standby" : "replica"} ${inWords(lagMs)} behind`]),
  ].join(", ");
  return okUnless(
    [
      percent > expect.connections_below_percent &&
        `over ${expect.connections_below_percent} % of its connections are in use`,
      oldestMs > expect.transactions_younger_than &&
        `a transaction has been open for more than ${inWords(expect.transactions_younger_than)}`,
      lagMs !== undefined &&
        lagMs > expect.replication_lag_below &&
        `replication is more than ${inWords(expect.replication_lag_below)} behind`,
    ],
    text,
    {
      connections_percent: percent,
      oldest_transaction_ms: Math.round(oldestMs),
      database_bytes: answer.bytes,
      ...(lagMs === undefined ? {} : { lag_ms: Math.round(lagMs) }),
    },
  );
}
