// Brings the schema of the database up to date and ends. Gateways do the same at their start; run before an upgrade, it stops an
// upgrade that cannot migrate while all gateways still serve. Addresses come from the environment, as the gateway's do.
import pg from "pg";
import { pino } from "pino";
import { readVariable } from "../core/environment.ts";
import { textOf } from "../core/failure.ts";
import {
  addressProblem,
  requireSession,
  type SessionVariable,
} from "./database/addresses.ts";
import { migrate } from "./database/migrate.ts";
import { createPool } from "./database/pool.ts";

const CONNECT_TIMEOUT_MS = 10_000;

function readAddress(): {
  readonly variable: SessionVariable;
  readonly url: string;
} {
  for (const variable of ["DATABASE_DIRECT_URL", "DATABASE_URL"] as const) {
    const url = readVariable(variable);
    if (url !== undefined) {
      return { variable, url };
    }
  }
  throw new Error(
    "DATABASE_URL is not set: set it, or DATABASE_URL_FILE to a file with it, to postgresql://user:password@host:5432/database.",
  );
}

/** Migrations hold an advisory lock, which a connection pooler in transaction mode would lose. */
async function rejectPooler(
  variable: SessionVariable,
  url: string,
): Promise<void> {
  const clients: pg.Client[] = [];
  const connect = async () => {
    const client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    });
    clients.push(client);
    await client.connect();
    return client;
  };
  try {
    await requireSession(await connect(), variable, connect);
  } finally {
    await Promise.all(
      clients.map((client) => client.end().catch(() => undefined)),
    );
  }
}

async function migrateOnce(): Promise<void> {
  const { variable, url } = readAddress();
  const log = pino();
  try {
    await rejectPooler(variable, url);
    const pool = createPool(url, 1, log);
    try {
      await migrate(pool, log);
    } finally {
      await pool.end();
    }
  } catch (error) {
    throw new Error(
      addressProblem(error, variable) ??
        `the database cannot be migrated (${textOf(error)}): check ${variable} and the database, then run this again; running gateways are not affected.`,
      { cause: error },
    );
  }
  log.info("the database schema is up to date");
}

try {
  await migrateOnce();
} catch (error) {
  process.stderr.write(`hearth: ${textOf(error)}\n`);
  process.exitCode = 1;
}
