import { expect, inject, test } from "vitest";
import { hasRedisServer } from "../servers/redis.ts";
import { openTestbed } from "./testbed.ts";

test.runIf(hasRedisServer())(
  "a gateway does not start with a Redis that may evict limits, and names the setting to change",
  async () => {
    const testbed = await openTestbed(inject("postgresUrl"), {
      gateways: 1,
      redis: true,
      start: false,
    });
    try {
      const [gateway] = testbed.gateways;
      if (gateway === undefined) {
        throw new Error("a testbed without a gateway");
      }
      for (const policy of ["allkeys-lru", "allkeys-random"]) {
        await testbed.redis?.client.config("SET", "maxmemory-policy", policy);
        gateway.launch();
        expect(await gateway.exited()).toBe(1);
        expect(gateway.output()).toContain(
          `hearth: Redis evicts any key when its memory is full (maxmemory-policy ${policy}), limits and spend included: set maxmemory-policy to volatile-lru or noeviction.`,
        );
      }
      await testbed.redis?.client.config(
        "SET",
        "maxmemory-policy",
        "volatile-ttl",
      );
      await gateway.start();
      // A later change does not end the gateway, but is logged at the next connection.
      await testbed.redis?.client.config(
        "SET",
        "maxmemory-policy",
        "allkeys-lfu",
      );
      gateway.redisRelay?.cut();
      gateway.redisRelay?.restore();
      await expect
        .poll(() => gateway.output(), { timeout: 20_000 })
        .toContain("maxmemory-policy allkeys-lfu");
    } finally {
      await testbed.close();
    }
  },
);
