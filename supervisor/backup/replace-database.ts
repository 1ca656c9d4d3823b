import { setTimeout as wait } from "node:timers/promises";
import type { Client } from "pg";
import { Failure } from "../../core/failure.ts";
import {
  databaseOf,
  onDatabase,
  quoted,
  rowsOf,
  withDatabase,
} from "./database.ts";
import { dropDatabase } from "./scratch-database.ts";

const OWNER = "hearth_owner";
const TELL_EVERY_MS = 200;

/** Tables whose rows only people and calls make: while they are empty, so is the database. */
const TELLING_TABLES = [
  "keys",
  "users",
  "teams",
  "organizations",
  "end_users",
  "tags",
  "budgets",
  "spend_log",
  "spend_archive",
];

/** What a database holds, in words; undefined when it is empty, has no tables yet, or is not there. */
export async function contentOf(
  databaseUrl: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const database = databaseOf(databaseUrl);
  const there = await withDatabase(
    onDatabase(databaseUrl, "postgres"),
    signal,
    (client) => isThere(client, database),
  );
  if (!there) {
    return undefined;
  }
  return withDatabase(databaseUrl, signal, async (client) => {
    const held: string[] = [];
    for (const table of TELLING_TABLES) {
      const [found] = await rowsOf<{ there: boolean }>(
        client,
        "SELECT to_regclass($1) IS NOT NULL AS there",
        [table],
      );
      if (found?.there !== true) {
        continue;
      }
      const [counted] = await rowsOf<{ count: string }>(
        client,
        `SELECT count(*)::text AS count FROM ${quoted(table)}`,
      );
      if (counted !== undefined && counted.count !== "0") {
        held.push(`${counted.count} rows in ${table}`);
      }
    }
    return held.length === 0 ? undefined : held.join(", ");
  });
}

/**
 * Drops what a restore that was killed left beside the database of the address, and answers their names. The address is a
 * superuser's; no restore may run.
 */
export async function dropLeftRestores(
  databaseUrl: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const database = databaseOf(databaseUrl);
  const maintenanceUrl = onDatabase(databaseUrl, "postgres");
  return withDatabase(maintenanceUrl, signal, (client) =>
    dropLeft(client, database),
  );
}

async function dropLeft(
  client: Client,
  database: string,
): Promise<readonly string[]> {
  const left: string[] = [];
  for (const name of [filled(database), replaced(database)]) {
    if (await isThere(client, name)) {
      await dropDatabase(client, name);
      left.push(name);
    }
  }
  return left;
}

/** While it is filled. */
const filled = (database: string) => `${database}_restoring`;
/** The empty one before, until it is dropped. */
const replaced = (database: string) => `${database}_replaced`;

/**
 * Makes a database beside the one of the address as `hearth up` and initdb make theirs, lets `fill` fill it, and puts it in
 * place of the other in one transaction: at every moment there is the old one or the new one, whole. The old one is dropped,
 * or kept under `keepAs`. The address is a superuser's. Answers what a killed restore had left, which is dropped first.
 */
export async function replaceDatabase(
  databaseUrl: string,
  signal: AbortSignal,
  keepAs: string | undefined,
  fill: (newUrl: string) => Promise<void>,
): Promise<readonly string[]> {
  const database = databaseOf(databaseUrl);
  const next = filled(database);
  const maintenanceUrl = onDatabase(databaseUrl, "postgres");
  const left = await withDatabase(maintenanceUrl, signal, async (client) => {
    await needSuperuser(client);
    const dropped = await dropLeft(client, database);
    await client.query(
      `CREATE DATABASE ${quoted(next)} OWNER ${OWNER} TEMPLATE template0`,
    );
    for (const statement of databaseRights(next)) {
      await client.query(statement);
    }
    return dropped;
  });
  try {
    await withDatabase(
      onDatabase(databaseUrl, next),
      signal,
      async (client) => {
        for (const statement of SCHEMA_RIGHTS) {
          await client.query(statement);
        }
      },
    );
    await fill(onDatabase(databaseUrl, next));
    signal.throwIfAborted();
    await swap(maintenanceUrl, database, next, keepAs);
    return left;
  } catch (error) {
    await withDatabase(maintenanceUrl, AbortSignal.timeout(60_000), (client) =>
      dropDatabase(client, next),
    );
    throw error;
  }
}

/** The same as config/postgres-roles.sql gives to the first database; rights of a database are not part of a backup. */
function databaseRights(database: string): readonly string[] {
  return [
    `REVOKE ALL ON DATABASE ${quoted(database)} FROM PUBLIC`,
    `GRANT CONNECT ON DATABASE ${quoted(database)} TO hearth_reader, hearth_reports`,
  ];
}

const SCHEMA_RIGHTS: readonly string[] = [
  `ALTER SCHEMA public OWNER TO ${OWNER}`,
  `ALTER DEFAULT PRIVILEGES FOR ROLE ${OWNER} GRANT USAGE ON SCHEMAS TO hearth_reader`,
  `ALTER DEFAULT PRIVILEGES FOR ROLE ${OWNER} GRANT SELECT ON TABLES TO hearth_reader`,
  `ALTER DEFAULT PRIVILEGES FOR ROLE ${OWNER} GRANT SELECT ON SEQUENCES TO hearth_reader`,
];

async function needSuperuser(client: Client): Promise<void> {
  const [role] = await rowsOf<{ rolsuper: boolean }>(
    client,
    "SELECT rolsuper FROM pg_roles WHERE rolname = current_user",
  );
  if (role?.rolsuper !== true) {
    throw new Failure(
      "a restore needs Postgres's superuser: RESTORE_DATABASE_URL must be the address of the database with the user postgres.",
    );
  }
}

async function swap(
  maintenanceUrl: string,
  database: string,
  next: string,
  keepAs: string | undefined,
): Promise<void> {
  // From here on nothing is called off: it is a moment's work.
  const signal = AbortSignal.timeout(60_000);
  const old = keepAs ?? replaced(database);
  await withDatabase(maintenanceUrl, signal, async (client) => {
    const there = await isThere(client, database);
    const renaming = new AbortController();
    const sendingAway = there
      ? sendAway(maintenanceUrl, database, renaming.signal)
      : Promise.resolve();
    try {
      await client.query("BEGIN");
      if (there) {
        await client.query(
          `ALTER DATABASE ${quoted(database)} RENAME TO ${quoted(old)}`,
        );
      }
      await client.query(
        `ALTER DATABASE ${quoted(next)} RENAME TO ${quoted(database)}`,
      );
      await client.query("COMMIT");
    } finally {
      renaming.abort();
      await sendingAway;
    }
    if (there && keepAs === undefined) {
      await dropDatabase(client, old);
    }
  });
}

/** A database that somebody uses is not renamed; while one waits to be, nobody new comes in. */
async function sendAway(
  maintenanceUrl: string,
  database: string,
  until: AbortSignal,
): Promise<void> {
  await withDatabase(
    maintenanceUrl,
    AbortSignal.timeout(60_000),
    async (client) => {
      while (!until.aborted) {
        await client.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1",
          [database],
        );
        await wait(TELL_EVERY_MS, undefined, { signal: until }).catch(() => {});
      }
    },
  );
}

async function isThere(client: Client, database: string): Promise<boolean> {
  const rows = await rowsOf(
    client,
    "SELECT 1 FROM pg_database WHERE datname = $1",
    [database],
  );
  return rows.length > 0;
}
