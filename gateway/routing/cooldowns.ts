import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { RouterConfig } from "../config/types.ts";

/** Why a deployment rests, and until when (ms since the epoch). */
export interface Cooling {
  readonly until: number;
  readonly reason: string;
}

export interface Cooldowns {
  cooling(deploymentId: string): Cooling | null;
  /** A failure that counts. `alone`: no other deployment could take the call. */
  failed(deploymentId: string, failure: CountedFailure): void;
  stop(): void;
}

export interface CountedFailure {
  readonly status: number;
  readonly reason: string;
  readonly retryAfterMs: number | null;
  readonly alone: boolean;
}

export interface CooldownOptions {
  readonly router: () => Pick<RouterConfig, "allowedFails" | "cooldownMs">;
  /** Shares cooldowns with the other instances. */
  readonly redis: Redis | null;
  readonly log: Logger;
  readonly onRest: (deploymentId: string) => void;
  readonly now?: () => number;
}

/** One hash without expiry: what is over is taken out by whoever reads it. */
const SHARED = "hearth:cooldowns";
const SHARE_EVERY_MS = 500;
const COUNT_OVER_MS = 60_000;

/**
 * Deployments that failed too often rest for `cooldown_time`, or as long as the provider asks; a 429 does so at once
 * where others can take the calls. Instances tell each other through Redis within half a second.
 */
export function createCooldowns(options: CooldownOptions): Cooldowns {
  const { router, redis, log, now = Date.now } = options;
  const resting = new Map<string, Cooling>();
  const failures = new Map<string, { since: number; count: number }>();
  const timer =
    redis === null
      ? undefined
      : setInterval(() => {
          // While Redis is away each instance knows its own.
          readShared(redis).catch(() => undefined);
        }, SHARE_EVERY_MS);
  timer?.unref();

  function rest(id: string, cooling: Cooling): void {
    resting.set(id, cooling);
    failures.delete(id);
    options.onRest(id);
    log.warn(
      {
        deployment: id,
        reason: cooling.reason,
        until: new Date(cooling.until).toISOString(),
      },
      "a deployment rests",
    );
    redis?.hset(SHARED, id, JSON.stringify(cooling)).catch(() => undefined);
  }

  async function readShared(from: Redis): Promise<void> {
    const shared = await from.hgetall(SHARED);
    for (const [id, text] of Object.entries(shared)) {
      const cooling = parseCooling(text);
      if (cooling !== null && cooling.until > now()) resting.set(id, cooling);
      else await from.hdel(SHARED, id);
    }
  }

  return {
    cooling(id) {
      const cooling = resting.get(id);
      if (cooling === undefined) return null;
      if (cooling.until > now()) return cooling;
      resting.delete(id);
      return null;
    },
    failed(id, { status, reason, retryAfterMs, alone }) {
      const at = now();
      const counted = failures.get(id);
      const recent =
        counted !== undefined && at - counted.since < COUNT_OVER_MS
          ? counted
          : { since: at, count: 0 };
      recent.count++;
      failures.set(id, recent);
      const limited = status === 429 && !alone;
      if (limited || recent.count > router().allowedFails)
        rest(id, { until: at + (retryAfterMs ?? router().cooldownMs), reason });
    },
    stop: () => clearInterval(timer),
  };
}

/** null for a text that is not ours. */
function parseCooling(text: unknown): Cooling | null {
  if (typeof text !== "string") return null;
  try {
    const parsed = JSON.parse(text) as Partial<Cooling> | null;
    return typeof parsed?.until === "number"
      ? { until: parsed.until, reason: String(parsed.reason) }
      : null;
  } catch {
    return null;
  }
}
