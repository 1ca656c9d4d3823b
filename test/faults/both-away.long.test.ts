import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MASTER_KEY } from "../servers/gateway.ts";
import type { TestPostgres } from "../servers/postgres.ts";
import { hasRedisServer } from "../servers/redis.ts";
import { createKey, type Account } from "./accounts.ts";
import { call, endsOf, type Received } from "./calls.ts";
import { missingNow } from "./campaign.ts";
import {
  openTestbed,
  startTestbedPostgres,
  type Member,
  type Testbed,
} from "./testbed.ts";
import { waitFor } from "../wait-for.ts";

// Postgres and Redis are unavailable at the same time, as for the gateway on host B when host A is lost.
let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startTestbedPostgres();
});
afterAll(async () => {
  await postgres?.remove();
});

const QUICK = {
  stream: false,
  tokens: 4,
  delayMs: 0,
  chunkDelayMs: 0,
  leaveAfter: null,
} as const;
const HEARTBEATS_MS = 600;
const PRICE = 10 * 0.000001 + 4 * 0.000002;

async function withTestbed(
  gateways: number,
  work: (testbed: Testbed, first: Member) => Promise<void>,
): Promise<void> {
  const testbed = await openTestbed(postgres.url("postgres"), {
    gateways,
    redis: true,
  });
  try {
    const [first] = testbed.gateways;
    if (first === undefined) {
      throw new Error("a testbed without a gateway");
    }
    await work(testbed, first);
  } finally {
    await postgres.start();
    await testbed.close();
  }
}

async function accountOf(
  testbed: Testbed,
  by: Member,
  fields: Readonly<Record<string, unknown>>,
): Promise<Account> {
  return { key: await createKey(testbed, by, fields), fields: {} };
}

async function callTimes(
  { url }: Member,
  account: Account,
  times: number,
): Promise<readonly Received[]> {
  const received: Received[] = [];
  for (let at = 0; at < times; at++) {
    received.push(await call(url, account, QUICK));
  }
  return received;
}

async function cutBoth(testbed: Testbed, redisFirst: boolean): Promise<void> {
  const cuts = [
    () => testbed.gateways.forEach(({ redisRelay }) => redisRelay?.cut()),
    () => testbed.gateways.forEach(({ postgresRelay }) => postgresRelay.cut()),
  ];
  for (const cut of redisFirst ? cuts : cuts.reverse()) {
    cut();
  }
  await waitFor("Redis to be reported as unavailable", () =>
    allLogged(testbed, "Redis is unavailable"),
  );
}

function restoreBoth({ gateways }: Testbed): void {
  for (const { postgresRelay, redisRelay } of gateways) {
    postgresRelay.restore();
    redisRelay?.restore();
  }
}

function allLogged({ gateways }: Testbed, text: string): boolean {
  return gateways.every((gateway) => gateway.output().includes(text));
}

