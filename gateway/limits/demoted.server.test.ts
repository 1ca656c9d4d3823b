import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hasRedisServer } from "../../test/servers/redis.ts";
import { createLimits } from "./create.ts";
import { callOf, payer } from "./testing/bench.ts";
import { startTestRedis, type TestRedis } from "./testing/redis-server.ts";
import { waitForArrivals, waitForMode } from "./testing/wait-for-limits.ts";

let servers: readonly TestRedis[] = [];
beforeAll(async () => {
  if (hasRedisServer()) {
    servers = [await startTestRedis(), await startTestRedis()];
  }
});
afterAll(() => Promise.all(servers.map((server) => server.stop())));

test.runIf(hasRedisServer())(
  "a primary that became a replica is left, and limits are in process until a primary is reached",
  async () => {
    const [server, other] = servers;
    if (server === undefined || other === undefined) {
      throw new Error("no servers");
    }
    const operator = await server.connected();
    const redis = await server.connected();
    const limits = createLimits({ redis, instance: "a", discoverMs: 0 });
    await waitForArrivals(1, limits);
    const closed = once(redis, "close");
    await operator.replicaof("127.0.0.1", other.port);
    await closed;
    await waitForMode("redis_away", limits);
    expect(await limits.admit(callOf([payer("key:a")]))).toMatchObject({
      kind: "admitted",
    });
    await operator.replicaof("NO", "ONE");
    await waitForMode("redis", limits);
    await limits.close();
  },
);
