import type { Fallbacks, RouterConfig } from "../config/types.ts";
import {
  countsAgainstDeployment,
  isContextWindow,
  isRetryable,
  type UpstreamFailure,
} from "../providers/failure.ts";
import type { Catalog, ModelGroup, PricedDeployment } from "./catalog.ts";
import { cooldownId, type Cooldowns } from "./cooldowns.ts";
import { orderBy, type CallSize, type Observations } from "./strategies.ts";
import type { DeploymentUsage, Taken } from "./usage.ts";

/** The parts that choose deployments, shared by all calls. */
export interface Router {
  readonly config: RouterConfig;
  readonly catalog: Catalog;
  readonly cooldowns: Cooldowns;
  readonly usage: DeploymentUsage;
  readonly observations: Observations;
}

/** Where a call goes next. */
export interface Target {
  readonly group: ModelGroup;
  readonly deployment: PricedDeployment;
  /** Counted with the deployment's minute; corrected when the call ended. */
  readonly taken: Taken | null;
  /** To wait before: the deployment has just failed. */
  readonly pauseMs: number;
}

/** No deployment can take the call now. */
export interface NoTarget {
  readonly cause: "cooldown" | "limit";
  readonly retryAfterMs: number;
  readonly reason: string;
}

export interface RouteOptions {
  readonly group: ModelGroup;
  readonly size: CallSize;
  /** null: the deployment's own, else the router's. */
  readonly numRetries: number | null;
  /** null: the configured ones. */
  readonly fallbacks: readonly string[] | null;
  /** Whether a fallback may be used: allowed to the caller, and within what the call may cost. */
  readonly mayFallBack: (group: ModelGroup) => Promise<boolean>;
  readonly random?: () => number;
}

export interface Route {
  /** Where to begin. */
  first(): Promise<Target | NoTarget>;
  /** The deployment just given has answered. */
  answered(): void;
  /** Where to go on after a failure; null: the failure is the answer. */
  after(failure: UpstreamFailure): Promise<Target | null>;
  /** Another deployment of the same alias instead of the one just given, which was not asked; null: there is none. */
  otherOfGroup(): Promise<Target | null>;
  /** Where to go on instead of the target just given, which was not asked; null: nowhere. */
  passOver(): Promise<Target | null>;
  /** Fallbacks taken so far. */
  readonly fallbacksTaken: number;
}

const MOST_FALLBACKS = 5;
const FIRST_PAUSE_MS = 200;
const MOST_PAUSE_MS = 5_000;

/**
 * The way of one call through deployments: another one at once after a failure, the same one after a growing pause, and
 * when an alias is used up its fallbacks, at most five deep and none twice.
 */
