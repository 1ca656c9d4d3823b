import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MASTER_KEY } from "../servers/gateway.ts";
import type { TestPostgres } from "../servers/postgres.ts";
import { hasRedisServer } from "../servers/redis.ts";
import { createKey, type Account } from "./accounts.ts";
import { call, randomCall, startLoad, type Received } from "./calls.ts";
import { createRandom } from "./random.ts";
import {
  openTestbed,
  startTestbedPostgres,
  type Member,
  type Testbed,
  type TestbedOptions,
} from "./testbed.ts";
import { waitFor } from "../wait-for.ts";

// The documented behaviour in outages, row by row, with the real servers stopped and started under load.
let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startTestbedPostgres();
});
afterAll(async () => {
  await postgres?.remove();
});

const random = createRandom(1);
const QUICK = {
  stream: false,
  tokens: 4,
  delayMs: 0,
  chunkDelayMs: 0,
  leaveAfter: null,
} as const;

async function withTestbed(
  options: TestbedOptions,
  work: (testbed: Testbed, gateways: readonly Member[]) => Promise<void>,
): Promise<void> {
  const testbed = await openTestbed(postgres.url("postgres"), options);
  try {
    await work(testbed, testbed.gateways);
  } finally {
    await postgres.start();
    await testbed.close();
  }
}

