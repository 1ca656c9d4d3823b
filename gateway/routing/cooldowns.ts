import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { DAY_MS, MINUTE_MS } from "../../core/duration.ts";
import type { RouterConfig } from "../config/types.ts";
import type { ModelGroup, PricedDeployment } from "./catalog.ts";
import {
  createRecentCalls,
  type RecentCallCounts,
  type RecentCalls,
} from "./recent-calls.ts";

/** Why a deployment is cooling down, and until when (ms since the epoch). */
interface Cooling {
  readonly until: number;
  /** For how long at most, in ms. */
  readonly lengthMs: number;
  readonly reason: string;
  /** The provider has asked not to be called until then. */
  readonly requested: boolean;
}

export interface CooldownState extends RecentCalls {
  readonly cooling: Cooling | null;
}

/** What a call counts as at a deployment: a failure counts in place of an answer before it. */
export type CountedAs = "answer" | "failure";

export interface CountedFailure {
  readonly status: number;
  readonly reason: string;
  readonly retryAfterMs: number | null;
  /** The alias has no other deployment. */
  readonly alone: boolean;
  /** A fallback could take the call. */
  readonly hasFallback: boolean;
  /** What the same call was counted as at this deployment before; null: it was not. */
  readonly countedBefore: CountedAs | null;
}

interface CooldownOptions {
  readonly router: () => Pick<
    RouterConfig,
    | "allowedFails"
    | "cooldownMs"
    | "cooldownFailureRatio"
    | "cooldownMinimumCalls"
  >;
  /** Shares cooldowns with the other instances. */
  readonly redis: Redis | null;
  readonly log: Logger;
  /** `status`: of the failure that started it. */
  readonly onCooldown: (deploymentId: string, status: number) => void;
  readonly now?: () => number;
}

/** One hash without expiry: readers remove expired entries. Its times are those of Redis, because hosts' clocks differ. */
const SHARED = "hearth:cooldowns";
const SHARE_EVERY_MS = 500;
/** A clock is corrected by less, unless it was wrong. */
const MAX_CORRECTION_MS = MINUTE_MS;
/** Providers' quotas start again after a month at the latest. */
export const MAX_COOLDOWN_MS = 31 * DAY_MS;
/** Calls name the models of wildcards. */
const MAX_COOLDOWNS = 10_000;

/** ARGV: hash, name, value. A cooldown that another instance has started since it was read stays. */
const REMOVE = `
if redis.call('HGET', ARGV[1], ARGV[2]) == ARGV[3] then redis.call('HDEL', ARGV[1], ARGV[2]) end`;
/** Never part of an id: names cannot contain NUL. */
const BEFORE_MODEL = "\0";

/** The name of a deployment's cooldown: the models of a wildcard cool down separately. */
export function cooldownId(
  { alias, configured }: ModelGroup,
  { id, model }: PricedDeployment,
): string {
  return alias === configured ? id : id + BEFORE_MODEL + model;
}

function deploymentOf(id: string): string {
  return id.split(BEFORE_MODEL, 1)[0] ?? id;
}

/**
 * Cooldowns by the names that {@link cooldownId} gives. A deployment cools down for `cooldown_time`, or as long as its
 * provider asks, when it failed too often and with too large a share of the minute's calls, and at once for a 429. The
 * only deployment of an alias cools down for a 429 only if that says for how long, and for failing too often only if calls
 * could go to a fallback. None is longer than 31 days. Instances share cooldowns through Redis within half a second.
 */
