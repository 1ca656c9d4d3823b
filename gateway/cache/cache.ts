import type { Redis } from "ioredis";
import { KnownKeys } from "./known-keys.ts";
import type { MemoryCache } from "./memory.ts";

/** Stores cached answers. */
export interface ResponseCache {
  readonly kind: "memory" | "redis";
  /** Whether this process has read or stored the key lately; if not, the answer is most likely not there. */
  isKnown(key: string): boolean;
  /** null: not found, or the cache is away. */
  read(key: string): Promise<Buffer | null>;
  /** Several answers at once, null where not found; none while the cache is away. */
  readMany(keys: readonly string[]): Promise<readonly (Buffer | null)[]>;
  /** Never awaited by a call: a cache that is away loses an entry, not an answer. */
  store(key: string, value: Buffer, ttlMs: number | null): void;
  count(hit: boolean): void;
  readonly hits: number;
  readonly misses: number;
  /** Writes and reads a test entry; throws if that fails. */
  ping(): Promise<void>;
  /** INFO of the Redis server; null where answers are in this process. Throws while it is away. */
  serverInfo(): Promise<Readonly<Record<string, string>> | null>;
  /** Returns how many of the entries existed. */
  remove(keys: readonly string[]): Promise<number>;
  /** Deletes everything under the cache's own prefix; returns how many entries were deleted. */
  flush(): Promise<number>;
}

interface CacheOptions {
  readonly namespace: string;
  readonly ttlMs: number;
}

function createCounters() {
  let hits = 0;
  let misses = 0;
  return {
    count(hit: boolean) {
      if (hit) {
        hits++;
      } else {
        misses++;
      }
    },
    get hits() {
      return hits;
    },
    get misses() {
      return misses;
    },
  };
}

export function createMemoryResponseCache(
  memory: MemoryCache,
  { namespace, ttlMs }: CacheOptions,
): ResponseCache {
  return Object.assign(createCounters(), {
    kind: "memory" as const,
    isKnown: () => true,
    read: async (key: string) => memory.get(key),
    readMany: async (keys: readonly string[]) =>
      keys.map((key) => memory.get(key)),
    store: (key: string, value: Buffer, ownTtlMs: number | null) =>
      memory.set(key, value, ownTtlMs ?? ttlMs),
    async ping() {
      memory.set(`${namespace}:ping`, Buffer.from("ping"), ttlMs);
      memory.remove(`${namespace}:ping`);
    },
    serverInfo: async () => null,
    remove: async (keys: readonly string[]) =>
      keys.filter((key) => memory.remove(key)).length,
    flush: async () => memory.clear(),
  });
}

const SCAN_COUNT = 500;

export function createRedisResponseCache(
  redis: Redis,
  { namespace, ttlMs }: CacheOptions,
): ResponseCache {
  /** After a deadline the connection is reopened: until then, reads fail at once and no other call waits. */
  function missed(error: unknown): null {
    const late = (error as Error).message === "Command timed out";
    if (late && redis.status === "ready") {
      redis.disconnect(true);
    }
    return null;
  }

  const known = new KnownKeys();
  return Object.assign(createCounters(), {
    kind: "redis" as const,
    isKnown: (key: string) => known.has(key),
    read(key: string) {
      known.add(key);
      return redis.getBuffer(key).catch(missed);
    },
    readMany: (keys: readonly string[]) =>
      redis.mgetBuffer(...keys).catch((error: unknown) => {
        missed(error);
        return keys.map(() => null);
      }),
    store(key: string, value: Buffer, ownTtlMs: number | null) {
      known.add(key);
      redis.set(key, value, "PX", ownTtlMs ?? ttlMs).catch(() => undefined);
    },
    async ping() {
      const key = `${namespace}:ping`;
      await redis.set(key, "ping", "PX", 1_000);
      if ((await redis.get(key)) !== "ping") {
        throw new Error("Redis did not return the written value");
      }
    },
    serverInfo: async () => parseInfo(await redis.info()),
    async remove(keys: readonly string[]) {
      return keys.length === 0 ? 0 : redis.unlink(...keys);
    },
    flush: () => unlinkAll(redis, `${namespace}:*`),
  });
}

/** The fields of an answer of INFO. */
function parseInfo(info: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    info
      .split("\r\n")
      .filter((line) => line.includes(":"))
      .map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon), line.slice(colon + 1)];
      }),
  );
}

/** Deletes the keys that match a pattern; answers how many. */
async function unlinkAll(redis: Redis, pattern: string): Promise<number> {
  let removed = 0;
  let cursor = "0";
  do {
    const [next, keys] = await redis.scan(
      cursor,
      "MATCH",
      pattern,
      "COUNT",
      SCAN_COUNT,
    );
    cursor = next;
    if (keys.length > 0) {
      removed += await redis.unlink(...keys);
    }
  } while (cursor !== "0");
  return removed;
}
