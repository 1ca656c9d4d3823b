import type { Redis } from "ioredis";
import type { Limits } from "./limits.ts";
import { createMemoryLimits } from "./memory-limits.ts";
import { RedisLimits } from "./redis-limits.ts";

interface LimitsOptions {
  /** Without it the limits are kept in this process only. */
  readonly redis?: Redis;
  /**
   * Name of this instance, the same after a restart: its pending spend is stored under it. Two processes must never
   * run under one name at a time; the lock of the journal guards the name.
   */
  readonly instance: string;
  /** Reject calls while Redis is away instead of serving them with a share of each limit. */
  readonly failClosed?: boolean;
  /** Of all keys in Redis that hold limits. */
  readonly prefix?: string;
  /**
   * At least this many instances share the limits while Redis is away; more if more were alive. A function
   * is called each time: instances started during an outage discover peers through Postgres.
   */
  readonly minInstances?: number | (() => number);
  /** Calls in the journal of this instance that are not in the ledger; the list of instances shows them. */
  readonly undrained?: () => number;
  /** Maximum wait for an answer of Redis. */
  readonly deadlineMs?: number;
  /** Heartbeat; a flushed Redis is noticed as fast. */
  readonly beatMs?: number;
  /** Maximum time that calls wait until all instances have set their parts again. */
  readonly rebuildMs?: number;
  /** An instance that finds no generation and knows no peers waits this long for others to join. */
  readonly discoverMs?: number;
  /** A test's clock, in ms; default: that of Redis, or a monotonic one without Redis. */
  readonly now?: () => number;
  /** Once for each outage, with its reason. */
  readonly onAway?: (reason: string) => void;
  readonly onBack?: () => void;
}

/** The limits of this gateway: in Redis if configured, with a share in process while it is away; else in process. */
export function createLimits(options: LimitsOptions): Limits {
  const { redis, instance, minInstances: leastInstances = 1 } = options;
  if (redis === undefined) {
    return createMemoryLimits(options);
  }
  return new RedisLimits({
    redis,
    instance,
    failClosed: options.failClosed ?? false,
    prefix: options.prefix ?? "hearth:limits:",
    now: options.now ?? null,
    leastInstances:
      typeof leastInstances === "number"
        ? () => leastInstances
        : leastInstances,
    undrained: options.undrained ?? (() => 0),
    deadlineMs: options.deadlineMs ?? 1_000,
    beatMs: options.beatMs ?? 200,
    rebuildMs: options.rebuildMs ?? 1_000,
    discoverMs: options.discoverMs ?? 300,
    onAway: options.onAway ?? (() => undefined),
    onBack: options.onBack ?? (() => undefined),
  });
}
