import pg from "pg";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { ledgerRow } from "../../test/servers/admin.ts";
import {
  superuserUrl,
  throwAwayDatabase,
} from "../../test/servers/database.ts";
import { modelYaml, startTestGateway } from "../../test/servers/gateway.ts";
import { startMockProvider } from "../../test/servers/provider.ts";
import { recordRows } from "./ledger.ts";
import { createPartitionKeeper, ensurePartitions } from "./partitions.ts";
import {
  createPool,
  DatabaseUnavailable,
  query,
  transaction,
  type Pool,
} from "./pool.ts";
import { dropOldSpend } from "./retention.ts";
import { insertRow } from "./rows.ts";
import { lockLedger, seedCurrentWindows } from "./totals.ts";

// Locks of other sessions: a `pg_dump` reads every table for hours; a change of a table waits for it and blocks all later
// statements.
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let pool: Pool;
const silent = pino({ level: "silent" });
const holders: pg.Client[] = [];

beforeAll(async () => {
  database = await throwAwayDatabase();
  pool = createPool(database.url, 4, silent);
});

afterEach(async () => {
  for (const holder of holders.splice(0)) {
    await holder.end();
  }
});

afterAll(async () => {
  await pool?.end();
  await database?.drop();
});

async function connection(): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: superuserUrl(database.url),
  });
  client.on("error", () => undefined);
  await client.connect();
  holders.push(client);
  return client;
}

async function dump(): Promise<void> {
  const client = await connection();
  await client.query("BEGIN; LOCK TABLE spend_log IN ACCESS SHARE MODE");
}

/** Waits in the queue of a table's lock until the test ends. */
async function waitForAll(tables: string): Promise<void> {
  const waiter = await connection();
  await waiter.query("BEGIN");
  const { rows } = await waiter.query<{ pid: number }>(
    "SELECT pg_backend_pid() AS pid",
  );
  waiter.query(`LOCK TABLE ${tables}`).catch(() => undefined);
  const watcher = await connection();
  for (;;) {
    const { rows: waits } = await watcher.query(
      "SELECT FROM pg_locks WHERE NOT granted AND pid = $1",
      [rows[0]?.pid],
    );
    if (waits.length > 0) {
      return;
    }
  }
}

function record(started: string) {
  const row = ledgerRow({ started_at: started, ended_at: started });
  return recordRows(pool, [row], [], null, "UTC");
}

async function partitions(): Promise<readonly string[]> {
  const rows = await query<{ name: string }>(
    pool,
    "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'spend_log'::regclass ORDER BY 1",
  );
  return rows.map(({ name }) => name);
}

test("partitions exist days before their month, and are not blocked by a pg_dump or a writer", async () => {
  await ensurePartitions(pool, [{ started_at: "2027-01-01T00:00:00.000Z" }]);
  await dump();
  const writer = await connection();
  await writer.query("BEGIN; LOCK TABLE spend_log IN ROW EXCLUSIVE MODE");
  const now = () => Date.parse("2027-01-25T00:00:00.000Z");
  const keeper = createPartitionKeeper(pool, silent, now);
  await keeper.start();
  keeper.stop();
  expect(await partitions()).toEqual([
    "spend_log_2027_01",
    "spend_log_2027_02",
  ]);
  const [indexes] = await query<{ own: number; attached: number }>(
    pool,
    `SELECT count(*) AS own, count(i.inhparent) AS attached
       FROM pg_index x LEFT JOIN pg_inherits i ON i.inhrelid = x.indexrelid WHERE x.indrelid = 'spend_log_2027_02'::regclass`,
  );
  expect(indexes?.own).toBeGreaterThan(5);
  expect(indexes?.attached).toBe(indexes?.own);
  await record("2027-02-03T00:00:00.000Z");
});

test("two instances create the same partition once", async () => {
  const rows = [{ started_at: "2027-05-01T00:00:00.000Z" }];
  await Promise.all([1, 2, 3].map(() => ensurePartitions(pool, rows)));
  expect(await partitions()).toContain("spend_log_2027_05");
});

test("a month is not dropped while a pg_dump reads it, and new rows are still recorded", async () => {
  await record("2025-01-10T00:00:00.000Z");
  await record("2027-02-04T00:00:00.000Z");
  await dump();
  const dropped = dropOldSpend(pool, 30, Date.parse("2027-02-05T00:00:00Z"));
  const refused = expect(dropped).rejects.toBeInstanceOf(DatabaseUnavailable);
  await record("2027-02-04T00:00:01.000Z");
  await refused;
  expect(await partitions()).toContain("spend_log_2025_01");
  expect(await query(pool, "SELECT * FROM spend_check")).toEqual([]);
});

test("the holder of the ledger lock waits at most a second for another lock, and a drain as long for the ledger lock", async () => {
  await dump();
  await waitForAll("spend_log");
  await expect(record("2027-02-05T00:00:00.000Z")).rejects.toBeInstanceOf(
    DatabaseUnavailable,
  );
  for (const holder of holders.splice(0)) {
    await holder.end();
  }
  await transaction(pool, async (client) => {
    await lockLedger(client);
    await expect(record("2027-02-05T00:00:00.000Z")).rejects.toBeInstanceOf(
      DatabaseUnavailable,
    );
  });
  await record("2027-02-05T00:00:00.000Z");
});

