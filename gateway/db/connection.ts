import pg from "pg";
import type { Logger } from "pino";
import { migrate } from "./migrate.ts";
import type { Pool } from "./pool.ts";

/** Whether the database answers now, and whether it ever did in this run. */
export interface DatabaseState {
  /** The schema is there and calls can be served. Once true it stays true: an outage later is another matter. */
  readonly ready: () => boolean;
  readonly connected: () => boolean;
  /** When the database was last known to be there, ms since the epoch: now while it is connected. */
  readonly lastSeenAt: () => number;
  /** Gateways on this database, this one included, when it was last asked; 1 before. */
  readonly instances: () => number;
  stop(): Promise<void>;
}

export interface DatabaseOptions {
  /** Asked for each connection: a rotated password counts from the next one. */
  readonly databaseUrl: () => string;
  readonly pool: Pool;
  readonly log: Logger;
  /** Instances that share Redis may share the database; without it only one may run. */
  readonly shared: boolean;
  /** A row of a table changed, here or on another instance. */
  readonly onChange: (table: string, id: string) => void;
  /** Notices may have been missed: everything looked up must be looked up again. */
  readonly onReconnect: () => void;
  /** The schema is there for the first time. */
  readonly onReady: () => Promise<void>;
  /** Another gateway without Redis holds the database. */
  readonly onRefused: () => void;
}

/** Names the lock that says whether one gateway has the database for itself. */
const INSTANCE_LOCK = 0x68_65_61_73;
const RETRY_AFTER_MS = 500;
const MOST_RETRY_MS = 3_000;
/** A gateway that was killed holds the lock until Postgres notices. */
const LOCK_PATIENCE_MS = 10_000;
const COUNT_EVERY_MS = 5_000;

/**
 * Keeps one connection beside the pool: it holds the instance lock, hears of changes (LISTEN), and tells by its loss
 * that the database is away. It tries again for ever.
 */
export function watchDatabase(options: DatabaseOptions): DatabaseState {
  const { pool, log, shared } = options;
  let ready = false;
  let connected = false;
  let lostAt = -Infinity;
  let instances = 1;
  let stopped = false;
  let client: pg.Client | null = null;
  let timer: NodeJS.Timeout | undefined;
  let retryMs = RETRY_AFTER_MS;
  let refusedSince: number | null = null;

  async function connect(): Promise<void> {
    const attempt = new pg.Client({
      connectionString: options.databaseUrl(),
      connectionTimeoutMillis: 3_000,
      keepAlive: true,
      application_name: "hearth-gateway-listen",
    });
    let counting: NodeJS.Timeout | undefined;
    const lost = new Promise<string>((resolve) => {
      attempt.on("error", (error) => resolve(error.message));
      attempt.on("end", () => resolve("the connection ended"));
    });
    try {
      await attempt.connect();
      await lockInstance(attempt);
      await attempt.query("LISTEN hearth_changes");
      instances = await countInstances(attempt);
      counting = setInterval(() => {
        countInstances(attempt).then(
          (count) => (instances = count),
          () => undefined,
        );
      }, COUNT_EVERY_MS);
      attempt.on("notification", ({ payload = "" }) => {
        const colon = payload.indexOf(":");
        options.onChange(payload.slice(0, colon), payload.slice(colon + 1));
      });
      if (!ready) await migrate(pool, log);
      client = attempt;
      connected = true;
      retryMs = RETRY_AFTER_MS;
      if (ready) options.onReconnect();
      else await options.onReady();
      ready = true;
      log.info("connected to the database");
    } catch (error) {
      connected = false;
      clearInterval(counting);
      await attempt.end().catch(() => undefined);
      throw error;
    }
    const reason = await lost;
    clearInterval(counting);
    connected = false;
    lostAt = Date.now();
    client = null;
    throw new Error(reason);
  }

  async function lockInstance(attempt: pg.Client): Promise<void> {
    const lock = shared
      ? "pg_try_advisory_lock_shared"
      : "pg_try_advisory_lock";
    const { rows } = await attempt.query<{ locked: boolean }>(
      `SELECT ${lock}($1) AS locked`,
      [INSTANCE_LOCK],
    );
    if (rows[0]?.locked === true) {
      refusedSince = null;
      return;
    }
    refusedSince ??= Date.now();
    if (Date.now() - refusedSince > LOCK_PATIENCE_MS) options.onRefused();
    throw new Error("another gateway has this database for itself");
  }

  function keepTrying(): void {
    connect().catch((error: unknown) => {
      if (stopped) return;
      log.warn(
        { error: error instanceof Error ? error.message : String(error) },
        "no connection to the database; trying again",
      );
      timer = setTimeout(keepTrying, retryMs);
      retryMs = Math.min(retryMs * 1.5, MOST_RETRY_MS);
    });
  }

  keepTrying();
  return {
    ready: () => ready,
    connected: () => connected,
    instances: () => instances,
    lastSeenAt: () => (connected ? Date.now() : lostAt),
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await client?.end().catch(() => undefined);
    },
  };
}

/** Each gateway holds the instance lock of this database once. */
async function countInstances(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM pg_locks
     WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND classid = 0 AND objid::bigint = $1
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    [INSTANCE_LOCK],
  );
  return Math.max(1, rows[0]?.count ?? 1);
}