export function planRoute(router: Router, options: RouteOptions): Route {
  const { random = Math.random } = options;
  const seen = new Set([options.group.alias]);
  let group = options.group;
  let tried: PricedDeployment[] = [];
  /** Not to be asked at all. */
  const passed: PricedDeployment[] = [];
  let current: PricedDeployment | null = null;
  let fallbacksTaken = 0;
  const waiting: string[] = [];
  /** Cooldowns that have this call in their counts: each counts it once, however often it is retried. */
  const counted = new Set<string>();

  /** A deployment whose cooldown ends with the pause before a retry can be asked again. */
  async function choose(pauseMs: number): Promise<Target | NoTarget> {
    const startsAt = Date.now() + pauseMs;
    const usable = group.deployments.filter((deployment) => {
      const id = cooldownId(group, deployment);
      const until = router.cooldowns.cooling(id)?.until ?? 0;
      const free = tried.includes(deployment) ? until <= startsAt : until === 0;
      return free && !passed.includes(deployment);
    });
    if (usable.length === 0) {
      return coolingOf(router, group);
    }
    const fresh = usable.filter((deployment) => !tried.includes(deployment));
    const candidates = fresh.length > 0 ? fresh : usable;
    const ordered = orderBy(
      router.config.strategy,
      candidates,
      router.observations,
      options.size,
      random,
    );
    const limited = needsCounting(router.config, group);
    const tokens = options.size.inputTokens + options.size.outputTokens;
    const taken = limited
      ? await router.usage.take(
          ordered,
          tokens,
          router.config.strategy !== "usage-based-routing",
        )
      : null;
    if (limited && taken === null) {
      return {
        cause: "limit",
        retryAfterMs: 60_000 - (Date.now() % 60_000),
        reason: "every deployment is at its limit of this minute",
      };
    }
    const deployment = ordered.find(
      ({ id }) => taken === null || id === taken.id,
    );
    if (deployment === undefined) {
      return coolingOf(router, group);
    }
    current = deployment;
    return {
      group,
      deployment,
      taken,
      pauseMs: tried.includes(deployment) ? pauseMs : 0,
    };
  }

  async function otherOfGroup(): Promise<Target | null> {
    if (current !== null) {
      passed.push(current);
    }
    const target = await choose(0);
    return "deployment" in target ? target : null;
  }

  /** An alias's own fallbacks come before what is left of those that led to it. */
  async function fallBack(contextWindow: boolean): Promise<Target | null> {
    const names = fallbackNames(
      router.config,
      group.alias,
      options.fallbacks,
      contextWindow,
    );
    waiting.unshift(...names);
    for (;;) {
      const name = waiting.shift();
      if (name === undefined || fallbacksTaken >= MOST_FALLBACKS) {
        return null;
      }
      const next = seen.has(name) ? null : router.catalog.find(name);
      seen.add(name);
      if (next === null || next.pending !== null) {
        continue;
      }
      if (!(await options.mayFallBack(next))) {
        continue;
      }
      group = next;
      tried = [];
      fallbacksTaken++;
      const target = await choose(0);
      if ("deployment" in target) {
        return target;
      }
      return fallBack(false);
    }
  }

  /** A failure that the request caused itself is an answer as far as the deployment is concerned. */
  function count(failure: UpstreamFailure | null): void {
    if (current === null) {
      return;
    }
    const id = cooldownId(group, current);
    const countedBefore = counted.has(id);
    counted.add(id);
    if (failure !== null && countsAgainstDeployment(failure)) {
      router.cooldowns.failed(id, {
        status: failure.status,
        reason: failure.message.slice(0, 300),
        retryAfterMs: failure.retryAfterMs,
        alone: group.deployments.length < 2,
        countedBefore,
      });
    } else if (!countedBefore) {
      router.cooldowns.answered(id);
    }
  }

  return {
    get fallbacksTaken() {
      return fallbacksTaken;
    },
    answered: () => count(null),
    async first() {
      const target = await choose(0);
      if ("deployment" in target) {
        return target;
      }
      return (await fallBack(false)) ?? target;
    },
    otherOfGroup,
    passOver: async () => (await otherOfGroup()) ?? fallBack(false),
    async after(failure) {
      count(failure);
      if (current !== null) {
        tried.push(current);
      }
      if (isContextWindow(failure)) {
        return fallBack(true);
      }
      if (!isRetryable(failure)) {
        return null;
      }
      const retries =
        options.numRetries ?? current?.maxRetries ?? router.config.numRetries;
      if (tried.length <= retries) {
        const target = await choose(
          pause(tried.length, failure.retryAfterMs, random),
        );
        if ("deployment" in target) {
          return target;
        }
      }
      return fallBack(false);
    },
  };
}

/** One deployment without limits needs no counting, and so no round trip. */
function needsCounting(
  { strategy }: RouterConfig,
  { deployments }: ModelGroup,
): boolean {
  if (deployments.some(({ rpm, tpm }) => rpm !== null || tpm !== null)) {
    return true;
  }
  return strategy === "usage-based-routing" && deployments.length > 1;
}

function fallbackNames(
  config: RouterConfig,
  alias: string,
  asked: readonly string[] | null,
  contextWindow: boolean,
): readonly string[] {
  if (contextWindow) {
    const longer = fallbacksOf(config.contextWindowFallbacks, alias);
    if (longer !== undefined) {
      return longer;
    }
  }
  return (
    asked ?? fallbacksOf(config.fallbacks, alias) ?? config.defaultFallbacks
  );
}

/** A wildcard's alias is what a caller thought of: `constructor` too. */
function fallbacksOf(
  fallbacks: Fallbacks,
  alias: string,
): readonly string[] | undefined {
  return fallbacks[Object.hasOwn(fallbacks, alias) ? alias : "*"];
}

function coolingOf(router: Router, group: ModelGroup): NoTarget {
  const coolingDown = group.deployments.flatMap((deployment) => {
    const cooling = router.cooldowns.cooling(cooldownId(group, deployment));
    return cooling === null
      ? []
      : [{ ...cooling, address: deployment.apiBase }];
  });
  const [soonest] = coolingDown.toSorted((a, b) => a.until - b.until);
  return {
    cause: "cooldown",
    retryAfterMs: Math.max(0, (soonest?.until ?? Date.now()) - Date.now()),
    reason:
      soonest === undefined
        ? "it has no deployment"
        : `${soonest.address}: ${soonest.reason}`,
  };
}

function pause(
  failures: number,
  asked: number | null,
  random: () => number,
): number {
  if (asked !== null) {
    return Math.min(asked, MOST_PAUSE_MS);
  }
  const step = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), MOST_PAUSE_MS);
  return step / 2 + random() * (step / 2);
}
