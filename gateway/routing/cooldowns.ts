import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { RouterConfig } from "../config/types.ts";
import type { ModelGroup, PricedDeployment } from "./catalog.ts";
import { createRecentCalls, type RecentCalls } from "./recent-calls.ts";

/** Why a deployment is cooling down, and until when (ms since the epoch). */
export interface Cooling {
  readonly until: number;
  readonly reason: string;
}

/** Cooldowns by the names that {@link cooldownId} gives. */
export interface Cooldowns {
  cooling(id: string): Cooling | null;
  /** A call that says nothing against the deployment. */
  answered(id: string): void;
  /** A failed attempt that counts against the deployment. */
  failed(id: string, failure: CountedFailure): void;
  /** A call that could not be sent because of the cooldown. */
  rejected(id: string): void;
  /** A deployment's cooldown, the latest of its models, and its calls of the current minute on this instance. */
  stateOf(deploymentId: string): CooldownState;
  /** Deployments, or models of wildcards, with calls in the current minute. */
  observed(): number;
  stop(): void;
}

export interface CooldownState extends RecentCalls {
  readonly cooling: Cooling | null;
}

export interface CountedFailure {
  readonly status: number;
  readonly reason: string;
  readonly retryAfterMs: number | null;
  /** No other deployment could take the call. */
  readonly alone: boolean;
  /** An earlier attempt of the same call at this deployment was counted. */
  readonly countedBefore: boolean;
}

export interface CooldownOptions {
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
  readonly onCooldown: (deploymentId: string) => void;
  readonly now?: () => number;
}

/** One hash without expiry: the reader removes entries that have ended. */
const SHARED = "hearth:cooldowns";
const SHARE_EVERY_MS = 500;
/** In no id: NUL is not allowed in names. */
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
 * A deployment cools down for `cooldown_time`, or as long as its provider asks, when it failed too often and with too
 * large a share of the minute's calls, and at once for a 429. The only deployment of an alias cools down only for a 429
 * that says for how long. Instances share cooldowns through Redis within half a second.
 */
export function createCooldowns(options: CooldownOptions): Cooldowns {
  const { router, redis, log, now = Date.now } = options;
  const coolingDown = new Map<string, Cooling>();
  const recent = createRecentCalls(now);
  const timer =
    redis === null
      ? undefined
      : setInterval(() => {
          // While Redis is away each instance has only its own.
          readShared(redis).catch(() => undefined);
        }, SHARE_EVERY_MS);
  timer?.unref();

  function coolDown(id: string, cooling: Cooling): void {
    coolingDown.set(id, cooling);
    const [deployment, model] = id.split(BEFORE_MODEL);
    options.onCooldown(deploymentOf(id));
    log.warn(
      {
        deployment,
        model,
        reason: cooling.reason,
        until: new Date(cooling.until).toISOString(),
      },
      "a deployment is cooling down",
    );
    redis?.hset(SHARED, id, JSON.stringify(cooling)).catch(() => undefined);
  }

  async function readShared(from: Redis): Promise<void> {
    const shared = await from.hgetall(SHARED);
    for (const [id, text] of Object.entries(shared)) {
      const cooling = parseCooling(text);
      if (cooling !== null && cooling.until > now()) {
        coolingDown.set(id, cooling);
      } else {
        await from.hdel(SHARED, id);
      }
    }
  }

  function cooling(id: string): Cooling | null {
    const found = coolingDown.get(id);
    if (found === undefined) {
      return null;
    }
    if (found.until > now()) {
      return found;
    }
    coolingDown.delete(id);
    return null;
  }

  return {
    cooling,
    answered: (id) => void recent.of(id).calls++,
    failed(id, { status, reason, retryAfterMs, alone, countedBefore }) {
      const { allowedFails, cooldownMs, ...least } = router();
      const counts = recent.of(id);
      if (!countedBefore) {
        counts.calls++;
        counts.failures++;
      }
      const { calls, failures } = counts;
      const tooMany =
        cooling(id) === null &&
        failures > allowedFails &&
        calls >= least.cooldownMinimumCalls &&
        failures >= calls * least.cooldownFailureRatio;
      const rateLimited = status === 429;
      if (
        alone ? rateLimited && retryAfterMs !== null : rateLimited || tooMany
      ) {
        coolDown(id, { until: now() + (retryAfterMs ?? cooldownMs), reason });
      }
    },
    rejected: (id) => void recent.of(id).rejections++,
    stateOf(deploymentId) {
      const own = (id: string) => deploymentOf(id) === deploymentId;
      const [latest = null] = [...coolingDown.keys()]
        .filter(own)
        .map(cooling)
        .filter((found) => found !== null)
        .sort((a, b) => b.until - a.until);
      return { cooling: latest, ...recent.sumOf(own) };
    },
    observed: () => recent.size(),
    stop: () => clearInterval(timer),
  };
}

/** null for a text that is not ours. */
function parseCooling(text: unknown): Cooling | null {
  if (typeof text !== "string") {
    return null;
  }
  try {
    const parsed = JSON.parse(text) as Partial<Cooling> | null;
    return typeof parsed?.until === "number"
      ? { until: parsed.until, reason: String(parsed.reason) }
      : null;
  } catch {
    return null;
  }
}
