import { readVariable, type Environment } from "../../core/environment.ts";

export interface RedisPlace {
  readonly host: string;
  readonly port: number;
  readonly password: string | undefined;
  /** The certificate authority in PEM format; undefined: without TLS. */
  readonly ca?: string | undefined;
}

/** Where the gateways keep limits, if they keep them in Redis. */
export function redisPlace(env: Environment): RedisPlace | undefined {
  const host = readVariable("REDIS_HOST", env);
  if (host === undefined) {
    return undefined;
  }
  return {
    host,
    port: Number(readVariable("REDIS_PORT", env) ?? 6379),
    password: readVariable("REDIS_PASSWORD", env),
    ca: readVariable("REDIS_CA", env),
  };
}

/** Prefix of the gateway's keys for limits. */
const PATTERN = "hearth:limits:*";
const PATIENCE_MS = 5000;

/** Deletes the gateways' counters in Redis; gateways reload them from the ledger. */
export async function forgetLimits(place: RedisPlace): Promise<void> {
  const { Redis } = await import("ioredis");
  const redis = new Redis({
    host: place.host,
    port: place.port,
    lazyConnect: true,
    ...(place.password === undefined ? {} : { password: place.password }),
    ...(place.ca === undefined ? {} : { tls: { ca: place.ca } }),
    connectTimeout: PATIENCE_MS,
    commandTimeout: PATIENCE_MS,
    retryStrategy: () => null,
  });
  redis.on("error", () => {});
  try {
    await redis.connect();
    for await (const keys of redis.scanStream({ match: PATTERN, count: 500 })) {
      if (Array.isArray(keys) && keys.length > 0) {
        await redis.unlink(...keys.map(String));
      }
    }
  } finally {
    redis.disconnect();
  }
}
