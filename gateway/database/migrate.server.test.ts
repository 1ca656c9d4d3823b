import { readFileSync, readdirSync } from "node:fs";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  throwAwayDatabase,
  type ThrowAwayDatabase,
} from "../../test/servers/database.ts";
import { migrate } from "./migrate.ts";
import { createPool, query, transaction, type Pool } from "./pool.ts";

const silent = pino({ level: "silent" });
const directory = new URL("migrations/", import.meta.url);
const texts = Object.fromEntries(
  readdirSync(directory).map((file) => [
    file.replace(/\.sql$/, ""),
    readFileSync(new URL(file, directory), "utf8"),
  ]),
);

let database: ThrowAwayDatabase;
let pool: Pool;

beforeAll(async () => {
  database = await throwAwayDatabase();
  pool = createPool(database.url, 2, silent);
});
afterAll(async () => {
  await pool?.end();
  await database?.drop();
});

async function kept(): Promise<Readonly<Record<string, string>>> {
  const rows = await transaction(pool, (client) =>
    query<{ name: string; sql: string }>(
      client,
      "SELECT * FROM migration_texts",
    ),
  );
  return Object.fromEntries(rows.map(({ name, sql }) => [name, sql]));
}

test("the database has the SQL of every migration, even when a start was killed before it was written", async () => {
  expect(await kept()).toEqual(texts);
  await transaction(pool, (client) =>
    query(client, "DELETE FROM migration_texts WHERE name > '0003'"),
  );
  await migrate(pool, silent);
  expect(await kept()).toEqual(texts);
});
