import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  hasRedisServer,
  startRedis,
  type TestRedis,
} from "../../test/servers/redis.ts";
import {
  createMemoryUsage,
  createRedisUsage,
  type DeploymentUsage,
} from "./usage.ts";

interface Store {
  readonly usage: DeploymentUsage;
  /** The minute that its limits count now. */
  minute(): Promise<number>;
}

/** What `act` returns when it ran within one minute; `id`: of a deployment without usage. */
async function withinMinute<T>(
  { minute }: Store,
  act: (id: string) => Promise<T>,
): Promise<T> {
  for (;;) {
    const before = await minute();
    const result = await act(randomUUID());
    if ((await minute()) === before) {
      return result;
    }
  }
}

/** Both stores have the same rules. */
function rules(open: () => Store): void {
  test("a call that alone exceeds a limit of tokens is let through while nothing else is counted", async () => {
    const store = open();
    const { usage } = store;
    const admitted = await withinMinute(store, async (id) => {
      const take = (tokens: number) =>
        usage.take([{ id, rpm: null, tpm: 1_000 }], tokens, false);
      const large = await take(5_000);
      const beside = await take(100);
      if (large !== null) {
        usage.correct(large, 200);
      }
      return [large, beside, await take(5_000), await take(800), await take(1)];
    });
    expect(admitted.map((taken) => taken?.tokens ?? null)).toEqual([
      5_000,
      null,
      null,
      800,
      null,
    ]);
  });

  test("a call that was not sent is no request of its deployment, one that failed is", async () => {
    const store = open();
    const { usage } = store;
    const admitted = await withinMinute(store, async (id) => {
      const take = () => usage.take([{ id, rpm: 2, tpm: null }], 10, false);
      const [unsent, failed] = [await take(), await take()];
      if (unsent !== null && failed !== null) {
        usage.giveBack(unsent);
        usage.correct(failed, 0);
      }
      return [await take(), await take()];
    });
    expect(admitted).toEqual([expect.anything(), null]);
  });
}

describe("in memory", () =>
  rules(() => ({
    usage: createMemoryUsage(() => 0),
    minute: () => Promise.resolve(0),
  })));

describe.runIf(hasRedisServer())("with a redis-server", () => {
  let redis: TestRedis;

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.remove());

  rules(() => ({
    usage: createRedisUsage(redis.client),
    async minute() {
      const [seconds] = await redis.client.time();
      return Math.floor(Number(seconds) / 60);
    },
  }));
});
