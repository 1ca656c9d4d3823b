import { MINUTE_MS } from "../../core/duration.ts";
import type { Fallbacks, RouterConfig } from "../config/types.ts";
import {
  countsAgainstDeployment,
  isContentFilter,
  isContextWindow,
  isRetryable,
  type UpstreamFailure,
} from "../providers/failure.ts";
import type { ModelGroup, PricedDeployment } from "./catalog.ts";
import { cooldownId, type Cooldowns, type CountedAs } from "./cooldowns.ts";
import type { Runners } from "../runners/runners.ts";
import { coolingOf, goneOf, usedUpOf, type NoTarget } from "./no-target.ts";
import type { ProviderBudgets } from "./provider-budgets.ts";
import {
  orderBy,
  type CallSize,
  type Observations,
  type Session,
} from "./strategies.ts";
import type { DeploymentUsage, Taken } from "./usage.ts";

/** What deployments are chosen with; shared by all calls. */
export interface Router {
  readonly config: RouterConfig;
  readonly cooldowns: Cooldowns;
  readonly usage: DeploymentUsage;
  readonly observations: Observations;
  readonly providerBudgets: ProviderBudgets;
  readonly runners: Pick<Runners, "goneReason" | "slots">;
}

/** The next deployment for a call. */
export interface Target {
  readonly group: ModelGroup;
  readonly deployment: PricedDeployment;
  /** Counted in the deployment's usage of this minute; corrected when the call ended. */
  readonly taken: Taken | null;
  /** How long to wait first: the deployment has just failed. */
  readonly pauseMs: number;
}

interface RouteOptions {
  readonly group: ModelGroup;
  readonly size: CallSize;
  /** null: the deployment's own, else the router's. */
  readonly numRetries: number | null;
  /** null: the configured ones. */
  readonly fallbacks: readonly string[] | null;
  /** The group of a fallback's name, for this call; null: there is none. */
  readonly find: (name: string) => ModelGroup | null;
  /** Whether the call may be sent to an alias once more, within what it may cost. */
  readonly mayRetry: (group: ModelGroup) => Promise<boolean>;
  /** Whether a fallback may be used: allowed to the caller, and within what the call may cost. */
  readonly mayFallBack: (group: ModelGroup) => Promise<boolean>;
  /** Asked only where there is a choice. */
  readonly session: () => Session | null;
  readonly random?: () => number;
}

const MAX_FALLBACKS = 5;
const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 5_000;
const MAX_REASON_CHARACTERS = 300;

/**
 * The route of one call through deployments: another one immediately after a failure, the same one after a growing pause,
 * and when an alias is exhausted its fallbacks, at most five deep and none twice.
 */
export class Route {
  readonly #router: Router;
  readonly #options: RouteOptions;
  /** Aliases that were tried or considered. */
  readonly #visited: Set<string>;
  #group: ModelGroup;
  #tried: PricedDeployment[] = [];
  /** Deployments that cannot take the call at all. */
  readonly #excluded: PricedDeployment[] = [];
  #current: PricedDeployment | null = null;
  /** Fallbacks that were called: one that cools down takes no place of another that can answer. */
  readonly #fallbacksCalled = new Set<ModelGroup>();
  /** Names of fallbacks to try next. */
  readonly #fallbacks: string[] = [];
  /** No other target can take the call: its own deployment is called although it is cooling down. */
  #despiteCooldown = false;
  /** The call follows `content_policy_fallbacks`: a further rejection of its content leads on. */
  #followsContentPolicy = false;
  /** undefined: not asked for yet. */
  #session: Session | null | undefined;
  /** What cooldowns have counted this call as: each counts it once, however often it is retried. */
  readonly #counted = new Map<string, CountedAs>();

  constructor(router: Router, options: RouteOptions) {
    this.#router = router;
    this.#options = options;
    this.#group = options.group;
    this.#visited = new Set([options.group.alias]);
  }

  get fallbacksTaken(): number {
    return this.#fallbacksCalled.size;
  }

