import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { query, transaction, type Pool } from "./pool.ts";

const directory = fileURLToPath(new URL("./migrations", import.meta.url));
const table = "migrations";

/**
 * Brings the schema up to date: plain SQL, forward only, one instance at a time under an advisory lock.
 * The runner is loaded only when there is something to run: most starts have nothing, and it is slow to load.
 */
export async function migrate(pool: Pool, log: Logger): Promise<void> {
  const files = (await readdir(directory))
    .filter((file) => file.endsWith(".sql"))
    .sort();
  const applied = await appliedMigrations(pool);
  if (files.every((file) => applied.has(file.slice(0, -".sql".length)))) return;
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
      migrationsTable: table,
      direction: "up",
      singleTransaction: true,
      advisoryLockMode: "wait",
      log: () => undefined,
    });
    log.info(
      { migrations: ran.map((migration) => migration.name) },
      "the database schema was migrated",
    );
  } finally {
    client.release(true);
  }
}

async function appliedMigrations(pool: Pool): Promise<ReadonlySet<string>> {
  return transaction(pool, async (client) => {
    const known = await query<{ found: string | null }>(
      client,
      "SELECT to_regclass($1)::text AS found",
      [table],
    );
    if (known[0]?.found == null) return new Set();
    const rows = await query<{ name: string }>(
      client,
      `SELECT name FROM ${table}`,
    );
    return new Set(rows.map((row) => row.name));
  });
}
