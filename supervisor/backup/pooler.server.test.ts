import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  readerUrl,
  throwAwayDatabase,
  type ThrowAwayDatabase,
} from "../../test/servers/database.ts";
import {
  hasPgbouncer,
  startPgbouncer,
  type TestPgbouncer,
} from "../../test/servers/pgbouncer.ts";
import { withDatabase } from "./database.ts";

describe.runIf(hasPgbouncer())("Postgres behind a connection pooler", () => {
  let database: ThrowAwayDatabase;
  let pgbouncer: TestPgbouncer;

  beforeAll(async () => {
    database = await throwAwayDatabase();
    pgbouncer = await startPgbouncer(readerUrl(database.url, "backup"));
  });
  afterAll(async () => {
    await pgbouncer?.remove();
    await database?.drop();
  });

  test("a backup asks for the address of Postgres itself", async () => {
    const url = pgbouncer.through(readerUrl(database.url, "backup"));
    const signal = AbortSignal.timeout(60_000);
    await expect(
      withDatabase(url, signal, async () => undefined),
    ).rejects.toThrow(
      /^the address leads to a connection pooler, not to Postgres \(unsupported startup parameter: \w+\): BACKUP_DATABASE_URL,/,
    );
  });
});