/** Makes a key known to the gateway without a call. */
async function listModels({ url }: Member, { key }: Account): Promise<void> {
  const answer = await fetch(`${url}/v1/models`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(answer.status).toBe(200);
}

async function readinessOf({ url }: Member): Promise<unknown> {
  const answer = await fetch(`${url}/health/readiness`);
  expect(answer.status).toBe(200);
  return answer.json();
}

describe.runIf(hasRedisServer())("Postgres and Redis", () => {
  test("a commit whose response was lost counts once against the budget", async () => {
    await withTestbed(1, async (testbed, gateway) => {
      const key = await accountOf(testbed, gateway, { max_budget: 10 * PRICE });
      // The first rows of a month commit its partition as well.
      expect((await call(gateway.url, key, QUICK)).end).toBe("ok");
      await testbed.drained();
      let lost = false;
      gateway.postgresRelay.at("after commit", 1, () => {
        lost = true;
        gateway.postgresRelay.cut();
      });
      const together = { ...QUICK, delayMs: 150 };
      const received = await Promise.all(
        Array.from({ length: 8 }, () => call(gateway.url, key, together)),
      );
      expect(endsOf(received)).toBe("8 ok");
      await waitFor("the loss of the response to a COMMIT", () => lost);
      gateway.postgresRelay.restore();
      await testbed.redis?.client.flushall();
      expect(endsOf(await callTimes(gateway, key, 1))).toBe("1 ok");
      expect((await call(gateway.url, key, QUICK)).end).toBe("budget_exceeded");
      expect(await missingNow(testbed)).toEqual([]);
    });
  });

  test.each(["Redis first", "Postgres first"])(
    "known keys keep working within their remaining budgets, without waiting (%s)",
    async (order) => {
      await withTestbed(2, async (testbed, first) => {
        const budget = 200 * PRICE;
        const key = await accountOf(testbed, first, { max_budget: budget });
        const daily = await accountOf(testbed, first, {
          max_budget: budget,
          budget_duration: "1d",
        });
        const spent = await accountOf(testbed, first, {
          max_budget: 2 * PRICE,
        });
        const unused = await accountOf(testbed, first, { max_budget: budget });
        for (const gateway of testbed.gateways) {
          for (const account of [key, daily]) {
            expect(endsOf(await callTimes(gateway, account, 2))).toBe("2 ok");
          }
          await listModels(gateway, unused);
        }
        expect(endsOf(await callTimes(first, spent, 2))).toBe("2 ok");
        await testbed.drained();
        await cutBoth(testbed, order === "Redis first");
        for (const gateway of testbed.gateways) {
          for (const account of [key, daily, unused]) {
            expect(endsOf(await callTimes(gateway, account, 10))).toBe("10 ok");
          }
          const unknown = { key: "sk-unknown-to-the-gateway", fields: {} };
          expect((await call(gateway.url, unknown, QUICK)).end).toBe(
            "database_unavailable",
          );
        }
        expect((await call(first.url, spent, QUICK)).end).toBe(
          "budget_exceeded",
        );
        expect(await readinessOf(first)).toMatchObject({
          db: "Not connected",
          limits: "redis_away",
        });
        restoreBoth(testbed);
        await testbed.drained();
        expect(await missingNow(testbed)).toEqual([]);
        expect(await testbed.sql("SELECT * FROM spend_check")).toEqual([]);
      });
    },
  );

  test("the remaining budget is shared between gateways and not reported as exceeded while money is left", async () => {
    await withTestbed(2, async (testbed, first) => {
      const key = await accountOf(testbed, first, { max_budget: 26 * PRICE });
      for (const gateway of testbed.gateways) {
        expect(endsOf(await callTimes(gateway, key, 3))).toBe("3 ok");
      }
      await testbed.drained();
      await cutBoth(testbed, true);
      for (const gateway of testbed.gateways) {
        // 20 calls are left, 10 for each gateway; half of a share is reserved for calls that the other one may have in flight.
        const received = await callTimes(gateway, key, 7);
        const ok = received.filter(({ end }) => end === "ok").length;
        expect(ok).toBeGreaterThanOrEqual(5);
        expect(ok).toBeLessThanOrEqual(6);
        expect(received.at(-1)?.end).toBe("budget_held");
      }
      restoreBoth(testbed);
      await waitFor("Redis to be available again", () =>
        allLogged(testbed, "Redis is available again"),
      );
      const rest = await callTimes(first, key, 12);
      expect(rest.at(-1)?.end).toBe("budget_exceeded");
      await testbed.drained();
      const [row] = await testbed.sql<{ calls: number }>(
        "SELECT count(*)::int AS calls FROM spend_log WHERE api_key = encode(sha256($1::bytea), 'hex')",
        [key.key],
      );
      expect(row?.calls).toBe(26);
    });
  });

  test("a Redis that is flushed or restarted while Postgres is unavailable is filled with the last known totals", async () => {
    await withTestbed(2, async (testbed, first) => {
      const [, second] = testbed.gateways;
      if (second === undefined) {
        throw new Error("too few gateways");
      }
      const key = await accountOf(testbed, first, { max_budget: 20 * PRICE });
      expect(endsOf(await callTimes(first, key, 1))).toBe("1 ok");
      // The first gateway learns only from Redis what the second one writes to the ledger.
      expect(endsOf(await callTimes(second, key, 9))).toBe("9 ok");
      await testbed.drained();
      await sleep(HEARTBEATS_MS);
      for (const { postgresRelay } of testbed.gateways) {
        postgresRelay.cut();
      }
      await testbed.redis?.client.flushall();
      expect(endsOf(await callTimes(first, key, 4))).toBe("4 ok");
      await testbed.redis?.stop();
      await testbed.redis?.start();
      await waitFor("Redis to be available again", () =>
        allLogged(testbed, "Redis is available again"),
      );
      const received = [
        ...(await callTimes(second, key, 3)),
        ...(await callTimes(first, key, 5)),
      ];
      expect(endsOf(received)).toMatch(/^6 ok, 2 budget_(exceeded|held)$/);
      restoreBoth(testbed);
      await testbed.drained();
      expect(await missingNow(testbed)).toEqual([]);
    });
  });

  test("the master key keeps working, even with a budget", async () => {
    await withTestbed(1, async (testbed, gateway) => {
      await testbed.sql(
        "INSERT INTO users (user_id, max_budget) VALUES ('default_user_id', 1) ON CONFLICT (user_id) DO UPDATE SET max_budget = 1",
      );
      const master = { key: MASTER_KEY, fields: {} };
      expect(endsOf(await callTimes(gateway, master, 2))).toBe("2 ok");
      await cutBoth(testbed, true);
      expect(endsOf(await callTimes(gateway, master, 5))).toBe("5 ok");
      restoreBoth(testbed);
      await testbed.drained();
      expect(await missingNow(testbed)).toEqual([]);
    });
  });
});
