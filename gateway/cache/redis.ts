import { Redis } from "ioredis";

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly password?: string;
}

const LONGEST_WAIT_MS = 250;

/**
 * One connection for the cache and the limits. It tries for ever to come back, and while it is away every command fails
 * at once: callers go on without Redis rather than wait for it. `onError` hears each failed attempt.
 */
export function connectRedis(
  address: RedisAddress,
  onError: (error: Error) => void,
): Redis {
  const redis = new Redis({
    host: address.host,
    port: address.port,
    ...(address.password === undefined ? {} : { password: address.password }),
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    // A command sent again after a reconnect could take effect twice, or undo a later one.
    autoResendUnfulfilledCommands: false,
    connectTimeout: 2_000,
    disconnectTimeout: 200,
    keepAlive: 10_000,
    retryStrategy: (attempt) =>
      Math.min(LONGEST_WAIT_MS, 50 * 2 ** Math.min(attempt - 1, 10)),
  });
  redis.on("error", onError);
  return redis;
}
