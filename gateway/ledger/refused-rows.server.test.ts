import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ledgerRow } from "../../test/servers/admin.ts";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import { recordRows } from "../database/ledger.ts";
import { partitionOf } from "../database/partitions.ts";
import { query } from "../database/pool.ts";
import { openJournal } from "../journal/journal.ts";
import type { Intent, Outcome } from "./records.ts";
import { recordAll } from "./refused-rows.ts";

/** 3,000 characters that Postgres cannot compress. */
const LONG = randomBytes(1_500).toString("hex");
/** Three of them are longer than an index entry may be, each alone is not. */
const wide = () => randomBytes(500).toString("hex");

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let gateway: TestGateway;
const directory = mkdtempSync(join(tmpdir(), "hearth-refused-rows-"));
const key = randomBytes(32).toString("hex");

function intent(fields: Partial<Intent> = {}): Intent {
  return {
    id: randomUUID(),
    startedAt: Date.now(),
    callType: "acompletion",
    apiKey: key,
    userId: "anna",
    teamId: null,
    organizationId: null,
    endUser: null,
    tags: [],
    alias: "mock",
    modelId: "m",
    model: "mock-model",
    provider: "openai",
    inputTokens: 1,
    inputCost: 0,
    sessionId: null,
    requesterIp: null,
    ...fields,
  };
}

function outcome(id: string, fields: Partial<Outcome> = {}): Outcome {
  return {
    id,
    endedAt: Date.now(),
    firstTokenAt: null,
    status: "success",
    spend: 0.25,
    saved: 0,
    unpriced: false,
    promptTokens: 10,
    completionTokens: 4,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    cacheHit: false,
    cacheKey: null,
    responseId: null,
    metadata: null,
    charged: {},
    ...fields,
  };
}

type Call = readonly [Partial<Intent>, Partial<Outcome>];

/** Rows that Postgres rejects, each for another reason. */
const REFUSED: readonly Call[] = [
  [{ alias: LONG, model: LONG }, {}],
  [{ endUser: LONG }, {}],
  [{ tags: [LONG, "red"] }, {}],
  [{}, { responseId: LONG }],
  [{ userId: wide(), teamId: wide(), organizationId: wide() }, {}],
  [{}, { promptTokens: 1e300 }],
  [{}, { completionTokens: 0.5 }],
  [{ alias: `${LONG}\0\ud800` }, {}],
  [{}, { charged: { "end_user:\0": "all" } }],
];

beforeAll(async () => {
  database = await throwAwayDatabase();
  const journal = await openJournal<Intent, Outcome>({
    dir: join(directory, "journal"),
    sync: "interval",
    now: Date.now,
    log: pino({ level: "silent" }),
  });
  for (const [fields, ended] of REFUSED) {
    const one = intent(fields);
    await journal.intent(one);
    await journal.outcome(outcome(one.id, ended));
  }
  await journal.close();
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: "http://127.0.0.1:9/v1",
    directory,
  });
});

afterAll(async () => {
  await gateway?.stop();
  await database?.drop();
  rmSync(directory, { recursive: true, force: true });
});

async function ledgerOf(apiKey: string) {
  const { ledger, pool } = gateway.running.gateway;
  await ledger.flush();
  const [row] = await query<{ calls: number; spend: number }>(
    pool,
    "SELECT count(*)::integer AS calls, sum(spend) AS spend FROM spend_log WHERE api_key = $1",
    [apiKey],
  );
  const [total] = await query<{ spend: number }>(
    pool,
    "SELECT spend FROM spend_totals WHERE entity = $1",
    [`key:${apiKey}`],
  );
  return { ...row, total: total?.spend };
}

async function wrongSums(): Promise<readonly unknown[]> {
  return query(gateway.running.gateway.pool, "SELECT * FROM spend_check");
}

test("a gateway starts with a journal whose rows Postgres rejects, and every row is billed", async () => {
  const all = 0.25 * REFUSED.length;
  expect(await ledgerOf(key)).toEqual({
    calls: REFUSED.length,
    spend: all,
    total: all,
  });
  expect(await wrongSums()).toEqual([]);
});

