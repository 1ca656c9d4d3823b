import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, inject, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import {
  throwAwayDatabase,
  type ThrowAwayDatabase,
} from "../../test/servers/database.ts";
import {
  INPUT_PRICE,
  MASTER_KEY,
  modelYaml,
  OUTPUT_PRICE,
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../test/servers/provider.ts";
import { withClient } from "../../test/servers/with-client.ts";
import { waitFor } from "../../test/wait-for.ts";
import { hashKey } from "../access/keys.ts";
import { query } from "../database/pool.ts";
import { dropOldSpend } from "../database/retention.ts";

const ONE_CALL = 10 * INPUT_PRICE + 4 * OUTPUT_PRICE;

let database: ThrowAwayDatabase;
let provider: MockProvider;
let directory: string;
let gateway: TestGateway;
let lines: string[];
/** Copies of the database, to be dropped. */
let copies: string[];

beforeEach(async () => {
  copies = [];
  lines = [];
  directory = mkdtempSync(join(tmpdir(), "hearth-test-restore-"));
  database = await throwAwayDatabase();
  provider = await startMockProvider();
  gateway = await start();
});
afterEach(async () => {
  await gateway?.stop();
  await provider?.close();
  await database?.drop();
  for (const copy of copies) {
    await asSuperuser(`DROP DATABASE IF EXISTS ${copy}`);
  }
  rmSync(directory, { recursive: true, force: true });
});

function start(settings = ""): Promise<TestGateway> {
  return startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    directory,
    log: pino({ base: null }, { write: (line) => lines.push(line) }),
    yaml: modelYaml(provider.url, settings),
  });
}

async function asSuperuser(...statements: readonly string[]): Promise<void> {
  await withClient(inject("postgresUrl"), async (client) => {
    for (const statement of statements) {
      await client.query(statement);
    }
  });
}

const live = () => new URL(database.url).pathname.slice(1);

function ending(sessionsOf: string): readonly string[] {
  return [
    `ALTER DATABASE ${sessionsOf} ALLOW_CONNECTIONS false`,
    `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${sessionsOf}'`,
  ];
}

/** Copies the database as it is; the gateway is disconnected for a moment. */
async function copy(): Promise<string> {
  const name = `${live()}_copy`;
  copies.push(name);
  await asSuperuser(
    ...ending(live()),
    `CREATE DATABASE ${name} TEMPLATE ${live()} OWNER hearth_owner`,
    `ALTER DATABASE ${live()} ALLOW_CONNECTIONS true`,
  );
  return name;
}

/** Puts the copy in the place of the database. */
async function goBackTo(name: string): Promise<void> {
  await asSuperuser(
    ...ending(live()),
    `DROP DATABASE ${live()}`,
    `ALTER DATABASE ${name} RENAME TO ${live()}`,
  );
}

async function calls(key: string, count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const { status, text } = await gateway.chat(key, `call ${at}`);
    expect(status, text).toBe(200);
  }
}

const parts = () => gateway.running.gateway;

/** All rows are in the ledger. */
async function drained(): Promise<void> {
  await waitFor("the drain", () => parts().database.connected());
  await parts().ledger.flush();
}

async function ledgerIds(): Promise<readonly string[]> {
  const rows = await query<{ request_id: string }>(
    parts().pool,
    "SELECT request_id FROM spend_log WHERE payer IS NULL ORDER BY started_at",
  );
  return rows.map((row) => row.request_id);
}

async function expectComplete(): Promise<void> {
  expect((await ledgerIds()).toSorted()).toEqual(
    provider.requests.map(({ id }) => id).toSorted(),
  );
  expect(await query(parts().pool, "SELECT * FROM spend_check")).toEqual([]);
}

test("a database that returns to an earlier state gets the lost rows again, and budgets hold", async () => {
  const key = await gateway.createKey({ max_budget: 8.5 * ONE_CALL });
  await calls(key, 3);
  await drained();
  const earlier = await copy();
  await drained();
  await calls(key, 4);
  await drained();

  await goBackTo(earlier);
  await waitFor("the lost rows", () => parts().ledger.restored() > 0);
  expect(parts().ledger.restored()).toBe(4);
  await expectComplete();
  // Eight calls are below the budget; the ninth crosses it.
  await calls(key, 2);
  const { json } = await gateway.chat(key, "over");
  expect(json["error"]?.["type"]).toBe("budget_exceeded");
  await drained();
  await expectComplete();
  expect(parts().ledger.restored()).toBe(4);
});

