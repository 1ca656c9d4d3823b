import type { Environment } from "../../core/environment.ts";
import { Failure } from "../../core/failure.ts";
import {
  REDIS_VARIABLES,
  readRedisVariables,
  type RedisPlace,
} from "../../core/redis/place.ts";
import { redisOnce } from "../redis-once.ts";

/** Where the gateways keep limits, if they keep them in Redis. Throws a Failure that names a wrong variable. */
export function redisPlace(env: Environment): RedisPlace | undefined {
  const { place, mistakes } = readRedisVariables(env);
  const [mistake] = mistakes;
  if (mistake !== undefined) {
    throw new Failure(
      `${REDIS_VARIABLES[mistake.setting]}: ${mistake.message}`,
    );
  }
  return place ?? undefined;
}

/** Prefix of the gateway's keys for limits. */
const PATTERN = "hearth:limits:*";
const PATIENCE_MS = 5000;

/** Deletes the gateways' counters in Redis; gateways reload them from the ledger. */
export function forgetLimits(place: RedisPlace): Promise<void> {
  return redisOnce(place, { timeoutMs: PATIENCE_MS }, async (redis) => {
    for await (const keys of redis.scanStream({ match: PATTERN, count: 500 })) {
      if (Array.isArray(keys) && keys.length > 0) {
        await redis.unlink(...keys.map(String));
      }
    }
  });
}
