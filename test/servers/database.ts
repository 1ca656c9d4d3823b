import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { inject } from "vitest";
import { migrate } from "../../gateway/database/migrate.ts";
import { createPool } from "../../gateway/database/pool.ts";
import { serversAllowed } from "./allowed.ts";
import { ROLES_SQL, type TestPostgres } from "./postgres.ts";
import { withClient } from "./with-client.ts";

const READERS_PASSWORD = "reader-test-password";

const silent = pino({ level: "silent" });

/** Creates the database `hearth` with roles and schema, as `hearth up` and the gateway's first start do. */
export async function prepareTemplate(
  postgres: Pick<TestPostgres, "url">,
): Promise<void> {
  await withClient(postgres.url("postgres"), (client) =>
    client.query("CREATE DATABASE hearth"),
  );
  await withClient(postgres.url("hearth"), async (client) => {
    await client.query(ROLES_SQL);
    await client.query(
      "CREATE ROLE gateway_a LOGIN PASSWORD 'gateway-test-password' IN ROLE hearth_owner",
    );
    await client.query("ALTER ROLE gateway_a SET role hearth_owner");
    await client.query(
      `CREATE ROLE backup LOGIN CREATEDB PASSWORD '${READERS_PASSWORD}' IN ROLE hearth_reader`,
    );
    await client.query(
      `CREATE ROLE supervisor LOGIN PASSWORD '${READERS_PASSWORD}' IN ROLE hearth_reports`,
    );
  });
  const pool = createPool(gatewayUrl(postgres.url("hearth")), 2, silent);
  await migrate(pool, silent);
  await pool.end();
}

/** The URL of the same database for a read-only role. */
export function readerUrl(url: string, role: "backup" | "supervisor"): string {
  const reader = new URL(url);
  reader.username = role;
  reader.password = READERS_PASSWORD;
  return reader.href;
}

/** The URL of the same database for the superuser of the run's shared Postgres. */
export function superuserUrl(url: string): string {
  const superuser = new URL(inject("postgresUrl"));
  superuser.pathname = new URL(url).pathname;
  return superuser.href;
}

/** The URL of the same database for the gateway's role. */
export function gatewayUrl(superuserUrl: string): string {
  const url = new URL(superuserUrl);
  url.username = "gateway_a";
  url.password = "gateway-test-password";
  return url.href;
}

/** A database for one test file. */
export interface ThrowAwayDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/** Creates a throw-away database in the run's shared Postgres from the migrated template. */
export function throwAwayDatabase(): Promise<ThrowAwayDatabase> {
  return createDatabase("TEMPLATE hearth");
}

/** Creates a throw-away database with the roles' rights and without tables. */
export async function emptyDatabase(): Promise<ThrowAwayDatabase> {
  const created = await createDatabase("TEMPLATE template0");
  await withClient(superuserUrl(created.url), (client) =>
    client.query(
      ROLES_SQL.split("\n")
        .filter((line) => /^ALTER (SCHEMA|DEFAULT)/.test(line))
        .join("\n"),
    ),
  );
  return created;
}

async function createDatabase(template: string): Promise<ThrowAwayDatabase> {
  serversAllowed();
  const server = inject("postgresUrl");
  const name = `test_${randomBytes(6).toString("hex")}`;
  await withClient(server, (client) =>
    client.query(
      // Files in memory are copied with less work than is written to the log by default.
      `CREATE DATABASE ${name} ${template} STRATEGY file_copy OWNER hearth_owner`,
    ),
  );
  const url = new URL(server);
  url.pathname = `/${name}`;
  return {
    url: gatewayUrl(url.href),
    async drop() {
      await withClient(server, (client) =>
        client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
      );
    },
  };
}

declare module "vitest" {
  interface ProvidedContext {
    /** The URL of the database `postgres` in the shared Postgres, as superuser. */
    postgresUrl: string;
  }
}
