import type { Parts } from "./parts.ts";
import { FOREIGN_CACHES } from "./schema.ts";
import { problemAt, type Reading } from "../../core/config/reading.ts";
import { locate, plain } from "../../core/config/tree.ts";
import type { CacheConfig, CachedCallType, RedisConfig } from "./types.ts";

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
