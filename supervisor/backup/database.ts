import { Client } from "pg";
import { MINUTE_MS } from "../../core/duration.ts";
import { Failure, codeOf, textOf } from "../../core/failure.ts";

const CONNECT_WITHIN_MS = 10_000;
const LOCK_WITHIN_MS = MINUTE_MS;

/**
 * Works on a new connection, which an abort closes. Statements have no timeout; times are in UTC and dates in ISO format,
 * whatever the settings of the server.
 */
export async function withDatabase<T>(
  url: string,
  signal: AbortSignal,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    statement_timeout: 0,
    lock_timeout: LOCK_WITHIN_MS,
    options: "-c timezone=UTC -c datestyle=ISO -c search_path=public",
    application_name: "hearth-supervisor",
    keepAlive: true,
  });
  // A lost connection fails the current statement; without a listener, it would end the process.
  client.on("error", () => {});
  try {
    await client.connect();
  } catch (error) {
    throw new Failure(connectProblem(error), error);
  }
  const cut = () => void client.end().catch(() => {});
  signal.addEventListener("abort", cut, { once: true });
  try {
    return await work(client);
  } finally {
    signal.removeEventListener("abort", cut);
    await client.end().catch(() => {});
  }
}

const PROTOCOL_VIOLATION = "08P01";

/** A connection pooler rejects the session's settings, without which a copy could differ from the database. */
function connectProblem(error: unknown): string {
  const code = codeOf(error);
  return code === PROTOCOL_VIOLATION
    ? `the address leads to a connection pooler, not to Postgres (${textOf(error)}): BACKUP_DATABASE_URL, RESTORE_DATABASE_URL and SUPERVISOR_DATABASE_URL must be addresses of Postgres itself.`
    : `Postgres cannot be reached (${code ?? textOf(error)}): run \`hearth status\`.`;
}

/** The same server and role, another database. */
export function onDatabase(url: string, database: string): string {
  const address = new URL(url);
  address.pathname = `/${database}`;
  return address.href;
}

/** The database name of an address. */
export function databaseOf(url: string): string {
  return decodeURIComponent(new URL(url).pathname.slice(1));
}

export async function rowsOf<Row extends Record<string, unknown>>(
  client: Client,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  return (await client.query<Row>(text, [...values])).rows;
}

/** A name from the catalogue, quoted for a statement. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
