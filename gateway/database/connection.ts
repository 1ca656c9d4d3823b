import pg from "pg";
import type { Logger } from "pino";
import { textOf } from "../../core/failure.ts";
import {
  addressProblem,
  requireSameDatabase,
  requireSession,
  type SessionVariable,
} from "./addresses.ts";
import { inTurn, type InTurn } from "./in-turn.ts";
import { migrate } from "./migrate.ts";
import { DatabaseUnavailable, setSilent, within, type Pool } from "./pool.ts";
import { isOverdue, startProbe } from "./probe.ts";

/** Whether the database answers now, and whether it ever did in this process. */
export interface DatabaseState {
  /** The schema is ready and calls can be served. Once true it stays true, even in a later outage. */
  ready(): boolean;
  connected(): boolean;
  /** Gateways on this database, including this one, at the last count; 1 before. */
  instances(): number;
  /** Resolves when every change committed before has been announced to this instance; throws {@link DatabaseUnavailable}. */
  caughtUp(): Promise<void>;
  stop(): Promise<void>;
}

export interface DatabaseOptions {
  /** The address of Postgres itself. Read for each connection: a rotated password is used from the next one. */
  readonly sessionUrl: () => string;
  readonly pool: Pool;
  /** Of statements in the path of calls. */
  readonly callPool: Pool;
  /** For migrations; `pool` itself, unless that leads to a connection pooler. */
  readonly sessionPool: Pool;
  readonly log: Logger;
  /** Instances that share Redis may share the database; without it only one may run. */
  readonly shared: boolean;
  /** A row of a table changed, here or on another instance. */
  readonly onChange: (table: string, id: string) => void;
  /** Notices may have been missed: everything looked up must be looked up again. */
  readonly onReconnect: () => void;
  /** The schema is ready for the first time. */
  readonly onReady: () => Promise<void>;
  /** The gateway cannot start with this database, such as one that another gateway uses exclusively; says what to do. */
  readonly onRejected: (problem: string) => void;
}

/** The lock of a gateway that uses the database exclusively. */
const INSTANCE_LOCK = 0x68_65_61_73;
/** To connect, and for each statement of the connection. */
const ANSWER_MS = 2_000;
const RETRY_AFTER_MS = 500;
const MAX_RETRY_MS = 3_000;
const COUNT_EVERY_MS = 5_000;
/**
 * Postgres ends the session of a gateway without a heartbeat for this long: its host was lost, or it hangs. Without this
 * the session would hold the instance lock until TCP gives up, after hours.
 */
const ABANDONED_AFTER_MS = 15_000;
/** A gateway that was killed holds the lock until Postgres notices. */
const LOCK_PATIENCE_MS = ABANDONED_AFTER_MS + 5_000;

/**
 * Keeps one connection in addition to the pools: it holds the instance lock and receives changes (LISTEN); its loss, or
 * an overdue answer, means that the database is unavailable. It reconnects until stopped.
 */
export function watchDatabase(options: DatabaseOptions): DatabaseState {
  return new DatabaseWatch(options);
}

class DatabaseWatch implements DatabaseState {
  readonly #options: DatabaseOptions;
  readonly #log: Logger;
  #ready = false;
  #connected = false;
  #instances = 1;
  #stopped = false;
  #client: pg.Client | null = null;
  /** Statements on the connection that receives notices; null without one. */
  #ask: InTurn | null = null;
  #timer: NodeJS.Timeout | undefined;
  #retryMs = RETRY_AFTER_MS;
  #refusedSince: number | null = null;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.#log = options.log;

