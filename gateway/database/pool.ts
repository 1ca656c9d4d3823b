import { hash } from "node:crypto";
import {
  setImmediate as nextTurn,
  setTimeout as sleep,
} from "node:timers/promises";
import pg from "pg";
import type { Logger } from "pino";

export type Pool = pg.Pool;
export type Client = pg.ClientBase;

/** Postgres cannot be reached now; the statement may succeed later. */
export class DatabaseUnavailable extends Error {
  constructor(cause: unknown) {
    super("The database cannot be reached.", { cause });
  }
}

/** Postgres ended a statement that is not in the path of a call because it took too long. */
export class StatementTooLong extends DatabaseUnavailable {}

/** For the `catch` of a lookup: null while the database is unavailable. Throws every other error. */
export function nullIfUnavailable(error: unknown): null {
  if (error instanceof DatabaseUnavailable) {
    return null;
  }
  throw error;
}

/** A statement in the path of a call is answered within this time, the wait for a connection included, or Postgres is away. */
export const CALL_DEADLINE_MS = 2_000;
const CONNECT_TIMEOUT_MS = 2_000;
/** A new connection costs a login and a process, and has no prepared statements. */
const IDLE_MS = 300_000;
export const STATEMENT_TIMEOUT_MS = 30_000;
/** The driver's limit comes after the server's own: only a connection that went silent is cut by it. */
const DRIVER_MARGIN_MS = 5_000;
/** After an overdue answer, statements of calls fail at once for this time, so that one call waits once. */
const RETRY_AFTER_MS = 1_000;
const LOST_AFTER_MS = 15_000;

// Counts and token sums fit a double; money is selected as text or float where it is needed.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);

/** `calls`: statements in the path of calls, with deadlines. They share no connection with longer statements. */
type Purpose = "calls" | "work";

/**
 * `pooled`: the address is that of a connection pooler in transaction mode, which keeps nothing of a session and rejects its
 * parameters: each transaction sets its own limits, and a single statement runs in one.
 */
type Route = "direct" | "pooled";

/** State of a pool that the driver does not keep. */
interface PoolState {
  readonly purpose: Purpose;
  readonly route: Route;
  /** Begins a transaction. */
  readonly begin: string;
  readonly busy: Set<{ end(): Promise<void> }>;
  silent: boolean;
  awayUntil: number;
}
const states = new WeakMap<object, PoolState>();
/** Connections, and pools of such, that keep prepared statements. */
const preparing = new WeakSet<object>();

export function createPool(
  databaseUrl: string,
  size: number,
  log: Logger,
  purpose: Purpose = "work",
  route: Route = "direct",
): Pool {
  const statementMs =
    purpose === "calls" ? CALL_DEADLINE_MS : STATEMENT_TIMEOUT_MS;
  const limits = {
    statement_timeout: statementMs,
    // A host that was lost in a transaction must not keep its locks until TCP gives up.
    idle_in_transaction_session_timeout: LOST_AFTER_MS,
  };
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: size,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_MS,
    ...(route === "direct" ? limits : {}),
    query_timeout: statementMs + DRIVER_MARGIN_MS,
    application_name: "hearth-gateway",
    keepAlive: true,
  });
  const busy: PoolState["busy"] = new Set();
  const begin = route === "direct" ? "BEGIN" : beginWithin(limits);
  states.set(pool, {
    purpose,
    route,
    begin,
    busy,
    silent: false,
    awayUntil: 0,
  });
  if (route === "direct") {
    preparing.add(pool);
    pool.on("connect", (client) => void preparing.add(client));
  }
  pool.on("acquire", (client) => void busy.add(client));
  pool.on("release", (_error, client) => void busy.delete(client));
  // An idle connection that the server closed: the pool replaces it by itself.
  pool.on("error", (error) =>
    log.warn({ error: error.message }, "a database connection was lost"),
  );
  const logins = new WeakMap<pg.ClientBase, string | undefined>();
  pool.on("connect", (client) => {
    logins.set(client, pool.options.connectionString);
    // One that is lost between two statements of a transaction: the next statement reports it. Without a listener the event
    // would end the process.
    client.on("error", () => undefined);
  });
  // The pool drops ending connections: one with an old login ends when its work is done, however busy the pool is.
  pool.on("release", (_error, client) => {
    if (logins.get(client) !== pool.options.connectionString) {
      void client.end().catch(() => undefined);
    }
  });
  return pool;
}

/** Several statements in one round trip. */
function beginWithin(limits: Readonly<Record<string, number>>): string {
  return [
    "BEGIN",
    ...Object.entries(limits).map(([name, ms]) => `SET LOCAL ${name} = ${ms}`),
  ].join("; ");
}

