import type { Parts } from "./parts.ts";
import { numberVariable } from "./numbers.ts";
import type { ReadVariable } from "../../core/config/references.ts";
import { FOREIGN_CACHES } from "./schema.ts";
import { secret } from "./secret.ts";
import { problemAt, type Reading } from "../../core/config/reading.ts";
import { locate, plain } from "../../core/config/tree.ts";
import type { CacheConfig, CachedCallType, RedisConfig } from "./types.ts";

/** The Redis of cache and limits; null when no host is set, with a warning if the configuration asks for Redis. */
export function readRedis(
  reading: Reading,
  read: ReadVariable,
  { cache, router }: Pick<Parts, "cache" | "router">,
): RedisConfig | null {
  const host = cache.host ?? router.redis_host ?? read("REDIS_HOST");
  if (host === null) {
    if (cache.type === "redis") {
      reading.warnings.push(
        problemAt(
          reading,
          ["proxy_settings", "cache_params", "type"],
          "is redis, but no host is set; cache and limits use memory until host or REDIS_HOST is set",
        ),
      );
    }
    return null;
  }
  const password =
    cache.password ?? router.redis_password ?? read("REDIS_PASSWORD");
  return {
    host,
    port:
      cache.port ??
      router.redis_port ??
      numberVariable(reading, read, "REDIS_PORT", 1, 65_535) ??
      6_379,
    password: password === null ? null : secret(password),
    // The certificate authority of REDIS_HOST: another host in the file is a different Redis.
    ca: host === read("REDIS_HOST") ? read("REDIS_CA") : null,
  };
}

const CALL_TYPES: ReadonlyMap<string, CachedCallType> = new Map([
  ["acompletion", "acompletion"],
  ["completion", "acompletion"],
  ["aembedding", "aembedding"],
  ["embedding", "aembedding"],
]);

/** The cache settings; `memory` without a Redis. */
export function readCache(
  reading: Reading,
  { cache, proxy }: Pick<Parts, "cache" | "proxy">,
  redis: RedisConfig | null,
): CacheConfig {
  const path = ["proxy_settings", "cache_params", "type"];
  const { node } = locate(reading.root, path);
  const written = node === null ? null : plain(node);
  if (FOREIGN_CACHES.some((type) => type === written)) {
    reading.warnings.push(
      problemAt(
        reading,
        path,
        `must be redis or memory; "${String(written)}" is not supported, the cache uses memory`,
      ),
    );
  }
  const wanted = cache.supported_call_types ?? ["acompletion", "aembedding"];
  const callTypes = wanted.flatMap((type) => CALL_TYPES.get(type) ?? []);
  return {
    enabled: proxy.cache ?? false,
    kind: cache.type !== "memory" && redis !== null ? "redis" : "memory",
    ttlMs: cache.ttl ?? 600_000,
    namespace: cache.namespace ?? "proxy.cache",
    callTypes: [...new Set(callTypes)],
    mode: cache.mode ?? "default_on",
    scope: cache.scope ?? "tenant",
  };
}
