import type { FastifyReply, FastifyRequest } from "fastify";
import { authenticate, requireMaster } from "../access/authenticate.ts";
import type { Gateway } from "../gateway.ts";

interface CachePing {
  readonly status: "healthy" | "unhealthy";
  readonly cache_type: "redis" | "memory";
  readonly ping_response: boolean;
  readonly set_cache_response: "success" | "failure";
  readonly hits: number;
  readonly misses: number;
  /** 0 to 1; 0 before the first call. */
  readonly hit_rate: number;
}

/** GET /cache/ping (admin): writes and reads an entry, and tells the hit rate since the gateway started. */
export async function pingCache(
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<CachePing> {
  requireMaster(
    await authenticate(gateway, request.headers),
    "read the cache's state",
  );
  const { cache } = gateway;
  const works = await cache.ping().then(
    () => true,
    () => false,
  );
  reply.code(works ? 200 : 503);
  const looked = cache.hits + cache.misses;
  return {
    status: works ? "healthy" : "unhealthy",
    cache_type: cache.kind,
    ping_response: works,
    set_cache_response: works ? "success" : "failure",
    hits: cache.hits,
    misses: cache.misses,
    hit_rate: looked === 0 ? 0 : cache.hits / looked,
  };
}
