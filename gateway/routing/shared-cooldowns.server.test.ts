import type { Redis } from "ioredis";
import { pino } from "pino";
import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  test,
  vi,
} from "vitest";
import {
  hasRedisServer,
  redisAt,
  startRedis,
  type TestRedis,
} from "../../test/servers/redis.ts";
import { connectRedis } from "../cache/redis.ts";
import { Cooldowns, type CountedFailure } from "./cooldowns.ts";

const LIMITED: CountedFailure = {
  status: 429,
  reason: "too many",
  retryAfterMs: 60_000,
  alone: false,
  hasFallback: false,
  countedBefore: null,
};

describe.runIf(hasRedisServer())("with a redis-server", () => {
  let redis: TestRedis;
  let client: Redis;
  const opened: { stop(): void }[] = [];

  beforeAll(async () => {
    redis = await startRedis();
    client = connectRedis(redisAt(redis.port), () => undefined);
    await vi.waitUntil(() => client.status === "ready", 10_000);
  });
  afterEach(() => opened.splice(0).forEach((one) => one.stop()));
  afterAll(async () => {
    client?.disconnect();
    await redis?.remove();
  });

  /** Of one instance, whose clock may differ from Redis'. */
  function open(own: Redis, fast = 0): Cooldowns {
    const cooldowns = new Cooldowns({
      router: () => ({
        allowedFails: 3,
        cooldownMs: 60_000,
        cooldownFailureRatio: 0.5,
        cooldownMinimumCalls: 5,
      }),
      redis: own,
      log: pino({ level: "silent" }),
      onCooldown: () => undefined,
      now: () => Date.now() + fast,
    });
    opened.push(cooldowns);
    return cooldowns;
  }

  /** Reads what is shared by `read`, and shares by Redis. */
  function reading(read: (key: string) => Promise<object>): Redis {
    return Object.assign(Object.create(client) as Redis, { hgetall: read });
  }

  /** Only shares. */
  const mute = () => reading(async () => ({}));

  test.each([
    [0, 0],
    [-600_000, 0],
    [600_000, 0],
    [0, -600_000],
    [0, 600_000],
  ])(
    "a cooldown reaches the other instances (clocks off by %d and %d ms)",
    async (fastHere, fastThere) => {
      const id = `shared ${fastHere} ${fastThere}`;
      const [here, there] = [open(client, fastHere), open(client, fastThere)];
      here.failed(id, { ...LIMITED, retryAfterMs: 300_000 });
      const { until = 0, ...cooling } = here.cooling(id) ?? {};
      await expect
        .poll(() => there.cooling(id), { timeout: 10_000 })
        .toMatchObject(cooling);
      const untilThere = there.cooling(id)?.until ?? 0;
      // Redis' clock is read in the middle: an exchange with it takes less than a minute.
      expect(
        Math.abs(until - fastHere - (untilThere - fastThere)),
      ).toBeLessThan(60_000);
      // Another instance has not removed it.
      expect(await client.hexists("hearth:cooldowns", id)).toBe(1);
    },
  );

  test("a cooldown that starts while an earlier one is removed reaches them, too", async () => {
    const there = open(mute());
    const ended = { until: Date.now() - 60_000, reason: "", requested: true };
    await client.hset("hearth:cooldowns", "again", JSON.stringify(ended));
    let readings = 0;
    const slow = reading(async (key) => {
      const read = await client.hgetall(key);
      if (readings++ === 0) {
        there.failed("again", LIMITED);
      }
      return read;
    });
    open(slow);
    await expect.poll(() => readings, { timeout: 10_000 }).toBeGreaterThan(1);
    const last = open(client);
    await expect
      .poll(() => last.cooling("again")?.reason, { timeout: 10_000 })
      .toBe("too many");
  });

  test.each([
    { until: 1e300 },
    { until: 1e300, lengthMs: 1e300 },
    { until: 1e300, lengthMs: "1e300" },
    { until: Date.now() + 60_000, lengthMs: {} },
    { until: Date.now() + 40 * 86_400_000 },
  ])("%o that another program shares is no cooldown", async (shared) => {
    const id = JSON.stringify(shared);
    await client.hset("hearth:cooldowns", id, id);
    const here = open(client);
    await expect
      .poll(() => client.hexists("hearth:cooldowns", id), { timeout: 10_000 })
      .toBe(0);
    expect(here.stateOf(id).cooling).toBeNull();
  });

  test("a shorter cooldown does not end a longer one", async () => {
    const here = open(mute());
    here.failed("longer", LIMITED);
    const longer = here.cooling("longer");
    here.failed("longer", { ...LIMITED, retryAfterMs: 1_000 });
    expect(here.cooling("longer")).toEqual(longer);

    let readings = 0;
    const outdated = reading(async () => {
      readings++;
      return { longer: JSON.stringify(longer) };
    });
    const there = open(outdated);
    there.failed("longer", { ...LIMITED, retryAfterMs: 600_000 });
    const longest = there.cooling("longer");
    await expect.poll(() => readings, { timeout: 10_000 }).toBeGreaterThan(1);
    expect(there.cooling("longer")).toEqual(longest);
  });
});
