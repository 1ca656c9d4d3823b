import { afterAll, beforeAll, expect, test } from "vitest";
import {
  hasRedisServer,
  redisAt,
  startRedis,
  type TestRedis,
} from "../../test/servers/redis.ts";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import { startTestGateway } from "../../test/servers/gateway.ts";
import { startMockProvider } from "../../test/servers/provider.ts";
import { waitFor } from "../../test/wait-for.ts";
import { forgetLimits, redisPlace } from "./forget-limits.ts";

test("without a Redis nothing is deleted; a mistake names its variable", () => {
  expect(redisPlace({})).toBeUndefined();
  expect(redisPlace({ REDIS_HOST: "r", REDIS_PASSWORD: "p" })).toMatchObject({
    nodes: [{ host: "r", port: 6379 }],
    password: "p",
  });
  expect(() => redisPlace({ REDIS_URL: "http://r" })).toThrow(/^REDIS_URL: /);
});

test("an unreachable Redis fails quickly", async () => {
  await expect(forgetLimits(redisAt(1))).rejects.toThrow();
});

if (hasRedisServer()) {
  let redis: TestRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.remove());

  test("only the gateways' counters are deleted, and a budget is reloaded from the ledger", async () => {
    const database = await throwAwayDatabase();
    const provider = await startMockProvider();
    const gateway = await startTestGateway({
      databaseUrl: database.url,
      providerUrl: provider.url,
      env: { REDIS_HOST: "127.0.0.1", REDIS_PORT: String(redis.port) },
    });
    try {
      const key = await gateway.createKey({ max_budget: 1 });
      expect((await gateway.chat(key, "one")).status).toBe(200);
      await redis.client.set("other:key", "stays");
      expect(await redis.client.keys("hearth:limits:*")).not.toEqual([]);
      await forgetLimits(redisAt(redis.port));
      expect(await redis.client.get("other:key")).toBe("stays");
      expect((await gateway.chat(key, "two")).status).toBe(200);
      await waitFor("both calls to be in the ledger", async () => {
        const info = await gateway.request("GET", `/key/info?key=${key}`);
        return Number(info.json["info"]?.["spend"]) > 0;
      });
      const check = await gateway.request("GET", "/spend/check");
      expect(check.json["status"]).toBe("equal");
    } finally {
      await gateway.stop();
      await provider.close();
      await database.drop();
    }
  });
}