/** Resolves when that many sessions wait for the ledger lock with their rows inserted. */
async function untilInserted(sessions: number): Promise<void> {
  const watcher = await connection();
  const waiting = async () => {
    const { rows } = await watcher.query(
      `SELECT FROM pg_locks advisory JOIN pg_locks written USING (pid)
         WHERE advisory.locktype = 'advisory' AND NOT advisory.granted AND written.mode = 'RowExclusiveLock'
           AND written.relation = 'spend_log_2027_02_pkey'::regclass`,
    );
    return rows.length;
  };
  await expect.poll(waiting).toBe(sessions);
}

test("drains insert their rows before they wait for the ledger lock", async () => {
  await record("2027-02-04T00:00:00.000Z");
  const drains: Promise<unknown>[] = [];
  await transaction(pool, async (client) => {
    await lockLedger(client);
    drains.push(record("2027-02-04T00:00:01.000Z"));
    drains.push(record("2027-02-04T00:00:02.000Z"));
    await untilInserted(2);
  });
  await Promise.all(drains);
  expect(await query(pool, "SELECT * FROM spend_check")).toEqual([]);
});

test("a window that is summed while a drain waits for the ledger lock has its rows once", async () => {
  const at = "2027-02-06T12:00:00.000Z";
  const token = "windowed";
  await insertRow(pool, "keys", { token, key_name: "sk-...ow" });
  const call = () =>
    ledgerRow({ started_at: at, ended_at: at, api_key: token });
  await recordRows(pool, [call()], [], null, "UTC");
  const rows = [call(), call()];
  let drain: Promise<unknown> | undefined;
  await transaction(pool, async (client) => {
    await lockLedger(client);
    drain = recordRows(pool, rows, [], null, "UTC");
    await untilInserted(1);
    await query(
      client,
      "UPDATE keys SET budget_duration = '1d' WHERE token = $1",
      [token],
    );
    const windowing = { timeZone: "UTC", proxyDuration: null };
    const key = `key:${token}`;
    await seedCurrentWindows(client, [key], windowing, Date.parse(at));
  });
  await drain;
  const totals = await query<{ window_name: string; spend: number }>(
    pool,
    "SELECT window_name, spend FROM spend_totals WHERE entity = $1 ORDER BY 1",
    [`key:${token}`],
  );
  expect(totals).toEqual([
    { window_name: "1d@2027-02-06T00:00:00.000Z", spend: 0.75 },
    { window_name: "all", spend: 0.75 },
  ]);
  expect(await query(pool, "SELECT * FROM spend_check")).toEqual([]);
});

test("instances that open the same windows at once neither wait for each other nor add rows twice", async () => {
  const at = "2027-02-07T12:00:00.000Z";
  const tokens = ["opening-1", "opening-2"];
  for (const token of tokens) {
    await insertRow(pool, "keys", {
      token,
      key_name: "sk-...op",
      budget_duration: "1d",
    });
  }
  const batch = (ofTokens: readonly string[]) =>
    recordRows(
      pool,
      ofTokens.map((api_key) =>
        ledgerRow({ started_at: at, ended_at: at, api_key }),
      ),
      [],
      "1h",
      "UTC",
    );
  await Promise.all(
    Array.from({ length: 8 }, (_, instance) =>
      batch(instance % 2 === 0 ? tokens : tokens.toReversed()),
    ),
  );
  expect(await query(pool, "SELECT * FROM spend_check")).toEqual([]);
});

test("a month is dropped while drains take turns", async () => {
  await record("2025-01-10T00:00:00.000Z");
  let dropping = true;
  const drains = [1, 2, 3].map(async () => {
    while (dropping) {
      await record("2027-02-04T00:00:00.000Z");
    }
  });
  const dropped = await dropOldSpend(
    pool,
    30,
    Date.parse("2027-02-05T00:00:00Z"),
  ).finally(() => (dropping = false));
  await Promise.all(drains);
  expect(dropped).toContain("2025-01");
  expect(await query(pool, "SELECT * FROM spend_check")).toEqual([]);
});

test("calls do not wait behind a change of the ledger's tables that waits for a pg_dump", async () => {
  const provider = await startMockProvider();
  const gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    yaml: modelYaml(provider.url),
  });
  try {
    const known = await gateway.createKey({
      max_budget: 1,
      budget_duration: "1s",
    });
    expect((await gateway.chat(known, "before")).status).toBe(200);
    await dump();
    await waitForAll("spend_log");
    // Longer than the deadline of a call's statement: each second begins a window, whose total is read.
    const until = Date.now() + 4_000;
    const statuses = new Set<number>();
    while (Date.now() < until) {
      statuses.add((await gateway.chat(known, "meanwhile")).status);
    }
    expect([...statuses]).toEqual([200]);
    expect((await gateway.chat("sk-never-seen-before", "hello")).status).toBe(
      401,
    );
    for (const holder of holders.splice(0)) {
      await holder.end();
    }
    await gateway.running.gateway.ledger.flush();
    expect(await query(pool, "SELECT * FROM spend_check")).toEqual([]);
  } finally {
    await gateway.stop();
    await provider.close();
  }
});
