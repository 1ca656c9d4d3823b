import pg from "pg";
import type { Logger } from "pino";

export type Pool = pg.Pool;
export type Client = pg.ClientBase;

/** Postgres cannot be reached now; what was asked may work in a moment. */
export class DatabaseUnavailable extends Error {
  constructor(cause: unknown) {
    super("The database cannot be reached.", { cause });
  }
}

const CONNECT_TIMEOUT_MS = 3_000;
const STATEMENT_TIMEOUT_MS = 30_000;

// Counts and token sums fit a double; money is asked for as text or float where it is needed.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);

export function createPool(
  databaseUrl: string,
  size: number,
  log: Logger,
): Pool {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: size,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    // Longer than the server's own limit: only a connection that went silent is cut by it.
    query_timeout: STATEMENT_TIMEOUT_MS + 5_000,
    application_name: "hearth-gateway",
    keepAlive: true,
  });
  // An idle connection that the server closed: the pool replaces it by itself.
  pool.on("error", (error) =>
    log.warn({ error: error.message }, "a database connection was lost"),
  );
  const logins = new WeakMap<pg.ClientBase, string | undefined>();
  pool.on("connect", (client) => {
    logins.set(client, pool.options.connectionString);
    // One that is lost between two statements of a transaction: the next statement fails and tells it. Without a listener
    // of its own the event would end the process.
    client.on("error", () => undefined);
  });
  // The pool drops what is ending: a login of before goes when its work is done, however busy the pool is.
  pool.on("release", (_error, client) => {
    if (logins.get(client) !== pool.options.connectionString)
      void client.end().catch(() => undefined);
  });
  return pool;
}

/** Connections made from now on log in as this address says; those that are open end after the work they are given next. */
export function followLogin(pool: Pool, databaseUrl: string): void {
  (pool.options as pg.PoolConfig).connectionString = databaseUrl;
}

/** SQLSTATE classes 08 (connection), 53 (resources), 57P (shutdown), and a server that only reads (25006). */
const AWAY_STATES = /^(08|53|57P|57014|25006)/;
/** What node-postgres says, without a code, of a connection that ended or never came. */
const AWAY_WORDS = /terminat|timeout|timed out|connection|not queryable/i;

/** Whether the database is away, as against a statement that it refused. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return true;
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  if (error instanceof pg.DatabaseError)
    return typeof code === "string" && AWAY_STATES.test(code);
  return typeof code === "string" || AWAY_WORDS.test(error.message);
}

/** SQLSTATE classes 22 (data) and 54 (limits, such as the length of an index entry). */
const VALUE_STATES = /^(22|54)/;
const NO_VALUE = "23502";

/** Whether a statement was refused for a value in it: tried again as it is, it would be refused again. */
export function isValueRefused(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError && VALUE_STATES.test(error.code ?? "")
  );
}

/**
 * Whether a statement was refused for what it was to store, a value or the lack of one. Other constraints are not about
 * what is stored: a month without its partition, or a rule that somebody added, is a fault of the table.
 */
export function isContentRefused(error: unknown): boolean {
  return (
    isValueRefused(error) ||
    (error instanceof pg.DatabaseError && error.code === NO_VALUE)
  );
}

/** Runs one statement; a connection fault becomes {@link DatabaseUnavailable}. */
export async function query<Row extends pg.QueryResultRow>(
  pool: Pool | Client,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  try {
    return (await pool.query<Row>(text, values as unknown[])).rows;
  } catch (error) {
    throw isUnavailable(error) ? new DatabaseUnavailable(error) : error;
  }
}

/** Runs one statement of a transaction that may take longer than others may, up to `timeoutMs`. */
export async function longQuery<Row extends pg.QueryResultRow>(
  client: Client,
  text: string,
  timeoutMs: number,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  await query(client, `SET LOCAL statement_timeout = ${timeoutMs}`);
  // The driver has a limit of its own, and its types do not know that a statement may have another one.
  const statement: pg.QueryConfig & { readonly query_timeout: number } = {
    text,
    values: [...values],
    query_timeout: timeoutMs + 5_000,
  };
  try {
    return (await client.query<Row>(statement)).rows;
  } catch (error) {
    throw isUnavailable(error) ? new DatabaseUnavailable(error) : error;
  }
}

/** Runs `work` in one transaction, rolled back when it throws. */
export async function transaction<T>(
  pool: Pool,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  let client: pg.PoolClient;
  try {
    client = await pool.connect();
  } catch (error) {
    throw new DatabaseUnavailable(error);
  }
  let broken = false;
  try {
    await client.query("BEGIN");
    const result = await work(client);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    broken = isUnavailable(error);
    if (!broken) await client.query("ROLLBACK").catch(() => (broken = true));
    throw broken && !(error instanceof DatabaseUnavailable)
      ? new DatabaseUnavailable(error)
      : error;
  } finally {
    client.release(broken);
  }
}
