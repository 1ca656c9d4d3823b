import type { Redis } from "ioredis";

/** Redis serves no other client during a script: one gets a few hundred keys. */
const AT_ONCE = 500;

/** The keys of all entities, in pieces; at least one, which may be empty. */
export async function* entityKeys(
  redis: Redis,
  prefix: string,
): AsyncGenerator<readonly string[]> {
  let cursor = "0";
  do {
    const [next, keys] = await redis.scan(
      cursor,
      "MATCH",
      `${globbed(prefix)}entity:*`,
      "COUNT",
      AT_ONCE,
    );
    yield keys;
    cursor = next;
  } while (cursor !== "0");
}

/** A prefix as a pattern that matches only itself. */
function globbed(prefix: string): string {
  return prefix.replace(/[[\]*?\\]/g, "\\$&");
}