test("a row that Postgres rejects blocks no other row, and none is counted twice", async () => {
  const { journal } = gateway.running.gateway;
  const other = randomBytes(32).toString("hex");
  const calls = [...Array<Call>(40).fill([{}, {}]), ...REFUSED.slice(0, 3)];
  for (const [fields, ended] of calls.toSorted(() => Math.random() - 0.5)) {
    const one = intent({ ...fields, apiKey: other });
    await journal.intent(one);
    await journal.outcome(outcome(one.id, ended));
  }
  expect(await ledgerOf(other)).toEqual({
    calls: calls.length,
    spend: 0.25 * calls.length,
    total: 0.25 * calls.length,
  });
  expect(await wrongSums()).toEqual([]);
  expect(journal.state().pendingRecords).toBe(0);
});

test("shortened names stay distinct, and names that fit stay whole", async () => {
  const { journal, pool, ledger } = gateway.running.gateway;
  const apiKey = randomBytes(32).toString("hex");
  for (const endUser of [`${LONG}1`, `${LONG}2`, `${LONG}2`]) {
    const one = intent({ apiKey, endUser, userId: "bob" });
    await journal.intent(one);
    await journal.outcome(outcome(one.id));
  }
  await ledger.flush();
  const rows = await query<{ end_user: string; spend: number; bob: boolean }>(
    pool,
    "SELECT end_user, sum(spend) AS spend, bool_and(user_id = 'bob') AS bob FROM daily_spend WHERE api_key = $1 GROUP BY 1 ORDER BY 2",
    [apiKey],
  );
  expect(rows.map(({ spend, bob }) => [spend, bob])).toEqual([
    [0.25, true],
    [0.5, true],
  ]);
  for (const { end_user: name } of rows) {
    expect(name.startsWith(LONG.slice(0, 200))).toBe(true);
  }
});

describe("the journal keeps all rows on a fault of the tables", () => {
  const month = new Date().toISOString().slice(0, "2026-01".length);
  const partition = partitionOf(month);
  const [year = 0, number = 0] = month.split("-").map(Number);
  const next = new Date(Date.UTC(year, number, 1)).toISOString();

  test.each([
    [
      "a month's partition is detached",
      `ALTER TABLE spend_log DETACH PARTITION ${partition}`,
      `ALTER TABLE spend_log ATTACH PARTITION ${partition} FOR VALUES FROM ('${month}-01T00:00:00Z') TO ('${next}')`,
    ],
    [
      "an added constraint rejects every row",
      "ALTER TABLE spend_totals ADD CONSTRAINT extra CHECK (spend < 0) NOT VALID",
      "ALTER TABLE spend_totals DROP CONSTRAINT extra",
    ],
  ])("when %s", async (_what, damage, repair) => {
    const { journal, pool, ledger } = gateway.running.gateway;
    await ledger.flush();
    const apiKey = randomBytes(32).toString("hex");
    await query(pool, damage);
    try {
      const call = intent({ apiKey });
      await journal.intent(call);
      await journal.outcome(outcome(call.id));
      await expect(ledger.flush()).rejects.toThrow();
      expect(journal.state().pendingRecords).toBeGreaterThan(0);
    } finally {
      await query(pool, repair);
    }
    const paid = { calls: 1, spend: 0.25, total: 0.25 };
    expect(await ledgerOf(apiKey)).toEqual(paid);
    expect(await wrongSums()).toEqual([]);
  });

  test.each(["22000", "23502"])(
    "when every row is rejected with %s",
    async (state) => {
      const { pool } = gateway.running.gateway;
      const rows = [ledgerRow({ api_key: key }), ledgerRow({ api_key: key })];
      await query(
        pool,
        `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '${state}'; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON spend_totals FOR EACH ROW EXECUTE FUNCTION refuse();`,
      );
      try {
        await expect(
          recordAll(
            rows,
            (some) => recordRows(pool, some, [], null, "UTC"),
            pino({ level: "silent" }),
          ),
        ).rejects.toMatchObject({ code: state });
      } finally {
        await query(pool, "DROP FUNCTION refuse CASCADE");
      }
    },
  );
});