test("a backup restored while the gateway is stopped gets the calls since then", async () => {
  const key = await gateway.createKey();
  await calls(key, 3);
  await drained();
  const backup = await copy();
  await drained();
  await calls(key, 4);
  await gateway.stop();
  await goBackTo(backup);
  gateway = await start();
  expect(parts().ledger.restored()).toBe(4);
  await expectComplete();
});

test("a restored backup names the keys with calls that it does not have, and no others", async () => {
  const kept = await gateway.createKey();
  const deleted = await gateway.createKey();
  await drained();
  const backup = await copy();
  await drained();
  const lost = await gateway.createKey();
  await calls(kept, 1);
  await calls(deleted, 1);
  await calls(lost, 2);
  await calls(MASTER_KEY, 1);
  await gateway.stop();
  await goBackTo(backup);
  await withClient(database.url, (client) =>
    client.query(
      "WITH gone AS (DELETE FROM keys WHERE token = $1 RETURNING token, key_name) INSERT INTO deleted_keys (token, key_name) SELECT * FROM gone",
      [hashKey(deleted)],
    ),
  );
  gateway = await start();
  expect(parts().ledger.restored()).toBe(5);
  await expectComplete();
  const named = lines.flatMap((line) => {
    const { keys } = JSON.parse(line) as { readonly keys?: string[] };
    return keys ?? [];
  });
  expect(named).toEqual([hashKey(lost)]);
});

test("an empty database gets all calls that are kept", async () => {
  const key = await gateway.createKey();
  await calls(key, 3);
  await gateway.stop();
  await asSuperuser(
    `DROP DATABASE ${live()}`,
    `CREATE DATABASE ${live()} TEMPLATE hearth OWNER hearth_owner`,
  );
  gateway = await start();
  expect(parts().ledger.restored()).toBe(3);
  await expectComplete();
});

test("with a lost journal there is nothing to write again", async () => {
  const key = await gateway.createKey();
  await calls(key, 2);
  await drained();
  const backup = await copy();
  await drained();
  await calls(key, 1);
  await gateway.stop();
  rmSync(join(directory, "journal"), { recursive: true });
  await goBackTo(backup);
  gateway = await start();
  await drained();
  expect(parts().ledger.restored()).toBe(0);
  expect(await ledgerIds()).toHaveLength(2);
});

test("an adjustment that was lost rejects no call afterwards", async () => {
  const key = await gateway.createKey({ max_budget: 10 * ONE_CALL });
  await calls(key, 1);
  await drained();
  const earlier = await copy();
  await drained();
  const raised = await gateway.request("POST", "/key/update", {
    key,
    spend: 20 * ONE_CALL,
  });
  expect(raised.status, raised.text).toBe(200);
  await waitFor("the adjustment", async () => {
    const { status } = await gateway.chat(key, "adjusted");
    return status !== 200;
  });
  await calls(await gateway.createKey(), 1);
  await drained();
  const before = provider.requests.length;

  await goBackTo(earlier);
  await waitFor("the lost row", () => parts().ledger.restored() > 0);
  await calls(key, 1);
  await drained();
  expect(provider.requests).toHaveLength(before + 1);
  await expectComplete();
});

test("rows of a month that was dropped meanwhile are not added again", async () => {
  const key = await gateway.createKey();
  await calls(key, 2);
  await drained();
  const later = Date.now() + 70 * DAY_MS;
  expect(await dropOldSpend(parts().pool, 1, later)).not.toEqual([]);
  expect(await ledgerIds()).toEqual([]);
  await query(parts().pool, "DELETE FROM journal_marks");
  await gateway.stop();
  gateway = await start();
  await drained();
  expect(await ledgerIds()).toEqual([]);
  expect(await query(parts().pool, "SELECT * FROM spend_check")).toEqual([]);
  const [total] = await query<{ spend: number }>(
    parts().pool,
    "SELECT spend FROM spend_totals WHERE entity = $1",
    [`key:${hashKey(key)}`],
  );
  expect(total?.spend).toBeCloseTo(2 * ONE_CALL, 12);
});

test("with journal_keep: 0s nothing is kept for a database that loses rows", async () => {
  await gateway.stop();
  const settings = "general_settings:\n  journal_keep: 0s";
  gateway = await start(settings);
  await calls(await gateway.createKey(), 1);
  await drained();
  const backup = await copy();
  await drained();
  await calls(await gateway.createKey(), 1);
  await gateway.stop();
  await goBackTo(backup);
  gateway = await start(settings);
  expect(parts().ledger.restored()).toBe(0);
  expect(await ledgerIds()).toHaveLength(1);
  await drained();
  expect(await query(parts().pool, "SELECT * FROM spend_check")).toEqual([]);
});