    this.#keepTrying();
  }

  ready(): boolean {
    return this.#ready;
  }

  connected(): boolean {
    return this.#connected;
  }

  instances(): number {
    return this.#instances;
  }

  async caughtUp(): Promise<void> {
    if (this.#ask === null) {
      throw new DatabaseUnavailable(new Error("notices are not received"));
    }
    // Postgres sends pending notices before the answer to the connection's next statement.
    await this.#ask("SELECT").catch((error: unknown) => {
      throw new DatabaseUnavailable(error);
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    if (this.#client !== null) {
      await endOf(this.#client);
    }
  }

  /** Statements of the pools fail at once while Postgres is silent; refused and cut connections fail by themselves. */
  #setAllSilent(silent: boolean): void {
    const { pool, callPool, sessionPool } = this.#options;
    for (const one of [pool, callPool, sessionPool]) {
      setSilent(one, silent);
    }
  }

  /** Connects, serves until the connection is lost, and throws the reason. */
  async #connect(): Promise<void> {
    const client = this.#createClient();
    let counting: NodeJS.Timeout | undefined;
    let stopProbe: (() => void) | undefined;
    const closed = new Promise<Error>((resolve) => {
      client.on("error", resolve);
      client.on("end", () => resolve(new Error("the connection ended")));
    });
    try {
      await this.#open(client);
      const ask = inTurn(client);
      counting = this.#startCounting(ask);
      this.#passNotices(client);
      this.#setAllSilent(false);
      const probe = startProbe(ask);
      stopProbe = probe.stop;
      const lost = Promise.race([closed, probe.failed]).then((reason) => {
        this.#connected = false;
        if (isOverdue(reason)) {
          this.#setAllSilent(true);
        }
        return reason;
      });
      this.#ask = ask;
      await this.#serve(client);
      throw await lost;
    } finally {
      this.#connected = false;
      this.#client = null;
      this.#ask = null;
      clearInterval(counting);
      stopProbe?.();
      await endOf(client);
    }
  }

  #createClient(): pg.Client {
    return new pg.Client({
      connectionString: this.#options.sessionUrl(),
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
      keepAlive: true,
      application_name: "hearth-gateway-listen",
    });
  }

  async #open(client: pg.Client): Promise<void> {
    await client.connect();
    await requireSession(client, this.#sessionVariable(), async () => {
      const another = this.#createClient();
      another.on("error", () => undefined);
      await another.connect();
      return another;
    });
    await client.query(`SET idle_session_timeout = ${ABANDONED_AFTER_MS}`);
    await this.#lockInstance(client);
    await client.query("LISTEN hearth_changes");
    this.#instances = await countInstances((text, values = []) =>
      client.query(text, [...values]),
    );
  }

  #startCounting(ask: InTurn): NodeJS.Timeout {
    return setInterval(() => {
      countInstances(ask).then(
        (count) => (this.#instances = count),
        () => undefined,
      );
    }, COUNT_EVERY_MS);
  }

  #passNotices(client: pg.Client): void {
    client.on("notification", ({ payload = "" }) => {
      const colon = payload.indexOf(":");
      this.#options.onChange(payload.slice(0, colon), payload.slice(colon + 1));
    });
  }

  /** Brings the schema up to date the first time, and reports the connection. */
  async #serve(client: pg.Client): Promise<void> {
    if (this.#hasPooler()) {
      await requireSameDatabase(client, this.#options.pool);
    }
    if (!this.#ready) {
      await migrate(this.#options.sessionPool, this.#log);
    }
    this.#client = client;
    this.#connected = true;
    this.#retryMs = RETRY_AFTER_MS;
    if (this.#ready) {
      this.#options.onReconnect();
    } else {
      await this.#options.onReady();
    }
    this.#ready = true;
    this.#log.info("connected to the database");
  }

  async #lockInstance(attempt: pg.Client): Promise<void> {
    const lock = this.#options.shared
      ? "pg_try_advisory_lock_shared"
      : "pg_try_advisory_lock";
    const { rows } = await attempt.query<{ locked: boolean }>(
      `SELECT ${lock}($1) AS locked`,
      [INSTANCE_LOCK],
    );
    if (rows[0]?.locked === true) {
      this.#refusedSince = null;
      return;
    }
    this.#refusedSince ??= performance.now();
    // A gateway that reconnects waits until Postgres has ended its previous session.
    if (
      !this.#ready &&
      performance.now() - this.#refusedSince > LOCK_PATIENCE_MS
    ) {
      this.#options.onRejected(
        "another gateway without Redis uses this database: set REDIS_HOST for both, or stop the other one.",
      );
    }
    throw new Error("another gateway uses this database exclusively");
  }

  #hasPooler(): boolean {
    return this.#options.sessionPool !== this.#options.pool;
  }

  #sessionVariable(): SessionVariable {
    return this.#hasPooler() ? "DATABASE_DIRECT_URL" : "DATABASE_URL";
  }

  #keepTrying(): void {
    this.#connect().catch((error: unknown) => {
      if (this.#stopped) {
        return;
      }
      const problem = addressProblem(error, this.#sessionVariable());
      // An address that served before is no mistake: it may lead elsewhere during a failover.
      if (problem !== null && !this.#ready) {
        this.#options.onRejected(problem);
      }
      this.#setAllSilent(isOverdue(error));
      this.#log.warn(
        { error: problem ?? textOf(error) },
        "database unavailable; retrying",
      );
      this.#timer = setTimeout(() => this.#keepTrying(), this.#retryMs);
      this.#retryMs = Math.min(this.#retryMs * 1.5, MAX_RETRY_MS);
    });
  }
}

/** Does not wait for an answer: a silent connection sends none. */
async function endOf(client: pg.Client): Promise<void> {
  await within(ANSWER_MS, client.end()).catch(() => undefined);
}

/** Counts the gateways on this database: each holds the instance lock once. */
async function countInstances(ask: InTurn): Promise<number> {
  const { rows } = await ask(
    `SELECT count(*)::int AS count FROM pg_locks
     WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND classid = 0 AND objid::bigint = $1
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    [INSTANCE_LOCK],
  );
  const [row] = rows as readonly { readonly count: number }[];
  return Math.max(1, row?.count ?? 1);
}
