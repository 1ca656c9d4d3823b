import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import type { SpendRow } from "../ledger/rows.ts";
import { LIFETIME, windowAt } from "../ledger/budget-windows.ts";
import { recordRows } from "./ledger.ts";
import { createPool, query, type Pool } from "./pool.ts";
import { insertRow, updateRows } from "./rows.ts";

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let pool: Pool;

beforeAll(async () => {
  database = await throwAwayDatabase();
  pool = createPool(database.url, 4, pino({ level: "silent" }));
});

afterAll(async () => {
  await pool.end();
  await database.drop();
});

const AT = Date.UTC(2026, 10, 21, 12);

function row(fields: Partial<SpendRow> = {}): SpendRow {
  const at = new Date(AT).toISOString();
  return {
    request_id: randomUUID(),
    started_at: at,
    ended_at: at,
    completion_started_at: null,
    day: "2026-11-21",
    call_type: "acompletion",
    status: "success",
    payer: null,
    api_key: "k1",
    user_id: "alice",
    user_pays: true,
    team_id: null,
    organization_id: null,
    end_user: null,
    tags: null,
    model_group: "echo",
    model_id: "d1",
    model: "echo",
    provider: "openai",
    spend: 0.1,
    saved: 0,
    unpriced: false,
    prompt_tokens: 10,
    completion_tokens: 20,
    cached_tokens: 0,
    cache_write_tokens: 0,
    cache_hit: false,
    cache_key: null,
    response_id: null,
    session_id: null,
    requester_ip: null,
    metadata: null,
    ...fields,
  };
}

async function wrongSums(): Promise<readonly unknown[]> {
  return query(pool, "SELECT * FROM spend_check");
}

async function totalOf(entity: string, window: string): Promise<number> {
  const [total] = await query<{ spend: number }>(
    pool,
    "SELECT spend FROM spend_totals WHERE entity = $1 AND window_name = $2",
    [entity, window],
  );
  return total?.spend ?? 0;
}

test("a row delivered twice counts once, in every sum", async () => {
  const rows = [
    row(),
    row({ spend: 0.2, tags: ["red", "blue"] }),
    row({ end_user: "eve", team_id: "t", organization_id: "o" }),
  ];
  const counters = [{ entity: "key:k1", window: LIFETIME.name }];
  const first = await recordRows(pool, rows, counters, null, "UTC");
  expect(first.inserted.size).toBe(3);
  expect(first.totals).toMatchObject([
    { entity: "key:k1", window: "all", spend: 0.4 },
  ]);
  const again = await recordRows(pool, [...rows, row()], counters, null, "UTC");
  expect(again.inserted.size).toBe(1);
  expect(again.totals).toMatchObject([
    { entity: "key:k1", window: "all", spend: 0.5 },
  ]);
  expect(again.totals[0]?.version).toBeGreaterThan(
    first.totals[0]?.version ?? Infinity,
  );
  expect(await totalOf("tag:red", "all")).toBe(0.2);
  expect(await totalOf("member:t/alice", "all")).toBe(0.1);
  expect(await totalOf("proxy:", "all")).toBe(0.5);
  expect(await wrongSums()).toEqual([]);
});

test("the days of the proxy, of teams and of organizations follow every change of the daily rows", async () => {
  const own = { api_key: "parted", team_id: "pt", organization_id: "po" };
  const parts = () =>
    query(
      pool,
      `SELECT part, sum(spend) AS spend, sum(requests)::integer AS calls, sum(prompt_tokens)::integer AS tokens
         FROM daily_part_spend WHERE model = 'parted' AND id IN ('', 'pt', 'po') GROUP BY part ORDER BY part`,
    );
  const all = (spend: number, calls: number, tokens: number) =>
    ["organization", "proxy", "team"].map((part) => ({
      part,
      spend,
      calls,
      tokens,
    }));
  const call = row({ ...own, model: "parted", spend: 0.25 });
  await recordRows(pool, [call], [], null, "UTC");
  await recordRows(
    pool,
    [call, row({ ...own, model: "parted", spend: 0.5 })],
    [],
    null,
    "UTC",
  );
  expect(await parts()).toEqual(all(0.75, 2, 20));
  await query(
    pool,
    "UPDATE daily_spend SET spend = 1 WHERE api_key = 'parted'",
  );
  expect(await parts()).toEqual(all(1, 2, 20));
  await query(
    pool,
    "UPDATE daily_part_spend SET spend = 3 WHERE part = 'team' AND id = 'pt'",
  );
  expect(await wrongSums()).toContainEqual(
    expect.objectContaining({ kind: "part_day", name: "team:pt", recorded: 3 }),
  );
  await query(pool, "UPDATE daily_part_spend SET spend = 1 WHERE id = 'pt'");
  await query(
    pool,
    "UPDATE daily_spend SET spend = 0.75 WHERE api_key = 'parted'",
  );
  expect(await parts()).toEqual(all(0.75, 2, 20));
  expect(await wrongSums()).toEqual([]);
});

test("sums are exact where doubles are not", async () => {
  await recordRows(
    pool,
    Array.from({ length: 1_000 }, () => row({ api_key: "k2", spend: 0.1 })),
    [],
    null,
    "UTC",
  );
  const [exact] = await query<{ spend: string }>(
    pool,
    "SELECT spend::text FROM spend_totals WHERE entity = 'key:k2'",
  );
  expect(exact?.spend).toBe("100.0");
  expect(await wrongSums()).toEqual([]);
});

