import type { Redis } from "ioredis";

/** Limit data has no expiry: a policy that evicts only keys with one keeps it. */
const KEEPS_LIMITS = /^(noeviction|volatile-)/;
const FIRST_ANSWER_MS = 2_000;

/**
 * The problem when Redis may evict limit data, which would release leases and lose spend; null: none, or Redis is
 * unavailable. `onLater` receives a problem found at a later connection.
 */
export async function findEviction(
  redis: Redis,
  onLater: (problem: string) => void,
): Promise<string | null> {
  const problem = (await isConnected(redis)) ? await evictionOf(redis) : null;
  redis.on("ready", () => {
    void evictionOf(redis).then((later) => {
      if (later !== null) {
        onLater(later);
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
async function evictionOf(redis: Redis): Promise<string | null> {
  const info = await redis.info("memory").catch(() => "");
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
  if (policy === undefined || KEEPS_LIMITS.test(policy)) {
    return null;
  }
  return `Redis evicts any key when its memory is full (maxmemory-policy ${policy}), limits and spend included: set maxmemory-policy to volatile-lru or noeviction.`;
}
