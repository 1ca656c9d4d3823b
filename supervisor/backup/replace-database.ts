import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "pg";
import { MINUTE_MS } from "../../core/duration.ts";
import { Failure } from "../../core/failure.ts";
import {
  databaseOf,
  onDatabase,
  quoted,
  rowsOf,
  withDatabase,
} from "./database.ts";
import { backupName } from "./manifest.ts";
import { dropDatabase } from "./scratch-database.ts";

const OWNER = "hearth_owner";
const DISCONNECT_EVERY_MS = 200;

/** Tables with rows only of people and calls: a database counts as empty while these are empty. */
const CONTENT_TABLES = [
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

/** Describes the content of a database; undefined if it is empty, has no tables, or does not exist. */
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
    for (const table of await tablesWithRows(client)) {
      const [counted] = await rowsOf<{ count: string }>(
        client,
        `SELECT count(*)::text AS count FROM ${quoted(table)}`,
      );
      held.push(`${counted?.count} rows in ${table}`);
    }
    return held.length === 0 ? undefined : held.join(", ");
  });
}

/** Records in a database which backup it was restored from. */
export async function recordOrigin(
  databaseUrl: string,
  backup: string,
  signal: AbortSignal,
): Promise<void> {
  await withDatabase(databaseUrl, signal, (client) =>
    client.query(
      `COMMENT ON DATABASE ${quoted(databaseOf(databaseUrl))} IS ${client.escapeLiteral(originOf(backup))}`,
    ),
  );
}

/** Whether a database was restored from this backup; what was written since does not matter. */
export async function isRestoredFrom(
  databaseUrl: string,
  backup: string,
  signal: AbortSignal,
): Promise<boolean> {
  const [row] = await withDatabase(databaseUrl, signal, (client) =>
    rowsOf<{ comment: string | null }>(
      client,
      "SELECT shobj_description(oid, 'pg_database') AS comment FROM pg_database WHERE datname = current_database()",
    ),
  );
  return row?.comment === originOf(backup);
}

const originOf = (backup: string) => `restored from ${backup}`;

/** Quick however many rows there are. */
async function tablesWithRows(client: Client): Promise<readonly string[]> {
  const found: string[] = [];
  for (const table of CONTENT_TABLES) {
    const [exists] = await rowsOf<{ there: boolean }>(
      client,
      "SELECT to_regclass($1) IS NOT NULL AS there",
      [table],
    );
    if (exists?.there !== true) {
      continue;
    }
    const [row] = await rowsOf(
      client,
      `SELECT 1 FROM ${quoted(table)} LIMIT 1`,
    );
    if (row !== undefined) {
      found.push(table);
    }
  }
  return found;
}

/**
 * Drops the database left by an interrupted restore and returns its name; undefined if there is none. The address is that of a
 * superuser; no restore may be running.
 */
export async function dropLeftRestore(
  databaseUrl: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const database = databaseOf(databaseUrl);
  const maintenanceUrl = onDatabase(databaseUrl, "postgres");
  return withDatabase(maintenanceUrl, signal, (client) =>
    dropLeft(client, filled(database)),
  );
}

async function dropLeft(
  client: Client,
  name: string,
): Promise<string | undefined> {
  if (!(await isThere(client, name))) {
    return undefined;
  }
  await dropDatabase(client, name);
  return name;
}

const setAside = (database: string) => `${database}_before_`;

/** The name under which a restore keeps a database that is not empty. */
export function setAsideName(databaseUrl: string, now: number): string {
  const at = backupName(now).replaceAll("-", "").toLowerCase();
  return `${setAside(databaseOf(databaseUrl))}${at}`;
}

