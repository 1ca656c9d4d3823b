import type { FastifyReply, FastifyRequest } from "fastify";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { z } from "zod";
import { auditDone } from "../../admin/audit.ts";
import { adminFor } from "../../admin/route.ts";
import { validateBody } from "../../calls/validate.ts";
import type { Gateway } from "../../gateway.ts";
import { CallError } from "../errors.ts";

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
  authorizeRoute(callerOf(request), "GET /cache/ping");
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

/** GET /cache/redis/info (admin): Redis's own account of itself. */
export async function redisInfo(gateway: Gateway, request: FastifyRequest) {
  authorizeRoute(callerOf(request), "GET /cache/redis/info");
  const { cache } = gateway;
  const info = await cache.serverInfo().catch(() => {
    throw new CallError(
      "cache_unavailable",
      "Redis does not answer now. Calls go on without the cache; try again in a moment.",
      { headers: { "retry-after": "2" } },
    );
  });
  if (info === null) {
    throw new CallError(
      "invalid_request",
      "The cache is in this process, there is no Redis: set REDIS_HOST and restart, or look at /cache/ping.",
    );
  }
  return {
    cache_type: cache.kind,
    num_clients: Number(info["connected_clients"] ?? 0),
    info,
  };
}

export const deleteBody = z.object({
  keys: z.array(z.string()).min(1).max(1_000),
});

/** POST /cache/delete (admin): the named entries (`x-hearth-cache-key`). */
export async function deleteFromCache(
  gateway: Gateway,
  request: FastifyRequest,
) {
  authorizeRoute(callerOf(request), "POST /cache/delete");
  const { keys } = validateBody(deleteBody, request.body);
  const own = keys.filter((key) =>
    key.startsWith(`${gateway.config.cache.namespace}:`),
  );
  return { deleted: await gateway.cache.remove(own) };
}

/** POST /cache/flushall (admin): everything under the cache's own prefix, nothing else. */
export async function flushCache(gateway: Gateway, request: FastifyRequest) {
  const admin = await adminFor(gateway, request, "POST /cache/flushall");
  const done = { deleted: await gateway.cache.flush() };
  const { namespace } = gateway.config.cache;
  await auditDone(admin, "flushed", "cache", namespace, done);
  return done;
}
