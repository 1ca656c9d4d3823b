import { request } from "undici";
import { isWithin } from "../../core/clock-jumps.ts";
import { isLocalRunner } from "../pricing/local-runner.ts";
import { pricesCalls } from "../pricing/price-card.ts";
import { unreachable } from "../providers/failure.ts";
import { DeploymentAgents } from "../providers/outgoing-agent.ts";
import { accessOf, headersOf } from "../runners/address.ts";
import type { RunnerView } from "../runners/runner-view.ts";
import { isEnabled, statusOf, type PricedDeployment } from "./catalog.ts";
import type { CooldownState } from "./cooldowns.ts";

/** One deployment in `/health`; contains no secret. */
interface EndpointHealth {
  readonly model_name: string;
  readonly model: string;
  readonly model_id: string;
  readonly api_base: string;
  readonly error?: string;
  /** Its price is unknown: calls are billed 0. */
  readonly unpriced?: true;
  /** The variable that a pending deployment requires. */
  readonly waits_for?: string;
  /** When its cooldown ends; of a wildcard: the latest of its models. */
  readonly cooling_down_until: string | null;
  /** Of the current minute, on this instance. */
  readonly recent_calls: number;
  readonly recent_failures: number;
  /** Calls rejected in that minute because all deployments of the alias were cooling down. */
  readonly recent_rejections: number;
  /** null: it is no local runner. */
  readonly runner: RunnerView | null;
}

interface HealthReport {
  readonly healthy_endpoints: readonly EndpointHealth[];
  readonly unhealthy_endpoints: readonly EndpointHealth[];
  readonly pending_endpoints: readonly EndpointHealth[];
  /** Switched off: not checked. */
  readonly blocked_endpoints: readonly EndpointHealth[];
  readonly healthy_count: number;
  readonly unhealthy_count: number;
}

interface HealthQuestion {
  readonly alias?: string | null;
  /** Of a deployment. */
  readonly id?: string | null;
  /** Calls local runners too, which may have to load a model. */
  readonly deep: boolean;
  /** Deployments that answered a call within this time are skipped; others are checked by their model list if they have one. */
  readonly recentMs: number | null;
}

/** What one process counts for a deployment. */
export interface DeploymentLoad {
  readonly recent_calls: number;
  readonly recent_failures: number;
  readonly recent_rejections: number;
  readonly slots_used: number;
  readonly queued: number;
}

interface Answer {
  /** null when it answers, otherwise one sentence. */
  readonly error: string | null;
  /** It answers but has no model list. */
  readonly listless: boolean;
}

const CACHE_MS = 30_000;
const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
const AGENTS = new DeploymentAgents(TIMEOUT_MS, MAX_ANSWER_BYTES);

interface ModelHealthOptions {
  readonly deployments: () => readonly PricedDeployment[];
  /** Calls a deployment; null when it answers, otherwise one sentence. */
  readonly tryDeployment: (
    deployment: PricedDeployment,
  ) => Promise<string | null>;
  readonly cooldownOf: (deployment: PricedDeployment) => CooldownState;
  readonly runnerOf: (deployment: PricedDeployment) => RunnerView | null;
  /** When a deployment last answered a call, ms since the epoch. */
  readonly answeredAt: (deploymentId: string) => number | null;
  readonly now?: () => number;
}

/**
 * Checks deployments concurrently: local runners by their model list, so that none has to load a model, all others (or,
 * `deep`, all) by a call of one token. Results are cached for 30 s. With `recentMs` a check costs nothing where recent
 * calls or a model list answer it.
 */
export class ModelHealth {
  readonly #options: ModelHealthOptions;
  readonly #now: () => number;
  readonly #cache = new Map<
    string,
    { readonly at: number; readonly answer: Promise<Answer> }
  >();

