import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  hasRedisServer,
  redisAt,
  startRedis,
  type TestRedis,
} from "../../test/servers/redis.ts";
import { connectRedis } from "../cache/redis.ts";
import { RedisSlotLeases } from "./slot-leases.ts";
import { SlotQueue } from "./slot-queue.ts";

const PATIENT = {
  queueLimit: 10,
  maxWaitMs: 60_000,
  signal: new AbortController().signal,
};
const PLACE = { batch: false, order: 0 };

describe.runIf(hasRedisServer())("with a redis-server", () => {
  let redis: TestRedis;
  const gateways = () => [open(), open()] as const;
  const opened: { stop(): void }[] = [];

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => {
    opened.forEach((one) => one.stop());
    await redis?.remove();
  });

  /** What one gateway has. */
  function open() {
    const client = connectRedis(redisAt(redis.port), () => undefined);
    const leases = new RedisSlotLeases(client);
    opened.push({
      stop() {
        leases.stop();
        client.disconnect();
      },
    });
    const connected = async () => {
      await expect.poll(() => client.status).toBe("ready");
    };
    const queue = (key: string, limit: number) => {
      const one = new SlotQueue(key, leases);
      one.limit = limit;
      return one;
    };
    return { leases, connected, queue };
  }

  test("two gateways share the slots of a runner: together they use no more than there are", async () => {
    const [one, other] = gateways();
    await Promise.all([one.connected(), other.connected()]);
    const queues = [one.queue("shared", 2), other.queue("shared", 2)] as const;
    let running = 0;
    let most = 0;
    const call = async (queue: SlotQueue) => {
      const slot = (await queue.claim()) ?? (await queue.wait(PLACE, PATIENT));
      running++;
      most = Math.max(most, running);
      await sleep(5);
      running--;
      slot.release();
    };
    await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        call(index % 2 === 0 ? queues[0] : queues[1]),
      ),
    );
    expect(most).toBe(2);
    await expect.poll(() => redis.client.keys("hearth:slots:*")).toEqual([]);
  });

  test("the slots of a gateway that was killed are free again when its leases have expired", async () => {
    const [killed, other] = gateways();
    await Promise.all([killed.connected(), other.connected()]);
    expect(await killed.leases.take("k", 1)).not.toBeNull();
    expect(await other.leases.take("k", 1)).toBeNull();
    const [key = ""] = await redis.client.keys("hearth:slots:*");
    expect(await redis.client.pttl(key)).toBeGreaterThan(0);
    const [lease = ""] = await redis.client.zrange(key, "0", "-1");
    await redis.client.zadd(key, String(Date.now() - 1), lease);
    expect(await other.leases.take("k", 1)).not.toBeNull();
  });

  test("while Redis is away, each gateway counts for itself", async () => {
    const one = open();
    await one.connected();
    await redis.stop();
    const queue = one.queue("away", 1);
    const slot = await queue.claim();
    expect(slot).not.toBeNull();
    expect(await queue.claim()).toBeNull();
    const next = queue.wait(PLACE, PATIENT);
    slot?.release();
    expect((await next).queuedMs).toBeGreaterThanOrEqual(0);
  });
});
