import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import { hashKey } from "../../gateway/access/keys.ts";
import type { SpendRow } from "../../gateway/ledger/rows.ts";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { readerUrl } from "../../test/servers/database.ts";
import { createRandom } from "../../test/faults/random.ts";
import { alarmsIn } from "../../test/supervisor/raised-alarms.ts";
import type { Alarm } from "../alerts/alarm.ts";
import { withDatabase } from "../backup/database.ts";
import { readBudgets } from "../reports/budgets.ts";
import { findSoftBudgets, findSpentBudgets } from "./budget-alerts.ts";
import { usageAlertsSchema } from "./config.ts";
import { UnusualSpend } from "./unusual-spend.ts";
import { usageAlerts } from "./usage-alerts.ts";

const CONFIG = usageAlertsSchema.parse({});

let gateway: AdminFixture;
let now: number;
let raised: Map<string, Alarm>;
let check: () => Promise<void>;

beforeEach(async () => {
  gateway = await startAdminFixture();
  now = Date.now();
  raised = new Map();
  const find = usageAlerts(CONFIG, alarmsIn(raised), () => now);
  const url = readerUrl(gateway.databaseUrl, "supervisor");
  check = () => find(url, new AbortController().signal);
});
afterEach(() => gateway.stop());

/** A call that ended at this time, in milliseconds since 1970, after one second. */
function callAt(ended: number, fields: Partial<SpendRow>): Partial<SpendRow> {
  return {
    started_at: new Date(ended - 1000).toISOString(),
    ended_at: new Date(ended).toISOString(),
    ...fields,
  };
}

test("a reached soft budget raises an alarm with its name until there is room again", async () => {
  const key = await gateway.createKey({
    user_id: "ann",
    key_alias: "ann-laptop",
    soft_budget: 0.4,
  });
  await gateway.post("/user/update", { user_id: "ann", soft_budget: 5 });
  const token = hashKey(key);
  const call = { api_key: token, user_id: "ann", spend: 0.25 };
  await gateway.spend(call);
  await check();
  expect(raised.size).toBe(0);

  await gateway.spend(call);
  await check();
  expect([...raised.values()]).toEqual([
    {
      fingerprint: `soft-budget:key:${token}`,
      level: "warning",
      subject: "key ann-laptop",
      text: "key ann-laptop has reached its soft budget: $ 0.50 of $ 0.40 spent; calls continue",
      command: "hearth report spend",
    },
  ]);

  await gateway.post("/key/update", { key, soft_budget: 2 });
  await check();
  expect(raised.size).toBe(0);
});

test("the keys are not read once more for each reached budget", async () => {
  const budgets = 20;
  for (let index = 0; index < budgets; index++) {
    const key = await gateway.createKey({ soft_budget: 0.1, max_budget: 0.2 });
    await gateway.spend({ api_key: hashKey(key), spend: 0.25 });
  }
  const url = readerUrl(gateway.databaseUrl, "supervisor");
  await withDatabase(url, new AbortController().signal, async (client) => {
    await client.query("BEGIN");
    expect(await findSoftBudgets(client)).toHaveLength(budgets);
    expect(await findSpentBudgets(client, [80])).toHaveLength(budgets);
    const { rows } = await client.query<{ scans: string }>(
      "SELECT seq_scan AS scans FROM pg_stat_xact_user_tables WHERE relname = 'keys'",
    );
    expect(Number(rows[0]?.scans)).toBeLessThan(budgets);
  });
});

test("a temporary increase of a key's budget ends its alarm, and is in reports", async () => {
  const key = await gateway.createKey({ max_budget: 0.2 });
  await gateway.spend({ api_key: hashKey(key), spend: 0.25 });
  await check();
  expect(raised.size).toBe(1);
  await gateway.post("/key/update", {
    key,
    temp_budget_increase: 1.05,
    temp_budget_expiry: new Date(now + DAY_MS).toISOString(),
  });
  await check();
  expect([...raised.values()]).toEqual([]);
  const budgets = await withDatabase(
    readerUrl(gateway.databaseUrl, "supervisor"),
    new AbortController().signal,
    readBudgets,
  );
  expect(budgets).toMatchObject([{ spend: 0.25, budget: 1.25 }]);
});

