import pg from "pg";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import {
  readerUrl,
  throwAwayDatabase,
} from "../../../test/servers/database.ts";
import { freePort } from "../../../test/servers/ports.ts";
import { probeCheck } from "../../../test/supervisor/probe-check.ts";
import { withClient } from "../../../test/servers/with-client.ts";

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let url: string;

beforeAll(async () => {
  database = await throwAwayDatabase();
  url = readerUrl(database.url, "supervisor");
});
afterAll(() => database.drop());

test("a database that answers is up, with measurements", async () => {
  const result = await probeCheck({ kind: "postgres", url });
  expect(result).toMatchObject({ ok: true });
  expect(result.text).toMatch(
    /^\d+ of 100 connections, oldest transaction \S+ s$/,
  );
  expect(result.measures["database_bytes"]).toBeGreaterThan(1e6);
});

test("a long open transaction is a warning, even of another role", async () => {
  await withClient(database.url, async (client) => {
    await client.query("BEGIN");
    await client.query("SELECT pg_sleep(0.2)");
    const expectation = { transactions_younger_than: "100ms" };
    expect(
      await probeCheck({ kind: "postgres", url, expect: expectation }),
    ).toMatchObject({
      ok: false,
      level: "warning",
      text: expect.stringMatching(
        /^a transaction has been open for more than 0.1 s; /,
      ),
    });
  });
});

test("too many connections are a warning, which does not excuse dependents", async () => {
  const expectation = { connections_below_percent: 1 };
  const others = [1, 2].map(() => new pg.Client(inject("postgresUrl")));
  await Promise.all(others.map((client) => client.connect()));
  try {
    expect(
      await probeCheck({ kind: "postgres", url, expect: expectation }),
    ).toMatchObject({ ok: false, level: "warning" });
  } finally {
    await Promise.all(others.map((client) => client.end()));
  }
});

test("an unreachable server, a wrong password and a missing database are failures that reveal no secret", async () => {
  const port = await freePort();
  const unreachable = `postgres://u:s3cret@127.0.0.1:${port}/hearth`;
  const wrong = new URL(url);
  wrong.password = "s3cret";
  const gone = new URL(url);
  gone.pathname = "/nothing";
  for (const address of [unreachable, wrong.href, gone.href]) {
    const result = await probeCheck({ kind: "postgres", url: address });
    expect(result).toMatchObject({ ok: false, level: "down" });
    expect(result.text).not.toContain("s3cret");
    expect(result.text).not.toBe("");
  }
});
