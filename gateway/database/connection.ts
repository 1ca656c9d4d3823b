import pg from "pg";
import type { Logger } from "pino";
import { migrate } from "./migrate.ts";
import { setSilent, within, type Pool } from "./pool.ts";
import { isOverdue, startProbe } from "./probe.ts";

/** Whether the database answers now, and whether it ever did in this run. */
export interface DatabaseState {
  /** The schema is there and calls can be served. Once true it stays true: an outage later is another matter. */
  readonly ready: () => boolean;
  readonly connected: () => boolean;
  /** Gateways on this database, this one included, when it was last asked; 1 before. */
  readonly instances: () => number;
  stop(): Promise<void>;
}

export interface DatabaseOptions {
  /** Asked for each connection: a rotated password counts from the next one. */
  readonly databaseUrl: () => string;
  readonly pool: Pool;
  /** Of statements in the path of calls. */
  readonly callPool: Pool;
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
/** To connect, and for each statement of the connection. */
const ANSWER_MS = 2_000;
const RETRY_AFTER_MS = 500;
const MOST_RETRY_MS = 3_000;
const COUNT_EVERY_MS = 5_000;
/**
 * Postgres ends the session of a gateway that has not counted for so long: its host was lost, or it hangs. Without this the
 * session would hold the instance lock until TCP gives up, after hours.
 */
const ABANDONED_AFTER_MS = 15_000;
/** A gateway that was killed holds the lock until Postgres notices. */
const LOCK_PATIENCE_MS = ABANDONED_AFTER_MS + 5_000;

/**
 * Keeps one connection beside the pools: it holds the instance lock, hears of changes (LISTEN), and tells by its loss, or by
 * an answer that is overdue, that the database is unavailable. It tries again without end.
 */
export function watchDatabase(options: DatabaseOptions): DatabaseState {
  const { pool, callPool, log, shared } = options;
  let ready = false;
  let connected = false;
  let instances = 1;
  let stopped = false;
  let client: pg.Client | null = null;
  let timer: NodeJS.Timeout | undefined;
  let retryMs = RETRY_AFTER_MS;
  let refusedSince: number | null = null;

  /** Statements of the pools fail at once while Postgres is silent; refused and cut connections fail by themselves. */
  function setAllSilent(silent: boolean): void {
    setSilent(pool, silent);
    setSilent(callPool, silent);
  }

  async function connect(): Promise<void> {
    const attempt = new pg.Client({
      connectionString: options.databaseUrl(),
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
      keepAlive: true,
      application_name: "hearth-gateway-listen",
    });
    let counting: NodeJS.Timeout | undefined;
    let stopProbe: (() => void) | undefined;
    const closed = new Promise<Error>((resolve) => {
      attempt.on("error", resolve);
      attempt.on("end", () => resolve(new Error("the connection ended")));
    });
    try {
      await attempt.connect();
      await attempt.query(`SET idle_session_timeout = ${ABANDONED_AFTER_MS}`);
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
      setAllSilent(false);
      const probe = startProbe(attempt);
      stopProbe = probe.stop;
      const lost = Promise.race([closed, probe.failed]).then((reason) => {
        connected = false;
        if (isOverdue(reason)) {
          setAllSilent(true);
        }
        return reason;
      });
      if (!ready) {
        await migrate(pool, log);
      }
      client = attempt;
      connected = true;
      retryMs = RETRY_AFTER_MS;
      if (ready) {
        options.onReconnect();
      } else {
        await options.onReady();
      }
      ready = true;
      log.info("connected to the database");
      throw await lost;
    } finally {
      connected = false;
      client = null;
      clearInterval(counting);
      stopProbe?.();
      await endOf(attempt);
    }
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
    // One that had the database to itself before a silence waits until Postgres has given up its former session.
    if (!ready && Date.now() - refusedSince > LOCK_PATIENCE_MS) {
      options.onRefused();
    }
    throw new Error("another gateway has this database for itself");
  }

  function keepTrying(): void {
    connect().catch((error: unknown) => {
      if (stopped) {
        return;
      }
      setAllSilent(isOverdue(error));
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
    async stop() {
      stopped = true;
      clearTimeout(timer);
      if (client !== null) {
        await endOf(client);
      }
    },
  };
}

/** Its goodbye needs no answer: on a silent connection none would come. */
async function endOf(client: pg.Client): Promise<void> {
  await within(ANSWER_MS, client.end()).catch(() => undefined);
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
