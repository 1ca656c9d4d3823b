import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { execute } from "../core/execute.ts";
import {
  emptyDatabase,
  type ThrowAwayDatabase,
} from "../test/servers/database.ts";
import { freePort } from "../test/servers/ports.ts";
import { programEnv } from "../test/servers/program-env.ts";
import { withClient } from "../test/servers/with-client.ts";

const PROGRAM = join(import.meta.dirname, "migrate.ts");

let database: ThrowAwayDatabase;
beforeAll(async () => {
  database = await emptyDatabase();
});
afterAll(() => database?.drop());

const run = (env: Readonly<Record<string, string>>) =>
  execute(process.execPath, [PROGRAM], { env: { ...programEnv(), ...env } });

async function namesOfMigrations(): Promise<readonly string[]> {
  return withClient(database.url, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      "SELECT name FROM migrations ORDER BY name",
    );
    return rows.map(({ name }) => name);
  });
}

test("an empty database gets the whole schema, and a second run changes nothing", async () => {
  const first = await run({ DATABASE_URL: database.url });
  expect({ ok: first.ok, stderr: first.stderr }).toEqual({
    ok: true,
    stderr: "",
  });
  expect(first.stdout).toContain("database schema migrated");
  const names = await namesOfMigrations();
  expect(names[0]).toBe("0001_payers");
  const second = await run({ DATABASE_URL: database.url });
  expect(second.stdout).not.toContain("database schema migrated");
  expect(second.stdout).toContain("the database schema is up to date");
  expect(await namesOfMigrations()).toEqual(names);
});

test("DATABASE_DIRECT_URL takes precedence over the address of a pooler", async () => {
  const nowhere = `postgresql://a:b@127.0.0.1:${await freePort()}/hearth`;
  const { ok } = await run({
    DATABASE_URL: nowhere,
    DATABASE_DIRECT_URL: database.url,
  });
  expect(ok).toBe(true);
});

test("a database that cannot be reached is one sentence without the password", async () => {
  const port = await freePort();
  const { exitCode, stderr } = await run({
    DATABASE_URL: `postgresql://a:confidential@127.0.0.1:${port}/hearth`,
  });
  expect(exitCode).toBe(1);
  expect(stderr).toBe(
    `hearth: the database cannot be migrated (connect ECONNREFUSED 127.0.0.1:${port}): check DATABASE_URL and the database, then run this again; running gateways are not affected.\n`,
  );
});

test("without an address it says which variable to set", async () => {
  const { exitCode, stderr } = await run({});
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(/^hearth: DATABASE_URL is not set: set it, .*\n$/);
});
