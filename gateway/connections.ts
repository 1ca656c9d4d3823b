import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { connectCacheRedis, connectRedis } from "./cache/redis.ts";
import { adviceFor } from "../core/redis/advice.ts";
import { isRejectedDatabase } from "../core/redis/options.ts";
import { sessionUrlOf } from "./config/database.ts";
import type { GatewayConfig, RedisConfig } from "./config/types.ts";
import { revealedPlace } from "./config/redis.ts";
import { createPool, type Pool } from "./database/pool.ts";
import { findUnsuitable } from "./limits/suitability.ts";
import { StartError } from "./start-error.ts";

/** The connections to Postgres and Redis. */
export interface Connections {
  readonly pool: Pool;
  /** For statements in the path of calls, which have deadlines. */
  readonly callPool: Pool;
  /** For work that needs a session, such as migrations; `pool` itself, unless that leads to a connection pooler. */
  readonly sessionPool: Pool;
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
  const pools = openPools(config.database, log);
  const redis =
    config.redis === null ? null : await openRedis(config.redis, log);
  const cacheRedis =
    config.cache.kind === "redis" && config.redis !== null
      ? connectCacheRedis(revealedPlace(config.redis), (error) =>
          logMissing(error, log),
        )
      : null;
  return { ...pools, redis, cacheRedis };
}

function openPools(
  database: GatewayConfig["database"],
  log: Logger,
): Pick<Connections, "pool" | "callPool" | "sessionPool"> {
  const { url, directUrl, poolSize } = database;
  const address = url.reveal();
  const route = directUrl === null ? "direct" : "pooled";
  const callConnections = Math.max(1, Math.floor(poolSize / 2));
  const poolConnections = Math.max(1, poolSize - callConnections);
  const pool = createPool(address, poolConnections, log, "work", route);
  const callPool = createPool(address, callConnections, log, "calls", route);
  const sessionPool =
    directUrl === null ? pool : createPool(sessionUrlOf(database), 1, log);
  return { pool, callPool, sessionPool };
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
