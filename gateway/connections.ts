import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { connectCacheRedis, connectRedis } from "./cache/redis.ts";
import { adviceFor } from "../core/redis/advice.ts";
import { isRejectedDatabase } from "../core/redis/options.ts";
import type { GatewayConfig } from "./config/load.ts";
import { revealedPlace } from "./config/redis.ts";
import type { RedisConfig } from "./config/types.ts";
import { createPool, type Pool } from "./database/pool.ts";
import { findUnsuitable } from "./limits/suitability.ts";
import { StartError } from "./start-error.ts";

/** The connections to Postgres and Redis. */
export interface Connections {
  readonly pool: Pool;
  /** For statements in the path of calls, which have deadlines. */
  readonly callPool: Pool;
  /** null: not configured. */
  readonly redis: Redis | null;
  /** Of the response cache; null: it is in memory. */
  readonly cacheRedis: Redis | null;
}

/** Throws {@link StartError} when Redis cannot keep limits, or rejects its database. */
export async function openConnections(
  config: GatewayConfig,
  log: Logger,
): Promise<Connections> {
  const { url, poolSize } = config.database;
  const databaseUrl = url.reveal();
  const callConnections = Math.max(1, Math.floor(poolSize / 2));
  const poolConnections = Math.max(1, poolSize - callConnections);
  const pool = createPool(databaseUrl, poolConnections, log);
  const callPool = createPool(databaseUrl, callConnections, log, "calls");
  const redis =
    config.redis === null ? null : await openRedis(config.redis, log);
  const cacheRedis =
    config.cache.kind === "redis" && config.redis !== null
      ? connectCacheRedis(revealedPlace(config.redis), (error) =>
          logMissing(error, log),
        )
      : null;
  return { pool, callPool, redis, cacheRedis };
}

async function openRedis(config: RedisConfig, log: Logger): Promise<Redis> {
  const place = revealedPlace(config);
  let reported: string | null = null;
  let rejected: string | null = null;
  const redis = connectRedis(place, (error) => {
    const advice = adviceFor(error, place);
    if (isRejectedDatabase(error)) {
      rejected = advice;
    }
    // Each attempt ends in the same error.
    if (advice === null) {
      logMissing(error, log);
    } else if (advice !== reported) {
      reported = advice;
      log.error(advice);
    }
  });
  redis.on("ready", () => {
    reported = null;
  });
  const unsuitable = await findUnsuitable(redis, (later) => log.error(later));
  const problem = unsuitable ?? rejected;
  if (problem === null) {
    return redis;
  }
  redis.disconnect();
  throw new StartError(problem);
}

function logMissing(error: Error, log: Logger): void {
  log.debug({ error: error.message }, "no connection to Redis");
}
