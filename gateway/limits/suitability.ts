import type { Redis } from "ioredis";
import { CLUSTER_REJECTED, isCluster } from "../../core/redis/advice.ts";

/** Limit data has no expiry: a policy that evicts only keys with one keeps it. */
const KEEPS_LIMITS = /^(noeviction|volatile-)/;
const FIRST_ANSWER_MS = 2_000;
const CLUSTER_AGAIN_MS = 10_000;

/**
 * The problem of a Redis that cannot keep limits: a cluster, or one that may evict limit data, which would release leases and
 * lose spend; null: none, or Redis is unavailable. `onLater` receives a problem found at a later connection; a cluster is then
 * disconnected from, and tried again.
 */
export async function findUnsuitable(
  redis: Redis,
  onLater: (problem: string) => void,
): Promise<string | null> {
  const problem = (await isConnected(redis)) ? await problemOf(redis) : null;
  redis.on("ready", () => {
    void problemOf(redis).then((later) => {
      if (later !== null) {
        onLater(later);
      }
      if (later === CLUSTER_REJECTED) {
        redis.disconnect();
        setTimeout(() => {
          redis.connect().catch(() => undefined);
        }, CLUSTER_AGAIN_MS).unref();
      }
    });
  });
  return problem;
}

/** False when the first attempt fails or takes long. */
function isConnected(redis: Redis): Promise<boolean> {
  if (redis.status === "ready") {
    return Promise.resolve(true);
  }
  return new Promise((resolve) => {
    const timer = setTimeout(end, FIRST_ANSWER_MS);
    redis.once("ready", end);
    redis.once("close", end);
    function end(): void {
      clearTimeout(timer);
      redis.off("ready", end);
      redis.off("close", end);
      resolve(redis.status === "ready");
    }
  });
}

/** null also where Redis does not allow INFO. */
async function problemOf(redis: Redis): Promise<string | null> {
  const [memory, cluster] = await Promise.all(
    ["memory", "cluster"].map((section) => redis.info(section).catch(() => "")),
  );
  if (isCluster(cluster ?? "")) {
    return CLUSTER_REJECTED;
  }
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory ?? "")?.[1];
  if (policy === undefined || KEEPS_LIMITS.test(policy)) {
    return null;
  }
  return `Redis evicts any key when its memory is full (maxmemory-policy ${policy}), limits and spend included: set maxmemory-policy to volatile-lru or noeviction.`;
}
