import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { adminFor } from "../../admin/admin-route.ts";
import { auditDone } from "../../admin/audit.ts";
import { out } from "../../admin/kinds/out.ts";
import { validateBody } from "../../calls/validate.ts";
import { ofEveryWorker } from "../../workers/answers.ts";
import { CallError } from "../errors.ts";
import { NO_INPUT, route } from "../route.ts";

/** GET /cache/ping */
export const pingCache = route(
  "GET /cache/ping",
  {
    summary:
      "Check the response cache by writing and reading an entry; with its hit rate since the start.",
    input: NO_INPUT,
    answer: z.object({
      status: z.enum(["healthy", "unhealthy"]),
      cache_type: z.enum(["redis", "memory"]),
      ping_response: z.boolean(),
      set_cache_response: z.enum(["success", "failure"]),
      hits: out.count,
      misses: out.count,
      hit_rate: z.number(),
    }),
  },
  async (gateway, request, reply) => {
    authorizeRoute(callerOf(request), "GET /cache/ping");
    const { cache } = gateway;
    const works = await cache.ping().then(
      () => true,
      () => false,
    );
    reply.code(works ? 200 : 503);
    const counts = await ofEveryWorker(gateway, "cache");
    const hits = counts.reduce((sum, one) => sum + one.hits, 0);
    const misses = counts.reduce((sum, one) => sum + one.misses, 0);
    const lookups = hits + misses;
    return {
      status: works ? "healthy" : "unhealthy",
      cache_type: cache.kind,
      ping_response: works,
      set_cache_response: works ? "success" : "failure",
      hits,
      misses,
      hit_rate: lookups === 0 ? 0 : hits / lookups,
    };
  },
);

/** GET /cache/redis/info */
export const redisInfo = route(
  "GET /cache/redis/info",
  {
    summary: "Get the information of the Redis server of the response cache.",
    input: NO_INPUT,
    answer: z.object({
      cache_type: z.literal("redis"),
      num_clients: out.count,
      info: z.record(z.string(), z.string()),
    }),
  },
  async (gateway, request) => {
    authorizeRoute(callerOf(request), "GET /cache/redis/info");
    const { cache } = gateway;
    const info = await cache.serverInfo().catch(() => {
      throw new CallError(
        "cache_unavailable",
        "Redis is unavailable. Calls continue without the cache; try again in a moment.",
        { headers: { "retry-after": "2" } },
      );
    });
    if (info === null) {
      throw new CallError(
        "invalid_request",
        "The response cache is in the memory of this process, not in Redis. Set REDIS_HOST and restart, or use /cache/ping.",
      );
    }
    return {
      cache_type: cache.kind,
      num_clients: Number(info["connected_clients"] ?? 0),
      info,
    };
  },
);

const deleteBody = z.object({
  keys: z.array(z.string()).min(1).max(1_000),
});

/** POST /cache/delete */
export const deleteFromCache = route(
  "POST /cache/delete",
  {
    summary:
      "Delete entries of the response cache by their x-hearth-cache-key.",
    input: deleteBody,
    answer: z.object({ deleted: out.count }),
  },
  async (gateway, request) => {
    authorizeRoute(callerOf(request), "POST /cache/delete");
    const { keys } = validateBody(deleteBody, request.body);
    const own = keys.filter((key) =>
      key.startsWith(`${gateway.config.cache.namespace}:`),
    );
    return { deleted: await gateway.cache.remove(own) };
  },
);

/** POST /cache/flushall: deletes only keys under the cache's own prefix. */
export const flushCache = route(
  "POST /cache/flushall",
  {
    summary: "Empty the response cache; other data in Redis is kept.",
    input: NO_INPUT,
    answer: z.object({ deleted: out.count }),
  },
  async (gateway, request) => {
    const admin = await adminFor(gateway, request, "POST /cache/flushall");
    const done = { deleted: await gateway.cache.flush() };
    const { namespace } = gateway.config.cache;
    await auditDone(admin, {
      action: "flushed",
      objectType: "cache",
      objectId: namespace,
      after: done,
    });
    return done;
  },
);
