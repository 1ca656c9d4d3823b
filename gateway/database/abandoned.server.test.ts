import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import { startRelay, type Relay } from "../../test/servers/relay.ts";
import { postgresWire } from "../../test/servers/wire-postgres.ts";
import { watchDatabase, type DatabaseState } from "./connection.ts";
import { createPool, query, transaction, type Pool } from "./pool.ts";

const log = pino({ level: "silent" });
const closing: (() => Promise<unknown>)[] = [];
let databaseUrl: string;
let relay: Relay;
/** The database through the link of the host that will be lost. */
let relayedUrl: string;

beforeEach(async () => {
  const database = await throwAwayDatabase();
  databaseUrl = database.url;
  const url = new URL(database.url);
  relay = await startRelay(Number(url.port), postgresWire);
  url.port = String(relay.port);
  relayedUrl = url.href;
  closing.push(database.drop, relay.close);
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) {
    await close();
  }
});

function poolOf(url: string): Pool {
  const pool = createPool(url, 2, log);
  closing.push(() => pool.end());
  return pool;
}

function watch(url: string, onRejected: () => void): DatabaseState {
  const pool = poolOf(databaseUrl);
  const state = watchDatabase({
    sessionUrl: () => url,
    pool,
    callPool: poolOf(databaseUrl),
    sessionPool: pool,
    log,
    shared: false,
    onChange: () => undefined,
    onReconnect: () => undefined,
    onReady: async () => undefined,
    onRejected,
  });
  closing.push(() => state.stop());
  return state;
}

test(
  "a gateway that was lost with its host does not lock out its successor",
  { timeout: 90_000 },
  async () => {
    const first = watch(relayedUrl, () => undefined);
    await expect.poll(() => first.ready(), { timeout: 20_000 }).toBe(true);
    // Its TCP connections stay open, but no more data arrives.
    relay.stall();
    let refused = 0;
    const second = watch(databaseUrl, () => refused++);
    await expect.poll(() => second.ready(), { timeout: 40_000 }).toBe(true);
    expect(refused).toBe(0);
  },
);

test(
  "a transaction that was lost with its host does not keep its locks",
  { timeout: 90_000 },
  async () => {
    let locked = false;
    const lost = transaction(poolOf(relayedUrl), async (client) => {
      await query(client, "SELECT pg_advisory_xact_lock(1)");
      locked = true;
      relay.stall();
      await query(client, "SELECT 1");
    }).catch(() => undefined);
    await expect.poll(() => locked).toBe(true);
    const pool = poolOf(databaseUrl);
    await expect
      .poll(
        async () =>
          (
            await query<{ locked: boolean }>(
              pool,
              "SELECT pg_try_advisory_lock(1) AS locked",
            )
          )[0]?.locked,
        { timeout: 60_000, interval: 500 },
      )
      .toBe(true);
    relay.cut();
    await lost;
  },
);