  /** The first target. */
  async first(): Promise<Target | NoTarget> {
    const target = await this.#choose(0);
    if ("deployment" in target) {
      return target;
    }
    return (
      (await this.#fallBack()) ?? (await this.#ownDespiteCooldown()) ?? target
    );
  }

  /** Records that a target has answered. */
  answered(target: Target): void {
    this.#count(target, null);
  }

  /** Records that a target has failed. */
  failed(failure: UpstreamFailure, target: Target): void {
    this.#count(target, failure);
    this.#tried.push(target.deployment);
  }

  /** Records that a target that has answered failed before the end of its answer. */
  brokeOff(failure: UpstreamFailure, target: Target): void {
    this.#count(target, failure);
  }

  /** Another deployment of the alias that was not tried, while `target` is called; null: there is none. */
  async beside({ deployment }: Target): Promise<Target | null> {
    const other = await this.#choose(0, [
      ...this.#excluded,
      ...this.#tried,
      deployment,
    ]);
    return "deployment" in other ? other : null;
  }

  /** Another deployment of the alias that was not tried and has a free slot, or needs none; null: there is none. */
  async free(inUse: readonly PricedDeployment[]): Promise<Target | null> {
    const { slots } = this.#router.runners;
    const others = this.#group.deployments.filter(
      (one) => !inUse.includes(one) && (slots.of(one)?.hasFree ?? true),
    );
    if (others.length === 0) {
      return null;
    }
    const other = await this.#choose(0, [
      ...this.#excluded,
      ...this.#tried,
      ...this.#group.deployments.filter((one) => !others.includes(one)),
    ]);
    return "deployment" in other ? other : null;
  }

  /** The next target after a failure; null: the failure is the answer. */
  async after(
    failure: UpstreamFailure,
    target: Target,
  ): Promise<Target | null> {
    this.failed(failure, target);
    const { contextWindowFallbacks } = this.#router.config;
    if (isContextWindow(failure)) {
      return this.#fallBack(
        fallbacksOf(contextWindowFallbacks, this.#group.alias),
      );
    }
    if (isContentFilter(failure)) {
      return this.#afterContentFilter();
    }
    if (failure.isLast || !isRetryable(failure)) {
      return null;
    }
    const retries =
      this.#options.numRetries ??
      target.deployment.maxRetries ??
      this.#router.config.numRetries;
    if (
      this.#tried.length <= retries &&
      (await this.#options.mayRetry(this.#group))
    ) {
      const next = await this.#choose(
        pauseMs(this.#tried.length, failure.retryAfterMs, this.#random),
      );
      if ("deployment" in next) {
        return next;
      }
    }
    return this.#fallBack();
  }

  /** Whether the route goes on where content is rejected. Another provider may accept it; only `content_policy_fallbacks` say which. */
  get avoidsContentFilter(): boolean {
    return (
      this.#followsContentPolicy || this.#contentPolicyFallbacks !== undefined
    );
  }

  get #contentPolicyFallbacks(): readonly string[] | undefined {
    const { contentPolicyFallbacks } = this.#router.config;
    return fallbacksOf(contentPolicyFallbacks, this.#group.alias);
  }

  async #afterContentFilter(): Promise<Target | null> {
    if (!this.avoidsContentFilter) {
      return null;
    }
    this.#followsContentPolicy = true;
    return this.#fallBack(this.#contentPolicyFallbacks ?? []);
  }

  /** Another deployment of the same alias instead of the current one, which was not called; null: there is none. */
  async otherOfGroup(): Promise<Target | null> {
    if (this.#current !== null) {
      this.#excluded.push(this.#current);
    }
    const target = await this.#choose(0);
    return "deployment" in target ? target : null;
  }

  /** The next target instead of the current one, which was not called; null: there is none. */
  async passOver(): Promise<Target | null> {
    return (await this.otherOfGroup()) ?? this.#fallBack();
  }

  get #random(): () => number {
    return this.#options.random ?? Math.random;
  }

  async #choose(
    pause: number,
    excluded = this.#excluded,
  ): Promise<Target | NoTarget> {
    const free = this.#usable(pause, excluded);
    if (free.length === 0) {
      return (
        goneOf(this.#router.runners, this.#group) ??
        coolingOf(this.#router.cooldowns, this.#group)
      );
    }
    const { providerBudgets, runners } = this.#router;
    const { usable: affordable, usedUp } = providerBudgets.none
      ? { usable: free, usedUp: [] }
      : await providerBudgets.select(free);
    if (affordable.length === 0) {
      return usedUpOf(usedUp);
    }
    const usable = runners.slots.select(affordable);
    if (usable.length === 0) {
      return {
        cause: "queue",
        retryAfterMs: runners.slots.expectedWaitMs(affordable),
        reason: "all slots are in use and the queue is full",
      };
    }
    const ordered = this.#order(usable);
    const limited = needsCounting(this.#router.config, this.#group);
    const taken = limited ? await this.#take(ordered) : null;
    if (limited && taken === null) {
      return {
        cause: "limit",
        retryAfterMs: MINUTE_MS - (Date.now() % MINUTE_MS),
        reason: "all deployments have reached their limit for this minute",
      };
    }
    const deployment = ordered.find(
      ({ id }) => taken === null || id === taken.id,
    );
    if (deployment === undefined) {
      return coolingOf(this.#router.cooldowns, this.#group);
    }
    this.#current = deployment;
    return {
      group: this.#group,
      deployment,
      taken,
      pauseMs: this.#tried.includes(deployment) ? pause : 0,
    };
  }

  /** A deployment whose cooldown ends with the pause before a retry can be called again. */
  #usable(
    pause: number,
    excluded: readonly PricedDeployment[],
  ): readonly PricedDeployment[] {
    const startsAt = Date.now() + pause;
    const { runners } = this.#router;
    return this.#group.deployments.filter((deployment) => {
      if (runners.goneReason(deployment) !== null) {
        return false;
      }
      const id = cooldownId(this.#group, deployment);
      const until = this.#router.cooldowns.cooling(id)?.until ?? 0;
      const free =
        this.#despiteCooldown ||
        (this.#tried.includes(deployment) ? until <= startsAt : until === 0);
      return free && !excluded.includes(deployment);
    });
  }

  /** The deployments that were not tried yet, or else all of them, in the strategy's order. */
  #order(usable: readonly PricedDeployment[]): readonly PricedDeployment[] {
    const fresh = usable.filter(
      (deployment) => !this.#tried.includes(deployment),
    );
    return orderBy(
      this.#router.config.strategy,
      fresh.length > 0 ? fresh : usable,
      this.#router.observations,
      this.#options.size,
      this.#sessionAmong(usable),
      this.#random,
    );
  }

  #sessionAmong(usable: readonly PricedDeployment[]): Session | null {
    if (usable.length < 2) {
      return null;
    }
    if (this.#session === undefined) {
      this.#session = this.#options.session();
    }
    return this.#session;
  }

  #take(ordered: readonly PricedDeployment[]): Promise<Taken | null> {
    const { inputTokens, outputTokens } = this.#options.size;
    return this.#router.usage.take(
      ordered,
      inputTokens + outputTokens,
      this.#router.config.strategy !== "usage-based-routing" ||
        this.#sessionAmong(ordered) !== null,
    );
  }

  /** An alias's own fallbacks (`special` for some failures) come before the remaining ones of the aliases that led to it. */
  async #fallBack(special?: readonly string[]): Promise<Target | null> {
    this.#fallbacks.unshift(
      ...(special ?? this.#fallbacksOfAlias(this.#group.alias)),
    );
    for (;;) {
      const name = this.#fallbacks.shift();
      if (name === undefined || this.fallbacksTaken >= MAX_FALLBACKS) {
        return null;
      }
      const next = this.#visited.has(name) ? null : this.#options.find(name);
      this.#visited.add(name);
      if (next === null || next.blocked || next.pending !== null) {
        continue;
      }
      if (!(await this.#options.mayFallBack(next))) {
        continue;
      }
      this.#group = next;
      this.#tried = [];
      const target = await this.#choose(0);
      return "deployment" in target ? target : this.#fallBack();
    }
  }

  #fallbacksOfAlias(alias: string): readonly string[] {
    const { fallbacks, defaultFallbacks } = this.#router.config;
    return (
      this.#options.fallbacks ??
      fallbacksOf(fallbacks, alias) ??
      defaultFallbacks
    );
  }

  /** Whether a fallback exists that the call has not tried; it may still not be allowed to use it. */
  #hasFallback({ alias }: ModelGroup): boolean {
    return [...this.#fallbacks, ...this.#fallbacksOfAlias(alias)].some(
      (name) => !this.#visited.has(name) && this.#options.find(name) !== null,
    );
  }

  /**
   * The alias's only deployment, if it cools down for failing: a call that no fallback can take is better tried than rejected.
   */
  async #ownDespiteCooldown(): Promise<Target | null> {
    const { group } = this.#options;
    const [only, ...others] = group.deployments;
    if (only === undefined || others.length > 0) {
      return null;
    }
    const cooling = this.#router.cooldowns.cooling(cooldownId(group, only));
    if (cooling === null || cooling.requested) {
      return null;
    }
    this.#group = group;
    this.#despiteCooldown = true;
    const target = await this.#choose(0);
    return "deployment" in target ? target : null;
  }

  /** Counts an attempt; for the deployment a failure that the request itself caused is an answer. */
  #count({ group, deployment }: Target, failure: UpstreamFailure | null): void {
    if (group !== this.#options.group) {
      this.#fallbacksCalled.add(group);
    }
    const id = cooldownId(group, deployment);
    const countedBefore = this.#counted.get(id) ?? null;
    if (failure !== null && countsAgainstDeployment(failure)) {
      this.#counted.set(id, "failure");
      this.#router.cooldowns.failed(id, {
        status: failure.status,
        reason: failure.message.slice(0, MAX_REASON_CHARACTERS),
        retryAfterMs: failure.retryAfterMs,
        alone: group.deployments.length < 2,
        hasFallback: this.#hasFallback(group),
        countedBefore,
      });
    } else if (countedBefore === null) {
      this.#counted.set(id, "answer");
      this.#router.cooldowns.answered(id);
    }
  }
}

/** A single deployment without limits needs no counting and thus no round trip. */
function needsCounting(
  { strategy }: RouterConfig,
  { deployments }: ModelGroup,
): boolean {
  if (deployments.some(({ rpm, tpm }) => rpm !== null || tpm !== null)) {
    return true;
  }
  return strategy === "usage-based-routing" && deployments.length > 1;
}

/** With a wildcard an alias is any text that a caller sent, even `constructor`. */
function fallbacksOf(
  fallbacks: Fallbacks,
  alias: string,
): readonly string[] | undefined {
  return fallbacks[Object.hasOwn(fallbacks, alias) ? alias : "*"];
}

function pauseMs(
  failures: number,
  requestedMs: number | null,
  random: () => number,
): number {
  if (requestedMs !== null) {
    return Math.min(requestedMs, MAX_PAUSE_MS);
  }
  const step = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), MAX_PAUSE_MS);
  return step / 2 + random() * (step / 2);
}