test("a budget that never resets although its tier's does raises alarms, and is in reports", async () => {
  const { budget_id } = await gateway.post("/budget/new", {
    max_budget: 0.2,
    soft_budget: 0.1,
    budget_duration: "1d",
  });
  const key = await gateway.createKey({ budget_id, budget_duration: "-1" });
  await gateway.spend({ api_key: hashKey(key), spend: 0.25 });
  await check();
  expect([...raised.values()].map(({ level }) => level).sort()).toEqual([
    "notice",
    "warning",
  ]);
  const url = readerUrl(gateway.databaseUrl, "supervisor");
  const budgets = await withDatabase(
    url,
    new AbortController().signal,
    readBudgets,
  );
  expect(budgets).toMatchObject([{ spend: 0.25, resetsAt: null }]);
});

test("the budget of the whole gateway raises an alarm, and is in reports, until it is raised by a reload", async () => {
  await gateway.stop();
  const budget = (dollars: number) =>
    `proxy_settings: { max_budget: ${dollars}, budget_duration: 1d }\n`;
  gateway = await startAdminFixture(budget(0.2));
  const url = readerUrl(gateway.databaseUrl, "supervisor");
  const find = usageAlerts(CONFIG, alarmsIn(raised), () => now);
  const alarms = async () => {
    await find(url, new AbortController().signal);
    return [...raised.values()];
  };
  await gateway.spend({ api_key: "k", spend: 0.25 });
  expect(await alarms()).toMatchObject([
    {
      fingerprint: "budget:100:proxy:",
      subject: "gateway as a whole",
      text: expect.stringMatching(/^its budget of \$ 0.20 is spent; its calls/),
    },
  ]);
  const budgets = await withDatabase(
    url,
    new AbortController().signal,
    readBudgets,
  );
  expect(budgets).toMatchObject([
    { kind: "gateway", name: "as a whole", spend: 0.25, budget: 0.2 },
  ]);

  const file = join(gateway.directory, "gateway.yaml");
  const yaml = readFileSync(file, "utf8");
  writeFileSync(file, yaml.replace(budget(0.2), budget(10)));
  await gateway.post("/config/reload", {});
  expect(await alarms()).toEqual([]);
});

test("a deleted key raises no alarm", async () => {
  const key = await gateway.createKey({ soft_budget: 0.1 });
  await gateway.spend({ api_key: hashKey(key), spend: 0.25 });
  await check();
  expect(raised.size).toBe(1);
  await gateway.post("/key/delete", { keys: [key] });
  await check();
  expect(raised.size).toBe(0);
});

test("each threshold of a budget is a notice, for its owner as well, and the highest counts", async () => {
  await gateway.post("/user/new", {
    user_id: "ann",
    user_email: "ann@example.org",
  });
  const key = await gateway.createKey({
    user_id: "ann",
    key_alias: "ann-laptop",
    max_budget: 10,
  });
  const token = hashKey(key);
  const texts = async (spend: number) => {
    await gateway.spend({ api_key: token, user_id: "ann", spend });
    await check();
    return [...raised.values()].map(({ text }) => text);
  };
  expect(await texts(4.99)).toEqual([]);
  expect(await texts(0.01)).toEqual(["50 % of its budget of $ 10.00 is spent"]);
  expect([...raised.values()]).toEqual([
    {
      fingerprint: `budget:50:key:${token}`,
      level: "notice",
      subject: "key ann-laptop",
      text: "50 % of its budget of $ 10.00 is spent",
      command: "hearth report spend",
      owner: "ann@example.org",
    },
  ]);
  expect(await texts(3)).toEqual(["80 % of its budget of $ 10.00 is spent"]);
  expect(await texts(2)).toEqual([
    "its budget of $ 10.00 is spent; its calls are denied",
  ]);
  await gateway.post("/key/update", { key, max_budget: 100 });
  await check();
  expect(raised.size).toBe(0);
});

