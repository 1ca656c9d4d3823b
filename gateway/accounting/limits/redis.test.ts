import { afterAll, beforeAll, describe } from "vitest";
import { createLimits } from "./create.ts";
import {
  hasRedisServer,
  startTestRedis,
  type TestRedis,
} from "./redis-server.ts";
import { describeRules } from "./rules.ts";

describe.skipIf(!hasRedisServer)("with a redis-server", () => {
  let server: TestRedis;
  beforeAll(async () => {
    server = await startTestRedis();
  });
  afterAll(() => server.stop());

  describeRules("limits in Redis", async () => {
    let now = 1_000_000;
    const redis = await server.connected();
    await redis.flushall();
    const store = createLimits({
      redis,
      instance: "a",
      now: () => now,
      discoverMs: 0,
    });
    return {
      store,
      advance(ms) {
        now += ms;
      },
      async cache(key, value) {
        await redis.set(key, value, "EX", 600);
      },
      async close() {
        await store.close();
        redis.disconnect();
      },
    };
  });
});
