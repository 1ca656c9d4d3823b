import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  hasRedisServer,
  startRedis,
  type TestRedis,
} from "../../../test/servers/redis.ts";
import { waitFor } from "../../../test/wait-for.ts";
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

  test("a failed snapshot, after which Redis rejects writes, is no reason for a restart", async () => {
    const [, directory = ""] = await redis.client.config("GET", "dir");
    mkdirSync(join(directory, "dump.rdb"));
    await redis.client.config("SET", "save", "3600 1");
    await redis.client.bgsave();
    await waitFor("the failed snapshot", async () => !(await probe()).ok);
    const result = await probe();
    expect(result).toMatchObject({ level: "down", restartFutile: true });
    expect(result.text).toMatch(/^rejects writes, .* disk: check the free/);
    await redis.client.config("SET", "save", "");
    expect(await probe()).toMatchObject({ ok: true });
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

  test("a full disk of the append-only file is named, and is no reason for a restart", async () => {
    const full = await startRedis({ appendOnlyKiB: 20 });
    try {
      const url = `redis://127.0.0.1:${full.port}`;
      await full.client.set("key", "x".repeat(60_000));
      await waitFor(
        "the failed write",
        async () => !(await probeCheck({ kind: "redis", url })).ok,
      );
      const result = await probeCheck({ kind: "redis", url });
      expect(result).toMatchObject({ level: "down", restartFutile: true });
      expect(result.text).toMatch(/written to disk \([^)]+\): check the free/);
    } finally {
      await full.remove();
    }
  });

  test("a server that still loads its data is down, and is no reason for a restart", async () => {
    const options = { appendOnlyKiB: 10_000 };
    const slow = await startRedis(options);
    try {
      const url = `redis://127.0.0.1:${slow.port}`;
      await slow.client.config("SET", "appendfsync", "always");
      const pipeline = slow.client.pipeline();
      // It answers after every 1,024 of them.
      for (let key = 0; key < 20_000; key += 1) {
        pipeline.set(`key-${key}`, "value");
      }
      await pipeline.exec();
      await slow.stop();
      await slow.start({ ...options, loadMsPerKey: 1 });
      expect(await probeCheck({ kind: "redis", url })).toMatchObject({
        level: "down",
        restartFutile: true,
        text: expect.stringContaining("reads its data from disk"),
      });
    } finally {
      await slow.remove();
    }
  });
});