/**
 * Whether Postgres stopped answering without closing its connections. While it is silent, running statements are cut off
 * and new ones fail at once, instead of each waiting for its own timeout.
 */
export function setSilent(pool: Pool, silent: boolean): void {
  const state = states.get(pool);
  if (state === undefined) {
    return;
  }
  state.silent = silent;
  state.awayUntil = 0;
  if (!silent) {
    return;
  }
  for (const client of state.busy) {
    void client.end().catch(() => undefined);
  }
}

/** New connections log in with this address; open ones end after their next work. */
export function followLogin(pool: Pool, databaseUrl: string): void {
  (pool.options as pg.PoolConfig).connectionString = databaseUrl;
}

/**
 * SQLSTATE classes 08 (connection), 53 (resources), 57P (shutdown), 58 (its disk), a statement or lock that took too long (57014,
 * 55P03), and a server that only reads (25006).
 */
const AWAY_STATES = /^(08|53|57P|57014|55P03|25006|58)/;
/** Postgres counts a disk that was made read-only as a lack of privileges (42501). */
const READ_ONLY_DISK = /: Read-only file system$/;
/** Messages of node-postgres, without a code, about a connection that ended or was never established. */
const AWAY_WORDS = /terminat|timeout|timed out|connection|not queryable/i;

/** Whether the database is unavailable, as opposed to a rejected statement. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) {
    return true;
  }
  if (!(error instanceof Error)) {
    return false;
  }
  const { code } = error as { code?: unknown };
  if (error instanceof pg.DatabaseError) {
    return (
      (typeof code === "string" && AWAY_STATES.test(code)) ||
      READ_ONLY_DISK.test(error.message)
    );
  }
  return typeof code === "string" || AWAY_WORDS.test(error.message);
}

/** SQLSTATE classes 22 (data) and 54 (limits, such as the length of an index entry). */
const VALUE_STATES = /^(22|54)/;
const NO_VALUE = "23502";

/** Whether a statement was rejected for a value in it: an unchanged retry would be rejected again. */
export function isValueRejected(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError && VALUE_STATES.test(error.code ?? "")
  );
}

/**
 * Whether a statement was rejected for its content: a value or a missing one. Other constraints do not concern the
 * content: a month without its partition, or an added constraint, is a fault of the table.
 */
export function isContentRejected(error: unknown): boolean {
  return (
    isValueRejected(error) ||
    (error instanceof pg.DatabaseError && error.code === NO_VALUE)
  );
}

/** Runs one statement; a connection fault becomes {@link DatabaseUnavailable}. */
export function query<Row extends pg.QueryResultRow>(
  pool: Pool | Client,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  return run(pool, { text, values: [...values] });
}

/**
 * As {@link query}, for a statement that is repeated often: to plan one takes longer than to run it for a few rows. Each connection
 * plans it once, except those of a pooler.
 */
export function repeatedQuery<Row extends pg.QueryResultRow>(
  pool: Pool | Client,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  const name = preparing.has(pool) ? { name: nameOf(text) } : {};
  return run(pool, { text, values: [...values], ...name });
}

const statementNames = new Map<string, string>();

/** The same in every process: a connection of a pooler may have those of another one. */
function nameOf(text: string): string {
  let name = statementNames.get(text);
  if (name === undefined) {
    name = `hearth_${hash("sha256", text).slice(0, 16)}`;
    statementNames.set(text, name);
  }
  return name;
}

/**
 * SQLSTATEs of a prepared statement that its connection does not have, has already, or has for a table that has changed: the
 * statement is right, and another connection can execute it.
 */
const STALE_STATEMENT_STATES = /^(26000|42P05|0A000)$/;

function isStale({ name }: pg.QueryConfig, error: unknown): boolean {
  return (
    name !== undefined &&
    error instanceof pg.DatabaseError &&
    STALE_STATEMENT_STATES.test(error.code ?? "")
  );
}

async function run<Row extends pg.QueryResultRow>(
  pool: Pool | Client,
  statement: pg.QueryConfig,
): Promise<readonly Row[]> {
  const state = states.get(pool);
  refuseWhileAway(state);
  const ofCall = state?.purpose === "calls";
  try {
    const answer = ask<Row>(pool, statement);
    return (await (ofCall ? within(CALL_DEADLINE_MS, answer) : answer)).rows;
  } catch (error) {
    if (isStale(statement, error)) {
      throw new DatabaseUnavailable(error);
    }
    if (!isUnavailable(error)) {
      throw error;
    }
    if (ofCall) {
      state.awayUntil = performance.now() + RETRY_AFTER_MS;
    } else if (isTooLong(error)) {
      throw new StatementTooLong(error);
    }
    throw asUnavailable(error);
  }
}

