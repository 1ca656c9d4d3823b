import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { connectCacheRedis, connectRedis } from "./cache/redis.ts";
import type { GatewayConfig } from "./config/load.ts";
import { createPool, type Pool } from "./database/pool.ts";
import { findEviction } from "./limits/eviction.ts";
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

/** Throws {@link StartError} when Redis may evict the keys that hold limits. */
export async function openConnections(
  config: GatewayConfig,
  log: Logger,
): Promise<Connections> {
  const pools = openPools(config.database, log);
  const redis = openRedis(connectRedis, config.redis, log);
  if (redis !== null) {
    await requireNoEviction(redis, log);
  }
  const cacheRedis =
    config.cache.kind === "redis"
      ? openRedis(connectCacheRedis, config.redis, log)
      : null;
  return { ...pools, redis, cacheRedis };
}

function openPools(
  { url, directUrl, poolSize }: GatewayConfig["database"],
  log: Logger,
): Pick<Connections, "pool" | "callPool" | "sessionPool"> {
  const address = url.reveal();
  const route = directUrl === null ? "direct" : "pooled";
  const callConnections = Math.max(1, Math.floor(poolSize / 2));
  const poolConnections = Math.max(1, poolSize - callConnections);
  const pool = createPool(address, poolConnections, log, "work", route);
  const callPool = createPool(address, callConnections, log, "calls", route);
  const sessionPool =
    directUrl === null ? pool : createPool(directUrl.reveal(), 1, log);
  return { pool, callPool, sessionPool };
}

function openRedis(
  connect: typeof connectRedis,
  redis: GatewayConfig["redis"],
  log: Logger,
): Redis | null {
  if (redis === null) {
    return null;
  }
  const { host, port, password, ca } = redis;
  return connect(
    {
      host,
      port,
      ...(password === null ? {} : { password: password.reveal() }),
      ca,
    },
    (error) => log.debug({ error: error.message }, "no connection to Redis"),
  );
}

async function requireNoEviction(redis: Redis, log: Logger): Promise<void> {
  const problem = await findEviction(redis, (later) => log.error(later));
  if (problem === null) {
    return;
  }
  redis.disconnect();
  throw new StartError(problem);
}