async function newAccount(
  testbed: Testbed,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<Account> {
  return {
    key: await createKey(testbed, firstOf(testbed), fields),
    fields: {},
  };
}

function firstOf({ gateways }: Testbed): Member {
  const [first] = gateways;
  if (first === undefined) {
    throw new Error("a testbed without a gateway");
  }
  return first;
}

function unknownAccount(): Account {
  return { key: `sk-${randomBytes(16).toString("base64url")}`, fields: {} };
}

function loadOn(
  testbed: Testbed,
  accounts: readonly Account[],
  received: Received[],
) {
  return startLoad({
    urls: testbed.gateways.map(({ url }) => url),
    accounts,
    random,
    parallel: 3,
    pauseMs: 20,
    onReceived: (one) => void received.push(one),
  });
}

async function readiness(gateway: Member) {
  const answer = await fetch(`${gateway.url}/health/readiness`);
  return { status: answer.status, body: (await answer.json()) as object };
}

/** Expects one row for every id that reached the provider, and correct sums. */
async function expectAllRecorded(testbed: Testbed): Promise<void> {
  await testbed.drained();
  const rows = await testbed.sql<{ request_id: string }>(
    "SELECT request_id FROM spend_log",
  );
  const ids = rows.map((row) => row.request_id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(
    [...testbed.provider.requests].filter((id) => !ids.includes(id)),
  ).toEqual([]);
  expect(await testbed.sql("SELECT * FROM spend_check")).toEqual([]);
}

test("without Postgres, known keys are served, unknown keys and admin requests get 503, and no restart is needed", async () => {
  await withTestbed(
    { gateways: 1, redis: false },
    async (testbed, [gateway]) => {
      if (gateway === undefined) {
        throw new Error("too few gateways");
      }
      const known = await newAccount(testbed, { max_budget: 1 });
      const pid = gateway.pid();
      const received: Received[] = [];
      const load = loadOn(testbed, [known], received);
      await waitFor("a call with the known key", () =>
        received.some(({ end }) => end === "ok"),
      );
      await postgres.stop();
      const from = received.length;
      await waitFor("readiness to report the outage", async () =>
        JSON.stringify(await readiness(gateway)).includes("Not connected"),
      );
      expect((await readiness(gateway)).status).toBe(200);
      for (let tries = 0; tries < 5; tries++) {
        const unknown = await call(gateway.url, unknownAccount(), QUICK);
        expect(unknown).toMatchObject({
          status: 503,
          end: "database_unavailable",
        });
      }
      const denied = await fetch(`${gateway.url}/key/generate`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${MASTER_KEY}`,
          "content-type": "application/json",
        },
        body: "{}",
      });
      expect(denied.status).toBe(503);
      expect(Number(denied.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await denied.text()).toContain('"database_unavailable"');
      await waitFor("20 more calls", () => received.length > from + 20);
      expect(new Set(received.slice(from).map(({ end }) => end))).toEqual(
        new Set(["ok"]),
      );
      await postgres.start();
      await load.stop();
      await expectAllRecorded(testbed);
      expect(gateway.pid()).toBe(pid);
      expect(gateway.running()).toBe(true);
      expect((await call(gateway.url, unknownAccount(), QUICK)).status).toBe(
        401,
      );
    },
  );
});

test("a key that was checked longer ago than key_cache_seconds is not served without Postgres", async () => {
  await withTestbed(
    {
      gateways: 1,
      redis: false,
      yaml: "general_settings: { key_cache_seconds: 1 }\n",
    },
    async (testbed, [gateway]) => {
      if (gateway === undefined) {
        throw new Error("too few gateways");
      }
      const known = await newAccount(testbed);
      expect((await call(gateway.url, known, QUICK)).end).toBe("ok");
      await postgres.stop();
      await waitFor(
        "the cached key to expire",
        async () => (await call(gateway.url, known, QUICK)).end !== "ok",
      );
      expect(await call(gateway.url, known, QUICK)).toMatchObject({
        status: 503,
        end: "database_unavailable",
      });
      await postgres.start();
      await waitFor(
        "the key to be accepted again",
        async () => (await call(gateway.url, known, QUICK)).end === "ok",
      );
      await expectAllRecorded(testbed);
    },
  );
});

test("a gateway that starts without Postgres is live, answers calls with 503, then replays its journal and serves calls", async () => {
  await withTestbed(
    { gateways: 1, redis: false },
    async (testbed, [gateway]) => {
      if (gateway === undefined) {
        throw new Error("too few gateways");
      }
      const known = await newAccount(testbed);
      expect((await call(gateway.url, known, QUICK)).end).toBe("ok");
      await postgres.stop();
      for (let calls = 0; calls < 5; calls++) {
        expect((await call(gateway.url, known, QUICK)).end).toBe("ok");
      }
      await gateway.kill();
      gateway.launch();
      await waitFor("liveliness", () =>
        fetch(`${gateway.url}/health/liveliness`).then(
          ({ status }) => status === 200,
          () => false,
        ),
      );
      expect((await readiness(gateway)).status).toBe(503);
      expect(await call(gateway.url, known, QUICK)).toMatchObject({
        status: 503,
        end: "database_unavailable",
      });
      expect((await testbed.admin(gateway, "/key/generate", {})).status).toBe(
        503,
      );
      await postgres.start();
      await gateway.untilReady();
      expect((await call(gateway.url, known, QUICK)).end).toBe("ok");
      await expectAllRecorded(testbed);
      expect(testbed.provider.requests.size).toBe(7);
    },
  );
});

test("a full journal rejects calls before they reach the provider, and calls in flight complete", async () => {
  await withTestbed(
    {
      gateways: 1,
      redis: false,
      yaml: "general_settings: { journal_limit_mb: 1 }\n",
    },
    async (testbed, [gateway]) => {
      if (gateway === undefined) {
        throw new Error("too few gateways");
      }
      const known = await newAccount(testbed);
      expect((await call(gateway.url, known, QUICK)).end).toBe("ok");
      await postgres.stop();
      const inFlight: Promise<Received>[] = [];
      let last: Received | null = null;
      for (
        let calls = 0;
        last?.end !== "journal_full" && calls < 400;
        calls++
      ) {
        // Some are still in flight when the others reach the limit.
        inFlight.push(
          call(gateway.url, known, {
            ...QUICK,
            stream: true,
            tokens: 8,
            delayMs: 6_000,
          }),
        );
        await Promise.all(
          Array.from({ length: 8 }, () => call(gateway.url, known, QUICK)),
        );
        last = await call(gateway.url, known, QUICK);
      }
      expect(last).toMatchObject({ status: 503, end: "journal_full" });
      const fullAt = Date.now();
      const callsBefore = testbed.provider.requests.size;
      expect((await readiness(gateway)).status).toBe(503);
      expect((await call(gateway.url, known, QUICK)).end).toBe("journal_full");
      expect(testbed.provider.requests.size).toBe(callsBefore);
      const ends = await Promise.all(inFlight);
      expect(
        ends.filter(({ end }) => !["ok", "journal_full"].includes(end)),
      ).toEqual([]);
      expect(ends.some(({ end, at }) => end === "ok" && at > fullAt)).toBe(
        true,
      );
      await postgres.start();
      await waitFor(
        "calls to be served again",
        async () => (await call(gateway.url, known, QUICK)).end === "ok",
      );
      await expectAllRecorded(testbed);
    },
  );
});

describe.runIf(hasRedisServer())("without Redis", () => {
  test("each gateway enforces its share of the limits, and the counters are restored afterwards", async () => {
    await withTestbed(
      { gateways: 2, redis: true },
      async (testbed, gateways) => {
        const money = 20 * (10 * 0.000001 + 4 * 0.000002);
        const poor = await newAccount(testbed, { max_budget: money });
        const slow = await newAccount(testbed, { rpm_limit: 8 });
        const rich = await newAccount(testbed);
        const received: Received[] = [];
        const load = loadOn(testbed, [rich], received);
        for (const { url } of gateways) {
          for (const account of [poor, slow]) {
            expect((await call(url, account, QUICK)).end).toBe("ok");
          }
        }
        await testbed.redis?.stop();
        await waitFor("both gateways to notice", () =>
          gateways.every((gateway) =>
            gateway.output().includes("Redis is unavailable"),
          ),
        );
        const from = received.length;
        const served: number[] = [];
        for (const { url } of gateways) {
          let ok = 0;
          const ends = await Promise.all(
            Array.from({ length: 12 }, () => call(url, slow, QUICK)),
          );
          expect(ends.filter(({ end }) => end === "ok").length).toBe(4);
          while ((await call(url, poor, QUICK)).end === "ok") {
            ok++;
          }
          served.push(ok);
        }
        // 18 calls are left. A gateway's share is half of the rest that it knows of: the second one may already have read the
        // spend of the first from the ledger. One more call exceeds each share.
        for (const ok of served) {
          expect(ok).toBeGreaterThanOrEqual(3);
          expect(ok).toBeLessThanOrEqual(10);
        }
        await waitFor(
          "20 more calls of other keys",
          () => received.length > from + 20,
        );
        expect(new Set(received.slice(from).map(({ end }) => end))).toEqual(
          new Set(["ok"]),
        );
        await testbed.redis?.start();
        await waitFor("both gateways to notice", () =>
          gateways.every((gateway) =>
            gateway.output().includes("Redis is available again"),
          ),
        );
        let last: Received | null = null;
        for (let calls = 0; calls < 30; calls++) {
          last = await call(random.pick(gateways).url, poor, QUICK);
          if (last.end !== "ok") {
            break;
          }
        }
        expect(last?.end).toBe("budget_exceeded");
        await load.stop();
        await expectAllRecorded(testbed);
        const [total] = await testbed.sql<{ spend: number }>(
          "SELECT sum(spend)::float8 AS spend FROM spend_log WHERE api_key = encode(sha256($1::bytea), 'hex')",
          [poor.key],
        );
        expect(total?.spend).toBeGreaterThanOrEqual(money - 1e-8);
        expect(total?.spend).toBeLessThan(money + 2 * (money / 20));
      },
    );
  });

  test("a gateway that starts without Redis uses at most its share", async () => {
    await withTestbed(
      { gateways: 2, redis: true },
      async (testbed, gateways) => {
        const [first] = gateways;
        const price = 10 * 0.000001 + 4 * 0.000002;
        const poor = await newAccount(testbed, { max_budget: 20 * price });
        await testbed.redis?.stop();
        await first?.kill();
        await first?.start();
        await waitFor("both gateways to notice", () =>
          gateways.every((gateway) =>
            gateway.output().includes("Redis is unavailable"),
          ),
        );
        const ends = await Promise.all(
          gateways.flatMap(({ url }) =>
            Array.from({ length: 40 }, () =>
              call(url, poor, { ...QUICK, delayMs: 100 }),
            ),
          ),
        );
        const served = ends.filter(({ end }) => end === "ok").length;
        expect(served).toBeGreaterThanOrEqual(10);
        expect(served).toBeLessThanOrEqual(22);
        expect(
          ends.filter(
            ({ end }) =>
              !["ok", "budget_held", "budget_exceeded"].includes(end),
          ),
        ).toEqual([]);
        await expectAllRecorded(testbed);
      },
    );
  });

  test("spend that a gateway wrote to the ledger without Redis does not stay pending after a restart", async () => {
    await withTestbed(
      { gateways: 2, redis: true },
      async (testbed, gateways) => {
        const [first, second] = gateways;
        if (first === undefined || second === undefined) {
          throw new Error("too few gateways");
        }
        const price = 10 * 0.000001 + 4 * 0.000002;
        const poor = await newAccount(testbed, { max_budget: 10 * price });
        expect((await call(first.url, poor, QUICK)).end).toBe("ok");
        // Redis knows four calls that are not in the ledger yet, and is not notified when they are written to it.
        first.postgresRelay.stall();
        for (let calls = 0; calls < 4; calls++) {
          expect((await call(first.url, poor, QUICK)).end).toBe("ok");
        }
        first.redisRelay?.cut();
        first.postgresRelay.restore();
        await testbed.drained();
        expect(await first.stop()).toBe(0);
        first.redisRelay?.restore();
        await first.start();
        const ends: string[] = [];
        for (let calls = 0; calls < 10 && ends.at(-1) !== "budget_exceeded";) {
          calls++;
          ends.push((await call(second.url, poor, QUICK)).end);
          await testbed.drained();
        }
        expect(ends).toEqual([
          ...Array.from({ length: 5 }, () => "ok"),
          "budget_exceeded",
        ]);
        await expectAllRecorded(testbed);
      },
    );
  });

  test("the cache is bypassed, and used again once Redis is available", async () => {
    await withTestbed(
      { gateways: 1, redis: true, yaml: "proxy_settings: { cache: true }\n" },
      async (testbed, [gateway]) => {
        const { key } = await newAccount(testbed);
        async function cached(): Promise<string> {
          const answer = await fetch(`${gateway?.url}/v1/chat/completions`, {
            method: "POST",
            headers: {
              authorization: `Bearer ${key}`,
              "content-type": "application/json",
            },
            body: JSON.stringify({
              model: "mock",
              messages: [{ role: "user", content: "always the same" }],
            }),
          });
          const text = await answer.text();
          return answer.status === 200
            ? String(answer.headers.get("x-hearth-cache"))
            : text;
        }
        expect(await cached()).toBe("miss");
        await waitFor("a hit", async () => (await cached()) === "hit");
        await testbed.redis?.stop();
        for (let calls = 0; calls < 4; calls++) {
          expect(["miss", "bypass"]).toContain(await cached());
        }
        await testbed.redis?.start();
        await waitFor("a hit again", async () => (await cached()) === "hit");
        await expectAllRecorded(testbed);
      },
    );
  });

  test("with fail_closed, calls get 503 until Redis is available", async () => {
    await withTestbed(
      {
        gateways: 1,
        redis: true,
        yaml: "general_settings: { fail_closed: true }\n",
      },
      async (testbed, [gateway]) => {
        if (gateway === undefined) {
          throw new Error("too few gateways");
        }
        const account = await newAccount(testbed);
        const received: Received[] = [];
        const load = loadOn(testbed, [account], received);
        await waitFor("calls to be served", () => received.length > 5);
        await testbed.redis?.stop();
        await waitFor(
          "calls to be rejected",
          async () =>
            (await call(gateway.url, account, randomCall(random))).end ===
            "limits_unavailable",
        );
        const callsBefore = testbed.provider.requests.size;
        expect(await call(gateway.url, account, QUICK)).toMatchObject({
          status: 503,
          end: "limits_unavailable",
        });
        await load.pause();
        expect(
          testbed.provider.requests.size - callsBefore,
        ).toBeLessThanOrEqual(3);
        expect((await testbed.admin(gateway, "/key/generate", {})).status).toBe(
          200,
        );
        load.resume();
        await testbed.redis?.start();
        await waitFor(
          "calls to be served again",
          async () => (await call(gateway.url, account, QUICK)).end === "ok",
        );
        await load.stop();
        await expectAllRecorded(testbed);
      },
    );
  });
});