test("a payer with a window has a total for it, by the end of each call", async () => {
  await insertRow(pool, "keys", {
    token: "k3",
    key_name: "sk-...3",
    budget_duration: "1d",
  });
  const yesterday = row({
    api_key: "k3",
    ended_at: new Date(AT - DAY_MS).toISOString(),
    day: "2026-11-20",
  });
  await recordRows(
    pool,
    [row({ api_key: "k3" }), yesterday, row({ api_key: "k3" })],
    [],
    null,
    "UTC",
  );
  expect(await totalOf("key:k3", windowAt("1d", AT, "UTC").name)).toBe(0.2);
  expect(
    await totalOf("key:k3", windowAt("1d", AT - 86_400_000, "UTC").name),
  ).toBe(0.1);
  expect(await totalOf("key:k3", "all")).toBe(0.3);
  expect(await wrongSums()).toEqual([]);
});

test.each([
  ["without a duration", "k4", null],
  ["whose budget never resets", "k10", "-1"],
])(
  "a soft budget %s is reported once, when it is crossed",
  async (_what, token, budget_duration) => {
    await insertRow(pool, "keys", {
      token,
      key_name: `sk-...${token}`,
      soft_budget: 0.25,
      budget_duration,
    });
    const reported = [];
    for (let call = 0; call < 5; call++) {
      reported.push(
        (await recordRows(pool, [row({ api_key: token })], [], null, "UTC"))
          .softBudgets.length,
      );
    }
    expect(reported).toEqual([0, 0, 1, 0, 0]);
  },
);

test("a soft budget that is set below the spend is reported once, with the next call", async () => {
  const spend = async () =>
    (await recordRows(pool, [row({ api_key: "k9" })], [], null, "UTC"))
      .softBudgets;
  await insertRow(pool, "keys", { token: "k9", key_name: "sk-...9" });
  const setTo = (soft_budget: number) =>
    updateRows(pool, "keys", { token: "k9" }, { soft_budget });
  expect(await spend()).toEqual([]);
  await setTo(0.1);
  expect(await spend()).toEqual([
    { entity: "key:k9", spend: 0.2, threshold: 0.1 },
  ]);
  expect(await spend()).toEqual([]);
  await setTo(0.35);
  expect(await spend()).toMatchObject([{ threshold: 0.35 }]);
  expect(await spend()).toEqual([]);
});

test("text that Postgres cannot store does not stop the ledger", async () => {
  const hostile = row({
    end_user: "nul\0and half \ud800 a pair",
    metadata: { text: "\0\udfff" },
    tags: ["\0"],
  });
  const recorded = await recordRows(pool, [hostile], [], null, "UTC");
  expect(recorded.inserted.size).toBe(1);
  expect(await wrongSums()).toEqual([]);
});

test("values arrive as they are, whatever they contain", async () => {
  const fields = {
    end_user: "NULL",
    model_group: String.raw`a "quoted", {braced} name \u0041 \\`,
    tags: ['"', "{a,b}", "NULL", "", " c\n"],
    metadata: { list: ["\\", { quoted: '"' }], nothing: null },
    cost_lines: [["input", 10, 0.02]] as const,
  };
  const sent = [row(fields), row({ tags: [] }), row({ tags: null })];
  await recordRows(pool, sent, [], null, "UTC");
  const recorded = await query(
    pool,
    `SELECT end_user, model_group, tags, metadata, cost_lines
       FROM spend_log JOIN unnest($1::text[]) WITH ORDINALITY AS s(request_id, position) USING (request_id) ORDER BY position`,
    [sent.map(({ request_id: id }) => id)],
  );
  expect(recorded).toMatchObject([fields, { tags: [] }, { tags: null }]);
});

test.each([NaN, Infinity])("a spend of %d is rejected", async (spend) => {
  await expect(
    recordRows(pool, [row({ spend })], [], null, "UTC"),
  ).rejects.toThrow("null value");
});

test("two instances that record at once neither lose nor double anything", async () => {
  const batches = Array.from({ length: 8 }, () =>
    Array.from({ length: 50 }, () => row({ api_key: "k5", spend: 0.001 })),
  );
  await Promise.all(
    [...batches, ...batches].map((batch) =>
      recordRows(pool, batch, [], null, "UTC"),
    ),
  );
  expect(await totalOf("key:k5", "all")).toBe(0.4);
  expect(await wrongSums()).toEqual([]);
});

test("the check reports a wrong sum", async () => {
  await query(
    pool,
    "UPDATE spend_totals SET spend = spend + 1 WHERE entity = 'key:k5'",
  );
  expect(await wrongSums()).toMatchObject([
    { kind: "total", name: "key:k5", recorded: 1.4, summed: 0.4 },
  ]);
  await query(
    pool,
    "UPDATE spend_totals SET spend = spend - 1 WHERE entity = 'key:k5'",
  );
});

test("a changed row is announced to every instance", async () => {
  const { default: pg } = await import("pg");
  const listener = new pg.Client({ connectionString: database.url });
  await listener.connect();
  const heard = new Promise<string | undefined>((resolve) =>
    listener.on("notification", ({ payload }) => resolve(payload)),
  );
  await listener.query("LISTEN hearth_changes");
  await updateRows(pool, "keys", { token: "k4" }, { blocked: true });
  expect(await heard).toBe("keys:k4");
  await listener.end();
});