const QUERY_CANCELED = "57014";

function isTooLong(error: unknown): boolean {
  const cause = error instanceof DatabaseUnavailable ? error.cause : error;
  return cause instanceof pg.DatabaseError && cause.code === QUERY_CANCELED;
}

function ask<Row extends pg.QueryResultRow>(
  pool: Pool | Client,
  statement: pg.QueryConfig,
): Promise<pg.QueryResult<Row>> {
  return states.get(pool)?.route === "pooled"
    ? transaction(pool as Pool, (client) => client.query<Row>(statement))
    : pool.query<Row>(statement);
}

function asUnavailable(error: unknown): DatabaseUnavailable {
  return error instanceof DatabaseUnavailable
    ? error
    : new DatabaseUnavailable(error);
}

function refuseWhileAway(state: PoolState | undefined): void {
  if (state === undefined) {
    return;
  }
  if (state.silent || performance.now() < state.awayUntil) {
    throw new DatabaseUnavailable(new Error("Postgres does not answer"));
  }
}

/**
 * The result of `work`; throws {@link DatabaseUnavailable} after `ms`. A result that arrives while this process is busy
 * is in time.
 */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const answered = new AbortController();
  const overdue = async (): Promise<never> => {
    await sleep(ms, undefined, { signal: answered.signal });
    await nextTurn();
    throw new DatabaseUnavailable(new Error(`timeout: no answer in ${ms} ms`));
  };
  try {
    return await Promise.race([work, overdue()]);
  } finally {
    answered.abort();
  }
}

/** Runs one statement of a transaction that may take longer than others may, up to `timeoutMs`. */
export async function longQuery<Row extends pg.QueryResultRow>(
  client: Client,
  text: string,
  timeoutMs: number,
): Promise<readonly Row[]> {
  await query(client, `SET LOCAL statement_timeout = ${timeoutMs}`);
  // The driver has a general limit; its types lack the limit for a single statement.
  const statement: pg.QueryConfig & { readonly query_timeout: number } = {
    text,
    query_timeout: timeoutMs + DRIVER_MARGIN_MS,
  };
  try {
    return (await client.query<Row>(statement)).rows;
  } catch (error) {
    throw isUnavailable(error) ? new DatabaseUnavailable(error) : error;
  }
}

/** What the transactions of connections do last. */
const lastSteps = new WeakMap<object, (() => Promise<void>)[]>();

/**
 * Runs `step` at the end of the transaction of a connection, before it is committed. A lock that all wait for belongs there: one
 * that holds it and then waits for a row would wait for those who wait for it.
 */
export function beforeCommit(client: Client, step: () => Promise<void>): void {
  const steps = lastSteps.get(client);
  if (steps === undefined) {
    throw new Error("the connection is not in a transaction");
  }
  steps.push(step);
}

/** Two transactions waited for each other; Postgres has rolled this one back. */
const DEADLOCK = "40P01";
const MAX_ATTEMPTS = 4;

/**
 * Runs `work` in one transaction, rolled back when it throws; again after a deadlock, of which the other transaction can end then. So
 * `work` changes nothing outside of its transaction that it may not change again.
 */
export async function transaction<T>(
  pool: Pool,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transactionOnce(pool, work);
    } catch (error) {
      const isDeadlock =
        error instanceof pg.DatabaseError && error.code === DEADLOCK;
      if (!isDeadlock || attempt === MAX_ATTEMPTS) {
        throw isDeadlock ? new DatabaseUnavailable(error) : error;
      }
    }
  }
}

/** As {@link transaction}, without another attempt. */
export async function transactionOnce<T>(
  pool: Pool,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  let client: pg.PoolClient;
  try {
    refuseWhileAway(states.get(pool));
    client = await pool.connect();
  } catch (error) {
    throw new DatabaseUnavailable(error);
  }
  let broken = false;
  const steps: (() => Promise<void>)[] = [];
  lastSteps.set(client, steps);
  try {
    await client.query(states.get(pool)?.begin ?? "BEGIN");
    const result = await work(client);
    for (const step of steps) {
      await step();
    }
    await client.query("COMMIT");
    return result;
  } catch (error) {
    broken = isUnavailable(error);
    if (!broken) {
      await client.query("ROLLBACK").catch(() => (broken = true));
    }
    throw broken && !(error instanceof DatabaseUnavailable)
      ? new DatabaseUnavailable(error)
      : error;
  } finally {
    lastSteps.delete(client);
    client.release(broken);
  }
}
