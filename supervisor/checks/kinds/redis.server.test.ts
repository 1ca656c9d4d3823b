import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  hasRedisServer,
  startRedis,
  type TestRedis,
} from "../../../test/servers/redis.ts";
import { probeCheck } from "../../../test/supervisor/probe-check.ts";

describe.runIf(hasRedisServer())("with a real server", () => {
  let redis: TestRedis;
  const probe = (
    more: Readonly<Record<string, unknown>> = {},
    before?: Readonly<Record<string, number>>,
  ) => {
    const url = `redis://127.0.0.1:${redis.port}`;
    return probeCheck({ kind: "redis", url, ...more }, { before });
  };

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.remove());

  test("it is up, with memory, evictions and persistence", async () => {
    expect(await probe()).toMatchObject({
      ok: true,
      text: expect.stringMatching(
        /^\d+ MiB, 0 evicted in a minute, no append-only file$/,
      ),
    });
  });

  test("exceeded limits of memory and evictions are warnings", async () => {
    await redis.client.config("SET", "maxmemory", "4mb");
    await redis.client.config("SET", "maxmemory-policy", "allkeys-lru");
    const pipeline = redis.client.pipeline();
    for (let key = 0; key < 6000; key += 1) {
      pipeline.set(`key-${key}`, "x".repeat(1000));
    }
    await pipeline.exec();
    const result = await probe(
      { expect: { evictions_per_minute_below: 10 } },
      { at: Date.now() - 60_000, evicted_keys: 0 },
    );
    expect(result).toMatchObject({ ok: false, level: "warning" });
    expect(result.text).toMatch(/over 90 % of its memory is in use/);
    expect(result.text).toMatch(/more than 10 keys are evicted in a minute/);
    await redis.client.flushall();
    await redis.client.config("SET", "maxmemory", "0");
  });

  test("a wrong password is a failure that does not reveal it", async () => {
    await redis.client.config("SET", "requirepass", "right");
    const wrong = await probe({ password: "s3cret" });
    expect(wrong).toMatchObject({ ok: false, level: "down" });
    expect(wrong.text).toMatch(/^Redis rejects the login: set REDIS_PASSWORD/);
    expect(wrong.text).not.toContain("s3cret");
    expect(await probe()).toMatchObject({ ok: false });
    expect(await probe({ password: "right" })).toMatchObject({ ok: true });
    await redis.client.config("SET", "requirepass", "");
  });

  test("a server that hangs or has stopped is a failure", async () => {
    redis.freeze();
    expect(await probe({ timeout: "500ms" })).toMatchObject({ ok: false });
    redis.thaw();
    await redis.stop();
    const result = await probe();
    expect(result.ok).toBe(false);
    expect(result.text).toContain("ECONNREFUSED");
  });
});