/** The databases with rows that restores have kept under such names, oldest first. */
export async function databasesSetAside(
  databaseUrl: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const maintenanceUrl = onDatabase(databaseUrl, "postgres");
  const all = await withDatabase(maintenanceUrl, signal, (client) =>
    rowsOf<{ name: string }>(
      client,
      "SELECT datname AS name FROM pg_database WHERE starts_with(datname, $1) ORDER BY 1",
      [setAside(databaseOf(databaseUrl))],
    ),
  );
  const kept: string[] = [];
  for (const { name } of all) {
    const url = onDatabase(databaseUrl, name);
    if ((await withDatabase(url, signal, tablesWithRows)).length > 0) {
      kept.push(name);
    }
  }
  return kept;
}

/** While it is filled. */
const filled = (database: string) => `${database}_restoring`;

interface ReplacedDatabase {
  /** Left by an interrupted restore, and dropped first. */
  readonly dropped: string | undefined;
  /** The name of the old database; undefined if it was empty, and therefore dropped. */
  readonly keptAs: string | undefined;
}

/**
 * Creates a database like `hearth up` and initdb do, calls `fill`, and replaces the database of the address with it in one
 * transaction: there is always either the old or the new one. The old one is renamed to `keepAs`, and dropped only if it is
 * empty. The address is that of a superuser.
 */
export async function replaceDatabase(
  databaseUrl: string,
  signal: AbortSignal,
  keepAs: string,
  fill: (newUrl: string) => Promise<void>,
): Promise<ReplacedDatabase> {
  const database = databaseOf(databaseUrl);
  const next = filled(database);
  const maintenanceUrl = onDatabase(databaseUrl, "postgres");
  const dropped = await withDatabase(maintenanceUrl, signal, async (client) => {
    await needSuperuser(client);
    const left = await dropLeft(client, next);
    await client.query(
      `CREATE DATABASE ${quoted(next)} OWNER ${OWNER} TEMPLATE template0`,
    );
    for (const statement of databaseRights(next)) {
      await client.query(statement);
    }
    return left;
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
    const keptAs = await swap(maintenanceUrl, database, next, keepAs);
    return { dropped, keptAs };
  } catch (error) {
    await withDatabase(
      maintenanceUrl,
      AbortSignal.timeout(MINUTE_MS),
      (client) => dropDatabase(client, next),
    );
    throw error;
  }
}

/** As in config/postgres-roles.sql for the first database; privileges of a database are not part of a backup. */
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
      "a restore requires a superuser of Postgres: RESTORE_DATABASE_URL must be the address of the database with the user postgres.",
    );
  }
}

/** Returns the name of the old database, if it is kept. */
async function swap(
  maintenanceUrl: string,
  database: string,
  next: string,
  keepAs: string,
): Promise<string | undefined> {
  // Not cancellable from here on, but quick.
  const signal = AbortSignal.timeout(MINUTE_MS);
  return withDatabase(maintenanceUrl, signal, async (client) => {
    const there = await isThere(client, database);
    const renaming = new AbortController();
    const sendingAway = there
      ? sendAway(maintenanceUrl, database, renaming.signal)
      : Promise.resolve();
    try {
      await client.query("BEGIN");
      if (there) {
        await client.query(
          `ALTER DATABASE ${quoted(database)} RENAME TO ${quoted(keepAs)}`,
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
    if (!there) {
      return undefined;
    }
    // Gateways may have written to it since the restore started; under its new name, they no longer can.
    const withRows = await withDatabase(
      onDatabase(maintenanceUrl, keepAs),
      signal,
      tablesWithRows,
    );
    if (withRows.length > 0) {
      return keepAs;
    }
    await dropDatabase(client, keepAs);
    return undefined;
  });
}

/** A database in use cannot be renamed; while a rename is pending, new connections wait. */
async function sendAway(
  maintenanceUrl: string,
  database: string,
  until: AbortSignal,
): Promise<void> {
  await withDatabase(
    maintenanceUrl,
    AbortSignal.timeout(MINUTE_MS),
    async (client) => {
      while (!until.aborted) {
        await client.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1",
          [database],
        );
        await sleep(DISCONNECT_EVERY_MS, undefined, { signal: until }).catch(
          () => {},
        );
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
