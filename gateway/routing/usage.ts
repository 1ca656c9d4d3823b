import type { Redis } from "ioredis";
import { MINUTE_MS } from "../../core/duration.ts";

/** A deployment with the limits of its backend; null: none. */
interface Limited {
  readonly id: string;
  readonly rpm: number | null;
  readonly tpm: number | null;
}

/** The estimated usage that a call was counted with. */
export interface Taken {
  readonly id: string;
  readonly minute: number;
  readonly tokens: number;
}

/** Tokens and requests of this minute, by deployment, over all instances. */
export interface DeploymentUsage {
  /**
   * The candidate with the fewest tokens used this minute (or, `inOrder`, the first) among those whose limits allow the call,
   * which is counted; null when there is none. A limit of tokens allows any call while it has counted none: an estimate above the
   * whole limit would keep out every call, and only the provider knows whether it accepts one of that size.
   */
  take(
    candidates: readonly Limited[],
    tokens: number,
    inOrder: boolean,
  ): Promise<Taken | null>;
  /** Replaces the estimated tokens of a call. */
  correct(taken: Taken, tokens: number): void;
  /** Takes back a call that was not sent. */
  giveBack(taken: Taken): void;
}

export function createMemoryUsage(
  now: () => number = Date.now,
): DeploymentUsage {
  const minutes = new Map<
    string,
    { minute: number; tokens: number; requests: number }
  >();

  function usageOf(id: string, minute: number) {
    const known = minutes.get(id);
    if (known?.minute === minute) {
      return known;
    }
    const fresh = { minute, tokens: 0, requests: 0 };
    minutes.set(id, fresh);
    return fresh;
  }

  function add({ id, minute }: Taken, tokens: number, requests: number): void {
    const used = minutes.get(id);
    if (used?.minute === minute) {
      used.tokens += tokens;
      used.requests += requests;
    }
  }

  return {
    async take(candidates, tokens, inOrder) {
      const minute = Math.floor(now() / MINUTE_MS);
      let best: { id: string; used: number } | null = null;
      for (const { id, rpm, tpm } of candidates) {
        const used = usageOf(id, minute);
        if (
          (rpm !== null && used.requests >= rpm) ||
          (tpm !== null && used.tokens > 0 && used.tokens + tokens > tpm)
        ) {
          continue;
        }
        if (best === null || (!inOrder && used.tokens < best.used)) {
          best = { id, used: used.tokens };
        }
      }
      if (best === null) {
        return null;
      }
      const used = usageOf(best.id, minute);
      used.tokens += tokens;
      used.requests++;
      return { id: best.id, minute, tokens };
    },
    correct: (taken, tokens) => add(taken, tokens - taken.tokens, 0),
    giveBack: (taken) => add(taken, -taken.tokens, -1),
  };
}

// KEYS: none (one Redis, no cluster). ARGV: prefix, tokens, in order (1 or 0), then id, rpm, tpm ('' for none) of each.
// A deployment's hash is overwritten when the minute changes, so nothing needs to expire.
const TAKE = `
local minute = math.floor(tonumber(redis.call('TIME')[1]) / 60)
local prefix, tokens, inOrder = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local best, least
for a = 4, #ARGV, 3 do
  local rpm, tpm = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  local used = redis.call('HMGET', prefix .. ARGV[a], 'minute', 'tokens', 'requests')
  local t, r = 0, 0
  if tonumber(used[1]) == minute then t, r = tonumber(used[2]), tonumber(used[3]) end
  if not (rpm and r >= rpm) and not (tpm and t > 0 and t + tokens > tpm) then
    if not best or (not inOrder and t < least.tokens) then
      best, least = ARGV[a], { tokens = t, requests = r }
    end
  end
end
if not best then return false end
redis.call('HSET', prefix .. best, 'minute', minute, 'tokens', least.tokens + tokens, 'requests', least.requests + 1)
return { best, minute }`;

// ARGV: key, minute, differences of tokens and requests.
const ADD = `
if redis.call('HGET', ARGV[1], 'minute') == ARGV[2] then
  redis.call('HINCRBY', ARGV[1], 'tokens', ARGV[3])
  redis.call('HINCRBY', ARGV[1], 'requests', ARGV[4])
end`;

const PREFIX = "hearth:routing:";

/** Counts in Redis; while it is unavailable each instance counts for itself. */
export function createRedisUsage(redis: Redis): DeploymentUsage {
  const own = createMemoryUsage();
  const ours = new WeakSet<Taken>();
  function add({ id, minute }: Taken, tokens: number, requests: number): void {
    redis
      .eval(ADD, 0, PREFIX + id, minute, Math.round(tokens), requests)
      .catch(() => undefined);
  }
  return {
    async take(candidates, tokens, inOrder) {
      const args = candidates.flatMap(({ id, rpm, tpm }) => [
        id,
        rpm ?? "",
        tpm ?? "",
      ]);
      try {
        const answer = (await redis.eval(
          TAKE,
          0,
          PREFIX,
          Math.ceil(tokens),
          inOrder ? 1 : 0,
          ...args,
        )) as [string, number] | null;
        return answer === null
          ? null
          : { id: answer[0], minute: answer[1], tokens };
      } catch {
        const taken = await own.take(candidates, tokens, inOrder);
        if (taken !== null) {
          ours.add(taken);
        }
        return taken;
      }
    },
    correct(taken, tokens) {
      if (ours.has(taken)) {
        own.correct(taken, tokens);
      } else {
        add(taken, tokens - taken.tokens, 0);
      }
    },
    giveBack(taken) {
      if (ours.has(taken)) {
        own.giveBack(taken);
      } else {
        add(taken, -taken.tokens, -1);
      }
    },
  };
}
