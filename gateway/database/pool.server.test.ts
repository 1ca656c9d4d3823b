import { pino } from "pino";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import { asCallError } from "../http/as-call-error.ts";
import {
  createPool,
  DatabaseUnavailable,
  query,
  repeatedQuery,
  StatementTooLong,
  transaction,
  type Pool,
} from "./pool.ts";
import { withClient } from "../../test/servers/with-client.ts";

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let pool: Pool;

beforeAll(async () => {
  database = await throwAwayDatabase();
  pool = createPool(database.url, 2, pino({ level: "silent" }));
});

afterAll(async () => {
  await pool?.end();
  await database?.drop();
});

test("a connection lost between two statements fails the transaction, not the process", async () => {
  const broken = transaction(pool, async (client) => {
    const [backend] = await query<{ pid: number }>(
      client,
      "SELECT pg_backend_pid() AS pid",
    );
    // No statement runs on the connection while it ends.
    const ended = new Promise<void>((resolve) => client.once("end", resolve));
    await withClient(inject("postgresUrl"), (superuser) =>
      superuser.query("SELECT pg_terminate_backend($1)", [backend?.pid]),
    );
    await ended;
    return query(client, "SELECT 1");
  });
  await expect(broken).rejects.toBeInstanceOf(DatabaseUnavailable);
  expect(await query(pool, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
});

test("after an outage, calls are served although the clock was set back", async () => {
  const log = pino({ level: "silent" });
  const ofCalls = createPool(database.url, 2, log, "calls");
  const late = query(ofCalls, "SELECT pg_sleep(60)");
  await expect(late).rejects.toBeInstanceOf(DatabaseUnavailable);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - HOUR_MS });
  try {
    await expect
      .poll(() => query(ofCalls, "SELECT 1 AS one").catch(() => null), {
        timeout: 10_000,
      })
      .toEqual([{ one: 1 }]);
  } finally {
    vi.useRealTimers();
    await ofCalls.end();
  }
});

test("each connection plans a repeated statement once, except those of a pooler", async () => {
  const one = "SELECT $1::int AS one";
  const plans = async (of: Pool) =>
    transaction(of, async (client) => {
      expect(await repeatedQuery(client, one, [1])).toEqual([{ one: 1 }]);
      expect(await repeatedQuery(client, one, [2])).toEqual([{ one: 2 }]);
      return query(
        client,
        "SELECT generic_plans + custom_plans AS plans FROM pg_prepared_statements WHERE statement = $1",
        [one],
      );
    });
  expect(await plans(pool)).toEqual([{ plans: 2 }]);
  const log = pino({ level: "silent" });
  const pooled = createPool(database.url, 1, log, "work", "pooled");
  try {
    expect(await plans(pooled)).toEqual([]);
    expect(await repeatedQuery(pooled, one, [3])).toEqual([{ one: 3 }]);
  } finally {
    await pooled.end();
  }
});

test("a connection whose prepared statement has become invalid is replaced", async () => {
  await query(pool, "CREATE TABLE amounts AS SELECT 1::integer AS amount");
  const read = () =>
    transaction(pool, (client) =>
      repeatedQuery(client, "SELECT amount FROM amounts"),
    );
  expect(await read()).toEqual([{ amount: 1 }]);
  await query(pool, "ALTER TABLE amounts ALTER amount TYPE text");
  await expect(read()).rejects.toBeInstanceOf(DatabaseUnavailable);
  expect(await read()).toEqual([{ amount: "1" }]);
});

test.each([
  ["42501", 'could not open file "base/1/2": Read-only file system'],
  ["58030", 'could not read blocks 0..0 in file "base/1/2"'],
])("a disk that fails (%s) is no rejected statement", async (code, message) => {
  const failing = query(
    pool,
    `DO $$ BEGIN RAISE EXCEPTION '${message}' USING ERRCODE = '${code}'; END $$`,
  );
  await expect(failing).rejects.toBeInstanceOf(DatabaseUnavailable);
});

test("a missing right is a rejected statement", async () => {
  const denied = query(pool, "SELECT * FROM pg_authid");
  await expect(denied).rejects.not.toBeInstanceOf(DatabaseUnavailable);
});

test("a statement that took too long is answered as such, one in the path of a call as an outage", async () => {
  const log = pino({ level: "silent" });
  const failures: unknown[] = [];
  for (const purpose of ["work", "calls"] as const) {
    const hasty = createPool(database.url, 1, log, purpose);
    Object.assign(hasty.options, { statement_timeout: 50 });
    failures.push(
      await query(hasty, "SELECT pg_sleep(60)").catch((error) => error),
    );
    await hasty.end();
  }
  const [ofReport, ofCall] = failures;
  expect(ofReport).toBeInstanceOf(StatementTooLong);
  expect(asCallError(ofReport, {} as never, log)).toMatchObject({
    kind: "database_unavailable",
    message: expect.stringContaining("Choose fewer days"),
  });
  expect(ofCall).toBeInstanceOf(DatabaseUnavailable);
  expect(ofCall).not.toBeInstanceOf(StatementTooLong);
});