test("over a quiet month no key spends unusually, and a leaked key is found within the hour", async () => {
  const random = createRandom(7);
  // Of a person by day, of a tool around the clock, of a nightly job.
  const habits = {
    "a person": (hour: number) => (hour >= 8 && hour < 19 ? 2 : 0),
    tool: () => 1,
    nightly: (hour: number) => (hour === 2 ? 8 : 0),
  };
  const keys = new Map<string, string>();
  now = Math.floor(now / HOUR_MS) * HOUR_MS;
  const start = now - 36 * DAY_MS;
  for (const [name, dollars] of Object.entries(habits)) {
    const key = await gateway.createKey({ key_alias: name });
    keys.set(name, hashKey(key));
    const rows: Partial<SpendRow>[] = [];
    for (let hour = start; hour < now; hour += HOUR_MS) {
      // Busy and calm hours differ by a factor of three.
      const spend =
        dollars(new Date(hour).getUTCHours()) * (0.5 + random.next());
      // A job is seldom punctual.
      const ended = hour + random.next() * HOUR_MS;
      if (spend > 0 && ended < now) {
        rows.push(callAt(ended, { api_key: hashKey(key), spend }));
      }
    }
    await gateway.spend(...rows);
  }
  const unusualAt = (moments: readonly number[]) =>
    withDatabase(
      readerUrl(gateway.databaseUrl, "supervisor"),
      new AbortController().signal,
      async (client) => {
        const unusual = new UnusualSpend();
        const found = [];
        for (const moment of moments) {
          found.push(await unusual.find(client, CONFIG.unusual_spend, moment));
        }
        return found;
      },
    );
  // Of a week, every fifth hour: each hour of the day.
  const hours = Array.from({ length: 34 }, (_, at) => now - 5 * at * HOUR_MS);
  expect((await unusualAt(hours.toReversed())).flat()).toEqual([]);

  // At three in the morning, a thief spends what the person spends by day.
  const night = new Date(now).setUTCHours(3, 0, 0, 0) - DAY_MS;
  const leaked = keys.get("a person") ?? "";
  const minutes = Array.from({ length: 12 }, (_, at) => (at + 1) * 5);
  await gateway.spend(
    ...minutes.map((minute) =>
      callAt(night + minute * 60_000, { api_key: leaked, spend: 0.25 }),
    ),
  );
  const found = await unusualAt(
    minutes.map((minute) => night + minute * 60_000),
  );
  expect(found.slice(0, -1).flat()).not.toEqual([]);
  expect(found.at(-1)).toEqual([
    {
      fingerprint: `unusual-spend:${leaked}`,
      level: "warning",
      subject: "key a person",
      text: "$ 3.00 spent within an hour; at this time of the day at most $ 0.00 in four weeks",
      command: "hearth keys block 'a person'",
    },
  ]);
  expect(await unusualAt([night + 2 * HOUR_MS])).toEqual([[]]);
});

test("a new key is not compared, and a rotated one keeps its history", async () => {
  const spend = async (hash: string, ended: number, dollars: number) =>
    gateway.spend(callAt(ended, { api_key: hash, spend: dollars }));
  const young = hashKey(await gateway.createKey({ key_alias: "young" }));
  await spend(young, now - 5 * DAY_MS, 0.01);
  await spend(young, now - 1000, 50);

  const old = await gateway.createKey({ key_alias: "old" });
  await spend(hashKey(old), now - 20 * DAY_MS, 2);
  const { key } = await gateway.post("/key/regenerate", { key: old });
  const renewed = hashKey(String(key));
  await spend(renewed, now - 1000, 5.9);
  await check();
  expect(raised.size).toBe(0);
  await spend(renewed, now - 900, 0.2);
  await check();
  expect([...raised.keys()]).toEqual([`unusual-spend:${renewed}`]);
});

test("models that fail, answer late or have no price raise alarms", async () => {
  const calls = (count: number, fields: Partial<SpendRow>) =>
    gateway.spend(
      ...Array.from({ length: count }, () => callAt(now - 1000, fields)),
    );
  const slow = (seconds: number, ended: number) =>
    gateway.spend(
      ...Array.from({ length: 25 }, () => ({
        ...callAt(ended, { model_group: "slow" }),
        completion_started_at: new Date(
          ended - 1000 + seconds * 1000,
        ).toISOString(),
      })),
    );
  await calls(15, { model_group: "shaky" });
  await calls(4, { model_group: "shaky", status: "failure" });
  await slow(0.5, now - 3 * HOUR_MS);
  await check();
  expect(raised.size).toBe(0);

  await calls(1, { model_group: "shaky", status: "failure" });
  await slow(3, now - 1000);
  await calls(2, { model_group: "nameless", unpriced: true, spend: 0 });
  await check();
  expect(
    [...raised.values()].map(({ subject, text }) => `${subject}: ${text}`),
  ).toEqual([
    "model nameless: 2 calls today without a price: they count as free",
    "model shaky: 5 of 20 calls failed within 15 minutes",
    "model slow: answers begin after 3.0 s, usually after 500 ms",
  ]);
});
