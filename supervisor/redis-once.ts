import type { Redis } from "ioredis";
import { adviceFor } from "../core/redis/advice.ts";
import { leaveWrongDatabase, redisOptions } from "../core/redis/options.ts";
import type { RedisPlace } from "../core/redis/place.ts";

interface RedisOnceOptions {
  /** Of the connection, and of each command. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly connectionName?: string;
}

/** Works on a new connection. The error of a failed one says which setting to change, if one is wrong. */
export async function redisOnce<T>(
  place: RedisPlace,
  { timeoutMs, signal, connectionName }: RedisOnceOptions,
  work: (redis: Redis) => Promise<T>,
): Promise<T> {
  const { Redis } = await import("ioredis");
  const redis = new Redis({
    ...redisOptions(place),
    lazyConnect: true,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    // It would wait while Redis loads its data, in place of the answer that says so.
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    sentinelRetryStrategy: () => null,
    ...(connectionName === undefined ? {} : { connectionName }),
  });
  const troubles: Error[] = [];
  const note = (error: Error) => void troubles.push(error);
  redis.on("error", note);
  redis.on("sentinelError", note);
  leaveWrongDatabase(redis, false);
  const hangUp = () => redis.disconnect();
  signal?.addEventListener("abort", hangUp, { once: true });
  try {
    await redis.connect().catch((error: unknown) => {
      throw troubles[0] ?? error;
    });
    return await work(redis);
  } catch (error) {
    const advice = [...troubles, error]
      .filter((one) => one instanceof Error)
      .map((one) => adviceFor(one, place))
      .find((text) => text !== null);
    throw advice === undefined ? error : new Error(advice, { cause: error });
  } finally {
    signal?.removeEventListener("abort", hangUp);
    redis.disconnect();
  }
}
