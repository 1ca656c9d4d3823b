import { afterAll, beforeAll, expect, test } from "vitest";
import {
  superuserUrl,
  throwAwayDatabase,
} from "../../test/servers/database.ts";
import {
  modelYaml,
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../test/servers/provider.ts";
import { withClient } from "../../test/servers/with-client.ts";

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let provider: MockProvider;
let gateway: TestGateway;

beforeAll(async () => {
  database = await throwAwayDatabase();
  provider = await startMockProvider();
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    yaml: modelYaml(provider.url),
  });
});

afterAll(async () => {
  await gateway?.stop();
  await provider?.close();
  await database?.drop();
});

async function readiness(): Promise<{
  readonly status: number;
  readonly db: unknown;
}> {
  const answer = await fetch(`${gateway.url}/health/readiness`);
  const { db } = (await answer.json()) as { db: unknown };
  return { status: answer.status, db };
}

/** As a managed Postgres does when its disk is full; open connections are ended, so that new ones get the setting. */
async function setReadOnly(value: "on" | "off"): Promise<void> {
  await withClient(superuserUrl(database.url), async (client) => {
    await client.query("SET default_transaction_read_only = off");
    await client.query(
      `ALTER DATABASE ${client.escapeIdentifier(client.database ?? "")} SET default_transaction_read_only = ${value}`,
    );
    await client.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
  });
}

test("while Postgres is read-only calls are served, readiness shows it, and their spend is recorded afterwards", async () => {
  const key = await gateway.createKey();
  expect((await gateway.chat(key, "hello")).status).toBe(200);
  await setReadOnly("on");
  await expect
    .poll(
      async () => {
        await gateway.chat(key, "hello");
        return readiness();
      },
      { timeout: 30_000 },
    )
    .toEqual({ status: 200, db: "Not writable" });
  await setReadOnly("off");
  await expect
    .poll(readiness, { timeout: 30_000 })
    .toEqual({ status: 200, db: "connected" });
  const check = await gateway.request("GET", "/spend/check");
  expect(check.text).toContain('"status":"equal"');
});
