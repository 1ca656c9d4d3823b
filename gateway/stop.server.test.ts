import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { expect, test } from "vitest";
import { throwAwayDatabase } from "../test/servers/database.ts";
import { startTestGateway } from "../test/servers/gateway.ts";
import { startMockProvider } from "../test/servers/provider.ts";
import { LEDGER_LOCK } from "./database/totals.ts";

/** Longer than a drain waits for its turn, shorter than the last flush may take. */
const LOCKED_MS = 2_000;

test("a gateway that stops while others take their turns at the ledger leaves no call in its journal", async () => {
  const database = await throwAwayDatabase();
  const provider = await startMockProvider();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    const gateway = await startTestGateway({
      databaseUrl: database.url,
      providerUrl: provider.url,
    });
    const key = await gateway.createKey();
    await client.query(`SELECT pg_advisory_lock(${LEDGER_LOCK})`);
    expect((await gateway.chat(key, "hello")).status).toBe(200);
    const stopped = gateway.stop();
    await sleep(LOCKED_MS);
    await client.query(`SELECT pg_advisory_unlock(${LEDGER_LOCK})`);
    await stopped;
    const { rows } = await client.query("SELECT status FROM spend_log");
    expect(rows).toEqual([{ status: "success" }]);
  } finally {
    await client.end();
    await provider.close();
    await database.drop();
  }
});