export class Cooldowns {
  readonly #options: CooldownOptions;
  readonly #now: () => number;
  readonly #recent: RecentCallCounts;
  readonly #coolingDown = new Map<string, Cooling>();
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(options: CooldownOptions) {
    const { redis, now = Date.now } = options;
    this.#options = options;
    this.#now = now;
    this.#recent = createRecentCalls(now);
    if (redis !== null) {
      this.#timer = setInterval(() => {
        // While Redis is unavailable each instance has only its own cooldowns.
        this.#readShared(redis).catch(() => undefined);
      }, SHARE_EVERY_MS).unref();
    }
  }

  /** Whether a deployment may be cooling down. */
  any(): boolean {
    return this.#coolingDown.size > 0;
  }

  cooling(id: string): Cooling | null {
    const found = this.#coolingDown.get(id);
    if (found === undefined) {
      return null;
    }
    if (isRunning(found, this.#now())) {
      return found;
    }
    this.#coolingDown.delete(id);
    return null;
  }

  /** A call that does not count against the deployment. */
  answered(id: string): void {
    this.#recent.of(id).calls++;
  }

  /** A failed attempt that counts against the deployment. */
  failed(id: string, failure: CountedFailure): void {
    const { reason, retryAfterMs, alone, hasFallback, countedBefore } = failure;
    const { cooldownMs } = this.#options.router();
    const counts = this.#recent.of(id);
    if (countedBefore === null) {
      counts.calls++;
    }
    if (countedBefore !== "failure") {
      counts.failures++;
      // The answer may have been counted in an earlier minute.
      counts.calls = Math.max(counts.calls, counts.failures);
    }
    const isRateLimited = failure.status === 429;
    const requested = isRateLimited && retryAfterMs !== null;
    const coolsDown =
      (alone ? requested : isRateLimited) ||
      ((!alone || hasFallback) && this.#hasFailedTooOften(id, counts));
    if (coolsDown) {
      const lengthMs = Math.min(retryAfterMs ?? cooldownMs, MAX_COOLDOWN_MS);
      const until = this.#now() + lengthMs;
      const cooling = { until, lengthMs, reason, requested };
      this.#coolDown(id, cooling, failure.status);
    }
  }

  /** A call that could not be sent because of the cooldown. */
  rejected(id: string): void {
    this.#recent.of(id).rejections++;
  }

  /** A deployment's cooldown, the latest of its models, and its calls of the current minute on this instance. */
  stateOf(deploymentId: string): CooldownState {
    const own = (id: string) => deploymentOf(id) === deploymentId;
    const [latest = null] = [...this.#coolingDown.keys()]
      .filter(own)
      .map((id) => this.cooling(id))
      .filter((found) => found !== null)
      .sort((a, b) => b.until - a.until);
    return { cooling: latest, ...this.#recent.sumOf(own) };
  }

  /** Deployments, or models of wildcards, with calls in the current minute. */
  observed(): number {
    return this.#recent.size();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #hasFailedTooOften(id: string, { calls, failures }: RecentCalls): boolean {
    const { allowedFails, cooldownMinimumCalls, cooldownFailureRatio } =
      this.#options.router();
    return (
      this.cooling(id) === null &&
      failures > allowedFails &&
      calls >= cooldownMinimumCalls &&
      failures >= calls * cooldownFailureRatio
    );
  }

  #coolDown(id: string, cooling: Cooling, status: number): void {
    const { redis, log, onCooldown } = this.#options;
    if (!this.#extend(id, cooling)) {
      return;
    }
    const [deployment, model] = id.split(BEFORE_MODEL);
    onCooldown(deploymentOf(id), status);
    log.warn(
      {
        deployment,
        model,
        reason: cooling.reason,
        until: new Date(cooling.until).toISOString(),
      },
      "a deployment is cooling down",
    );
    if (redis !== null) {
      this.#share(redis, id, cooling).catch(() => undefined);
    }
  }

  async #share(redis: Redis, id: string, cooling: Cooling): Promise<void> {
    const redisNow = await timeOf(redis);
    const until = redisNow + cooling.until - this.#now();
    await redis.hset(SHARED, id, JSON.stringify({ ...cooling, until }));
  }

  async #readShared(redis: Redis): Promise<void> {
    // Taken before Redis' time: a slow answer then prolongs no cooldown.
    const now = this.#now();
    const [redisNow, shared] = await Promise.all([
      timeOf(redis),
      redis.hgetall(SHARED),
    ]);
    for (const [id, text] of Object.entries(shared)) {
      const cooling = parseCooling(text);
      if (cooling !== null && isRunning(cooling, redisNow)) {
        this.#extend(id, { ...cooling, until: now + cooling.until - redisNow });
      } else {
        await redis.eval(REMOVE, 0, SHARED, id, text);
      }
    }
  }

  /** Whether a cooldown ends later than the one that is known: a shorter one does not end it. */
  #extend(id: string, cooling: Cooling): boolean {
    const known = this.cooling(id);
    if (
      cooling.until <= (known?.until ?? 0) ||
      (known === null && this.#isFull())
    ) {
      return false;
    }
    this.#coolingDown.set(id, cooling);
    return true;
  }

  #isFull(): boolean {
    if (this.#coolingDown.size >= MAX_COOLDOWNS) {
      [...this.#coolingDown.keys()].forEach((id) => this.cooling(id));
    }
    return this.#coolingDown.size >= MAX_COOLDOWNS;
  }
}

/** Redis' clock, in ms since the epoch. */
async function timeOf(redis: Redis): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** After the clock was set back, a cooldown that would last longer than it was started for is over. */
function isRunning({ until, lengthMs }: Cooling, now: number): boolean {
  return until > now && until - now < lengthMs + MAX_CORRECTION_MS;
}

/** null for a text that is not a cooldown. */
function parseCooling(text: unknown): Cooling | null {
  if (typeof text !== "string") {
    return null;
  }
  try {
    const parsed = JSON.parse(text) as Partial<Cooling> | null;
    return typeof parsed?.until === "number"
      ? {
          until: parsed.until,
          // Earlier releases did not write it, and knew no limit.
          lengthMs: Math.min(
            Number(parsed.lengthMs ?? MAX_COOLDOWN_MS),
            MAX_COOLDOWN_MS,
          ),
          reason: String(parsed.reason),
          requested: parsed.requested === true,
        }
      : null;
  } catch {
    return null;
  }
}
