import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { TestPostgres } from "../servers/postgres.ts";
import { redisServerHere } from "../servers/redis.ts";
import { makeKey, type Account } from "./accounts.ts";
import { call, endsOf, type Told } from "./calls.ts";
import { missingNow } from "./campaign.ts";
import {
  openStand,
  startStandPostgres,
  type Member,
  type Stand,
} from "./stand.ts";

// Postgres and Redis unavailable at the same time: what losing host A means for the gateway on host B.
let postgres: TestPostgres;
vi.setConfig({ testTimeout: 120_000 });
beforeAll(async () => {
  postgres = await startStandPostgres();
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
const PRICE = 10 * 0.000001 + 4 * 0.000002;

async function withStand(
  gateways: number,
  work: (stand: Stand, first: Member) => Promise<void>,
): Promise<void> {
  const stand = await openStand(postgres.url("postgres"), {
    gateways,
    redis: true,
  });
  try {
    const [first] = stand.gateways;
    if (first === undefined) throw new Error("a stand without a gateway");
    await work(stand, first);
  } finally {
    await postgres.start();
    await stand.close();
  }
}

async function accountOf(
  stand: Stand,
  by: Member,
  fields: Readonly<Record<string, unknown>>,
): Promise<Account> {
  return { key: await makeKey(stand, by, fields), fields: {} };
}

async function callTimes(
  { url }: Member,
  account: Account,
  times: number,
): Promise<readonly Told[]> {
  const told: Told[] = [];
  for (let at = 0; at < times; at++) told.push(await call(url, account, QUICK));
  return told;
}

async function until(is: () => boolean, what: string): Promise<void> {
  for (let tries = 0; tries < 1_200; tries++) {
    if (is()) return;
    await sleep(25);
  }
  throw new Error(`it did not come true: ${what}`);
}

describe.runIf(redisServerHere())("Postgres and Redis", () => {
  test("a commit whose answer was lost does not count twice against the budget", async () => {
    await withStand(1, async (stand, gateway) => {
      const key = await accountOf(stand, gateway, { max_budget: 10 * PRICE });
      // The first rows of a month commit its partition as well.
      expect((await call(gateway.url, key, QUICK)).end).toBe("ok");
      await stand.drained();
      let lost = false;
      gateway.postgresRelay.at("after commit", 1, () => {
        lost = true;
        gateway.postgresRelay.cut();
      });
      const together = { ...QUICK, delayMs: 150 };
      const told = await Promise.all(
        Array.from({ length: 8 }, () => call(gateway.url, key, together)),
      );
      expect(endsOf(told)).toBe("8 ok");
      await until(() => lost, "the answer to a COMMIT is lost");
      gateway.postgresRelay.restore();
      await stand.redis?.client.flushall();
      expect(endsOf(await callTimes(gateway, key, 1))).toBe("1 ok");
      expect((await call(gateway.url, key, QUICK)).end).toBe("budget_exceeded");
      expect(await missingNow(stand)).toEqual([]);
    });
  });
});
