import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { query, transaction, type Pool } from "./pool.ts";

const directory = fileURLToPath(new URL("./migrations", import.meta.url));
const TABLE = "migrations";
/** Kept in backups for releases that do not have the files. */
const TEXTS_TABLE = "migration_texts";

/**
 * Brings the schema up to date: plain SQL, forward only, one instance at a time under an advisory lock.
 * The runner is loaded only when there is something to run: most starts have nothing, and it is slow to load.
 */
export async function migrate(pool: Pool, log: Logger): Promise<void> {
  const names = (await readdir(directory))
    .filter((file) => file.endsWith(".sql"))
    .map((file) => file.slice(0, -".sql".length))
    .sort();
  const applied = await namesIn(pool, TABLE);
  const remembered = await namesIn(pool, TEXTS_TABLE);
  if (names.every((name) => applied.has(name) && remembered.has(name))) {
    return;
  }
  const { runner } = await import("node-pg-migrate");
  const client = await pool.connect();
  try {
    // A long migration must not be cut by the pool's limit for ordinary statements.
    await client.query("SET statement_timeout = 0");
    // While a migration waits for a table (a pg_dump may hold it for hours), so does every gateway behind it: it gives up
    // and tries again instead.
    await client.query("SET lock_timeout = '2s'");
    const ran = await runner({
      dbClient: client,
      dir: directory,
      migrationsTable: TABLE,
      direction: "up",
      singleTransaction: true,
      advisoryLockMode: "wait",
      log: () => undefined,
    });
    for (const name of names) {
      await client.query(
        `INSERT INTO ${TEXTS_TABLE} (name, sql) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
        [name, await readFile(join(directory, `${name}.sql`), "utf8")],
      );
    }
    if (ran.length > 0) {
      log.info(
        { migrations: ran.map((migration) => migration.name) },
        "database schema migrated",
      );
    }
  } finally {
    client.release(true);
  }
}

/** None where the table does not exist yet. */
async function namesIn(
  pool: Pool,
  table: string,
): Promise<ReadonlySet<string>> {
  return transaction(pool, async (client) => {
    const known = await query<{ found: string | null }>(
      client,
      "SELECT to_regclass($1)::text AS found",
      [table],
    );
    if (known[0]?.found == null) {
      return new Set();
    }
    const rows = await query<{ name: string }>(
      client,
      `SELECT name FROM ${table}`,
    );
    return new Set(rows.map((row) => row.name));
  });
}
