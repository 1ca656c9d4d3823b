import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { probeRedis } from "../../cli/doctor/probe-programs.ts";
import {
  forgetLimits,
  redisPlace,
} from "../../supervisor/backup/forget-limits.ts";
import { throwAwayDatabase } from "../servers/database.ts";
import { startTestGateway } from "../servers/gateway.ts";
import { startMockProvider } from "../servers/provider.ts";
import {
  hasRedisServer,
  startRedis,
  type TestRedis,
} from "../servers/redis.ts";
import { probeCheck } from "../supervisor/probe-check.ts";
import { openTestbed } from "./testbed.ts";

const PASSWORD = "s3cret";

describe.runIf(hasRedisServer())("a Redis with users and databases", () => {
  let redis: TestRedis;
  beforeAll(async () => {
    redis = await startRedis();
    await redis.client.call("ACL", [
      "SETUSER",
      "gateway",
      "on",
      `>${PASSWORD}`,
      ..."~* +@all -@admin -@dangerous +info".split(" "),
    ]);
  });
  afterAll(() => redis?.remove());

  const urlOf = (database: number | string, user = "gateway") =>
    `redis://${user}:${PASSWORD}@127.0.0.1:${redis.port}/${database}`;
  const keysIn = async (database: number): Promise<readonly string[]> => {
    await redis.client.select(database);
    return redis.client.keys("hearth:limits:*");
  };

  test("two stacks in two databases have separate limits", async () => {
    const provider = await startMockProvider();
    const databases = [await throwAwayDatabase(), await throwAwayDatabase()];
    const gateways = await Promise.all(
      databases.map(({ url: databaseUrl }, at) =>
        startTestGateway({
          databaseUrl,
          providerUrl: provider.url,
          env: { REDIS_URL: urlOf(at + 2) },
        }),
      ),
    );
    try {
      for (const gateway of gateways) {
        const key = await gateway.createKey({ max_budget: 1 });
        expect((await gateway.chat(key, "one")).status).toBe(200);
        const { json } = await gateway.request("GET", "/instances");
        expect(json["instances"]).toHaveLength(1);
      }
      expect(await keysIn(0)).toEqual([]);
      expect(await keysIn(2)).not.toEqual([]);
      const place = redisPlace({ REDIS_URL: urlOf(3) });
      expect(place && (await forgetLimits(place))).toBeUndefined();
      expect(await keysIn(2)).not.toEqual([]);
    } finally {
      await Promise.all(gateways.map((gateway) => gateway.stop()));
      await provider.close();
      await Promise.all(databases.map((database) => database.drop()));
    }
  });

  test("a database that Redis does not have is rejected everywhere, and never replaced by database 0", async () => {
    const rejected = /^Redis rejects database 99: set REDIS_DB/;
    await redis.client.select(0);
    await redis.client.set("hearth:limits:other-stack", "1");
    const place = redisPlace({ REDIS_URL: urlOf(99) });
    expect(place).toBeDefined();
    await expect(place && forgetLimits(place)).rejects.toThrow(rejected);
    expect(await keysIn(0)).toEqual(["hearth:limits:other-stack"]);
    expect((await probeCheck({ kind: "redis", url: urlOf(99) })).text).toMatch(
      rejected,
    );
    expect(await probeRedis({ REDIS_URL: urlOf(99) })).toMatchObject([
      { level: "wrong" },
    ]);
  });

  test("a wrong user is reported without the password", async () => {
    const result = await probeCheck({ kind: "redis", url: urlOf(0, "nobody") });
    expect(result.text).toMatch(/^Redis rejects the login: set REDIS_PASSWORD/);
    const [finding] = await probeRedis({ REDIS_URL: urlOf(0, "nobody") });
    expect(finding).toMatchObject({ level: "wrong" });
    expect(JSON.stringify([result, finding])).not.toContain(PASSWORD);
    const testbed = await openTestbed(inject("postgresUrl"), {
      gateways: 1,
      redis: false,
      env: { REDIS_URL: urlOf(0, "nobody") },
    });
    try {
      const [gateway] = testbed.gateways;
      await expect
        .poll(() => gateway?.output(), { timeout: 20_000 })
        .toContain("Redis rejects the login: set REDIS_PASSWORD");
      expect(gateway?.output()).not.toContain(PASSWORD);
    } finally {
      await testbed.close();
    }
  });
});

test.runIf(hasRedisServer())(
  "a gateway does not start on a cluster or a missing database, and says what to change; a later cluster is logged",
  async () => {
    const redis = await startRedis({ cluster: true });
    const url = `redis://127.0.0.1:${redis.port}`;
    const open = (address: string) =>
      openTestbed(inject("postgresUrl"), {
        gateways: 1,
        redis: false,
        start: false,
        env: { REDIS_URL: address },
      });
    const testbeds = [await open(url), await open(`${url}/99`)];
    const [onCluster, onMissing] = testbeds.map(({ gateways }) => gateways[0]);
    try {
      onCluster?.launch();
      expect(await onCluster?.exited()).toBe(1);
      expect(onCluster?.output()).toContain("hearth: Redis runs as a cluster");
      expect(onCluster?.output()).toContain("REDIS_SENTINELS");
      expect((await probeCheck({ kind: "redis", url })).text).toMatch(
        /^Redis runs as a cluster/,
      );
      expect(await probeRedis({ REDIS_URL: url })).toMatchObject([
        { level: "wrong", text: expect.stringMatching(/cluster/) },
      ]);
      await redis.stop();
      await redis.start();
      onMissing?.launch();
      expect(await onMissing?.exited()).toBe(1);
      expect(onMissing?.output()).toContain("Redis rejects database 99");
      await onCluster?.start();
      await redis.stop();
      await redis.start({ cluster: true });
      await expect
        .poll(
          () => onCluster?.output().split("Redis runs as a cluster").length,
          {
            timeout: 20_000,
          },
        )
        .toBeGreaterThan(2);
    } finally {
      await Promise.all(testbeds.map((testbed) => testbed.close()));
      await redis.remove();
    }
  },
);