  constructor(options: ModelHealthOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** All deployments, or those of one alias or with one id. */
  async check({
    alias = null,
    id = null,
    ...how
  }: HealthQuestion): Promise<HealthReport> {
    const selected = this.#options
      .deployments()
      .filter(
        (deployment) =>
          (alias === null || deployment.alias === alias) &&
          (id === null || deployment.id === id),
      );
    const pending = selected.filter((one) => statusOf(one) === "pending");
    const blocked = selected.filter((one) => one.blocked);
    const results = await Promise.all(
      selected.filter(isEnabled).map(async (deployment) => ({
        deployment,
        error: await this.#errorOf(deployment, how),
      })),
    );
    const healthy = results
      .filter(({ error }) => error === null)
      .map(({ deployment }) => this.#describe(deployment));
    const unhealthy = results.flatMap(({ deployment, error }) =>
      error === null ? [] : [{ ...this.#describe(deployment), error }],
    );
    return {
      healthy_endpoints: healthy,
      unhealthy_endpoints: unhealthy,
      pending_endpoints: pending.map((deployment) => ({
        ...this.#describe(deployment),
        waits_for: deployment.pending ?? "",
      })),
      blocked_endpoints: blocked.map((each) => this.#describe(each)),
      healthy_count: healthy.length,
      unhealthy_count: unhealthy.length,
    };
  }

  /** What this process has counted for each deployment. */
  loads(): Readonly<Record<string, DeploymentLoad>> {
    return Object.fromEntries(
      this.#options
        .deployments()
        .map((deployment) => [
          deployment.id,
          loadOf(this.#describe(deployment)),
        ]),
    );
  }

  async #errorOf(
    deployment: PricedDeployment,
    { deep, recentMs }: HealthQuestion,
  ): Promise<string | null> {
    if (recentMs !== null && this.#hasAnsweredWithin(recentMs, deployment)) {
      return null;
    }
    // A wildcard has no model that could be called.
    const listOnly =
      (isLocalRunner(deployment) && !deep) || deployment.model.endsWith("*");
    if (listOnly) {
      return (await this.#list(deployment)).error;
    }
    if (recentMs === null) {
      return (await this.#call(deployment)).error;
    }
    const { error, listless } = await this.#list(deployment);
    return listless ? (await this.#call(deployment)).error : error;
  }

  #hasAnsweredWithin(ms: number, { id }: PricedDeployment): boolean {
    const answeredAt = this.#options.answeredAt(id);
    return answeredAt !== null && isWithin(answeredAt, ms, this.#now());
  }

  /** The model list is requested once for all deployments of a local runner with the same key, elsewhere once per deployment. */
  #list(deployment: PricedDeployment): Promise<Answer> {
    const name = isLocalRunner(deployment)
      ? accessOf(deployment)
      : deployment.id;
    return this.#cached(`list|${name}`, () => askForModels(deployment));
  }

  #call(deployment: PricedDeployment): Promise<Answer> {
    return this.#cached(`call|${deployment.id}`, async () => ({
      error: await this.#options.tryDeployment(deployment),
      listless: false,
    }));
  }

  #cached(name: string, ask: () => Promise<Answer>): Promise<Answer> {
    const known = this.#cache.get(name);
    if (known !== undefined && isWithin(known.at, CACHE_MS, this.#now())) {
      return known.answer;
    }
    const answer = ask();
    this.#cache.set(name, { at: this.#now(), answer });
    return answer;
  }

  #describe(deployment: PricedDeployment): EndpointHealth {
    const { cooldownOf, runnerOf } = this.#options;
    return describe(deployment, cooldownOf(deployment), runnerOf(deployment));
  }
}

function describe(
  deployment: PricedDeployment,
  { cooling, calls, failures, rejections }: CooldownState,
  runner: RunnerView | null,
): EndpointHealth {
  const { alias, model, id, apiBase, priceCard } = deployment;
  return {
    model_name: alias,
    model,
    model_id: id,
    api_base: apiBase,
    cooling_down_until:
      cooling === null ? null : new Date(cooling.until).toISOString(),
    recent_calls: calls,
    recent_failures: failures,
    recent_rejections: rejections,
    runner,
    ...(priceCard === null || !pricesCalls(priceCard)
      ? { unpriced: true as const }
      : {}),
  };
}

function loadOf(endpoint: EndpointHealth): DeploymentLoad {
  const { recent_calls, recent_failures, recent_rejections, runner } = endpoint;
  const { slots_used = 0, queued = 0 } = runner ?? {};
  return {
    recent_calls,
    recent_failures,
    recent_rejections,
    slots_used,
    queued,
  };
}

/** The report with the sums of what all workers of a gateway have counted. */
export function withLoads(
  report: HealthReport,
  workers: readonly Readonly<Record<string, DeploymentLoad>>[],
): HealthReport {
  const withSums = (endpoint: EndpointHealth): EndpointHealth => {
    const loads = workers.flatMap((loads) => loads[endpoint.model_id] ?? []);
    const sum = (name: keyof DeploymentLoad) =>
      loads.reduce((total, load) => total + load[name], 0);
    const { runner } = endpoint;
    return {
      ...endpoint,
      recent_calls: sum("recent_calls"),
      recent_failures: sum("recent_failures"),
      recent_rejections: sum("recent_rejections"),
      runner: runner && {
        ...runner,
        slots_used: sum("slots_used"),
        queued: sum("queued"),
      },
    };
  };
  return {
    ...report,
    healthy_endpoints: report.healthy_endpoints.map(withSums),
    unhealthy_endpoints: report.unhealthy_endpoints.map(withSums),
    pending_endpoints: report.pending_endpoints.map(withSums),
  };
}

async function askForModels(deployment: PricedDeployment): Promise<Answer> {
  const { apiBase, provider } = deployment;
  const path = provider === "anthropic" ? "/v1/models" : "/models";
  try {
    const answer = await request(apiBase + path, {
      dispatcher: AGENTS.of(deployment),
      headers: headersOf(deployment),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await answer.body.dump();
    const { statusCode } = answer;
    return {
      error:
        statusCode < 400
          ? null
          : `${apiBase} answered ${statusCode} to a request for its model list`,
      listless: [404, 405, 501].includes(statusCode),
    };
  } catch (error) {
    const late = `${apiBase} did not answer within ${TIMEOUT_MS / 1_000} s`;
    return {
      error:
        error instanceof DOMException
          ? late
          : unreachable(error, apiBase).message,
      listless: false,
    };
  }
}
