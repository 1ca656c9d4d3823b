import { hash, randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { resolveWithin } from "../../core/resolve-within.ts";

export interface SlotLease {
  release(): void;
}

/** Slots that several gateways share. */
export interface SlotLeases {
  /** null: all `limit` slots are held. Never fails. */
  take(key: string, limit: number): Promise<SlotLease | null>;
  stop(): void;
}

/** ARGV: key, limit, lease, its lifetime in ms. Answers 1, or 0 if all slots are held. */
const TAKE = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', ARGV[1], '-inf', now)
if redis.call('ZCARD', ARGV[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', ARGV[1], now + tonumber(ARGV[4]), ARGV[3])
redis.call('PEXPIRE', ARGV[1], ARGV[4])
return 1`;

/** ARGV: lifetime in ms, then key and lease of each. A lease that was lost is held again: its call is running. */
const RENEW = `
local time = redis.call('TIME')
local expiry = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
for a = 2, #ARGV, 2 do
  redis.call('ZADD', ARGV[a], expiry, ARGV[a + 1])
  redis.call('PEXPIRE', ARGV[a], ARGV[1])
end`;

const PREFIX = "hearth:slots:";
/** The slots of a gateway that was killed are free again after this time. */
const LEASE_MS = 15_000;
const RENEW_EVERY_MS = 5_000;
/** A call waits no longer for Redis. */
const DEADLINE_MS = 1_000;

/** Leases in Redis; while it is away each gateway counts for itself. */
export class RedisSlotLeases implements SlotLeases {
  readonly #redis: Redis;
  /** Keys by lease. */
  readonly #held = new Map<string, string>();
  readonly #timer: NodeJS.Timeout;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#timer = setInterval(() => this.#renew(), RENEW_EVERY_MS).unref();
  }

  async take(key: string, limit: number): Promise<SlotLease | null> {
    const name = nameOf(key);
    const lease = randomUUID();
    const asked = this.#redis
      .eval(TAKE, 0, name, limit, lease, LEASE_MS)
      .catch(() => null);
    const answer = await resolveWithin(asked, DEADLINE_MS);
    if (answer === 0) {
      return null;
    }
    // Without an answer the call goes ahead; its lease counts from the next renewal on.
    this.#held.set(lease, name);
    return { release: () => this.#release(lease, name) };
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #release(lease: string, name: string): void {
    this.#held.delete(lease);
    // One that cannot be removed expires.
    this.#redis.zrem(name, lease).catch(() => undefined);
  }

  #renew(): void {
    if (this.#held.size === 0) {
      return;
    }
    const args = [...this.#held].flatMap(([lease, name]) => [name, lease]);
    this.#redis.eval(RENEW, 0, LEASE_MS, ...args).catch(() => undefined);
  }
}

/** An address may contain a password. */
function nameOf(key: string): string {
  return PREFIX + hash("sha256", key).slice(0, 32);
}
