import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  throwAwayDatabase,
  type ThrowAwayDatabase,
} from "../../test/servers/database.ts";
import {
  hasPgbouncer,
  startPgbouncer,
  type TestPgbouncer,
} from "../../test/servers/pgbouncer.ts";
import { openSource, TABLES } from "./source.ts";

describe.runIf(hasPgbouncer())("LiteLLM's database behind a pooler", () => {
  let database: ThrowAwayDatabase;
  let pgbouncer: TestPgbouncer;

  beforeAll(async () => {
    database = await throwAwayDatabase();
    // One connection to the server, which the import and LiteLLM take in turn.
    pgbouncer = await startPgbouncer(database.url, { default_pool_size: 1 });
  });
  afterAll(async () => {
    await pgbouncer?.remove();
    await database?.drop();
  });

  test("it is read, and its connections can still write", async () => {
    const url = pgbouncer.through(database.url);
    const litellm = new pg.Client(url);
    await litellm.connect();
    const write = () =>
      litellm.query(`INSERT INTO "${TABLES.keys}" VALUES ('a key')`);
    await litellm.query(`CREATE TABLE "${TABLES.keys}" (token text)`);
    await write();
    const source = await openSource(url);
    expect(await source.rows("keys")).toEqual([{ token: "a key" }]);
    await write();
    expect(await source.count("keys")).toBe(2);
    await source.close();
    await litellm.end();
  });
});
