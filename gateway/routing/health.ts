import { request } from "undici";
import { isLocalRunner } from "../accounting/local-runner.ts";
import { pricesCalls } from "../accounting/price-card.ts";
import { unreachable } from "../providers/failure.ts";
import { wireOf } from "../providers/families.ts";
import type { PricedDeployment } from "./catalog.ts";
import type { CooldownState } from "./cooldowns.ts";

/** What `/health` tells of one deployment; never a secret. */
export interface EndpointHealth {
  readonly model_name: string;
  readonly model: string;
  readonly model_id: string;
  readonly api_base: string;
  readonly error?: string;
  /** Nobody knows what its calls cost: they are billed 0. */
  readonly unpriced?: true;
  /** The variable that a pending one waits for. */
  readonly waits_for?: string;
  /** When its cooldown ends; a wildcard's: the latest of its models. */
  readonly cooling_down_until: string | null;
  /** Of the current minute, on this instance. */
  readonly recent_calls: number;
  readonly recent_failures: number;
  /** Calls rejected in that minute because the deployment was cooling down, with every other one of its alias. */
  readonly recent_rejections: number;
}

export interface HealthReport {
  readonly healthy_endpoints: readonly EndpointHealth[];
  readonly unhealthy_endpoints: readonly EndpointHealth[];
  readonly pending_endpoints: readonly EndpointHealth[];
  readonly healthy_count: number;
  readonly unhealthy_count: number;
}

export interface ModelHealth {
  /** All deployments, or those of one alias; `deep` calls local runners too, which may have to load a model for it. */
  check(alias: string | null, deep: boolean): Promise<HealthReport>;
}

const KEEP_MS = 30_000;
const LIMIT_MS = 10_000;

/**
 * Asks deployments whether they answer, all at once: local runners for their model list, which makes none of them load
 * a model, everyone else (or, `deep`, everyone) by a call of one token. Kept for 30 s.
 */
export function createModelHealth(
  deployments: () => readonly PricedDeployment[],
  tryDeployment: (deployment: PricedDeployment) => Promise<string | null>,
  cooldownOf: (deployment: PricedDeployment) => CooldownState,
  now: () => number = Date.now,
): ModelHealth {
  const answers = new Map<
    string,
    { readonly at: number; readonly error: Promise<string | null> }
  >();

  /** One question to each address for its list; one call to each deployment. */
  function errorOf(
    deployment: PricedDeployment,
    deep: boolean,
  ): Promise<string | null> {
    // A wildcard has no model of its own that could be called.
    const listed =
      (isLocalRunner(deployment) && !deep) || deployment.model.endsWith("*");
    const name = listed ? deployment.apiBase : `call|${deployment.id}`;
    const known = answers.get(name);
    if (known !== undefined && now() - known.at < KEEP_MS) return known.error;
    const error = listed ? askForModels(deployment) : tryDeployment(deployment);
    answers.set(name, { at: now(), error });
    return error;
  }

  const described = (deployment: PricedDeployment) =>
    describe(deployment, cooldownOf(deployment));

  return {
    async check(alias, deep) {
      const asked = deployments().filter(
        (deployment) => alias === null || deployment.alias === alias,
      );
      const pending = asked.filter((deployment) => deployment.pending !== null);
      const results = await Promise.all(
        asked
          .filter((deployment) => deployment.pending === null)
          .map(async (deployment) => ({
            deployment,
            error: await errorOf(deployment, deep),
          })),
      );
      const healthy = results
        .filter(({ error }) => error === null)
        .map(({ deployment }) => described(deployment));
      const unhealthy = results.flatMap(({ deployment, error }) =>
        error === null ? [] : [{ ...described(deployment), error }],
      );
      return {
        healthy_endpoints: healthy,
        unhealthy_endpoints: unhealthy,
        pending_endpoints: pending.map((deployment) => ({
          ...described(deployment),
          waits_for: deployment.pending ?? "",
        })),
        healthy_count: healthy.length,
        unhealthy_count: unhealthy.length,
      };
    },
  };
}

function describe(
  deployment: PricedDeployment,
  { cooling, calls, failures, rejections }: CooldownState,
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
    ...(priceCard === null || !pricesCalls(priceCard)
      ? { unpriced: true as const }
      : {}),
  };
}

/** null when it answers, else one sentence. */
async function askForModels(
  deployment: PricedDeployment,
): Promise<string | null> {
  const { apiBase, provider } = deployment;
  const path = provider === "anthropic" ? "/v1/models" : "/models";
  try {
    const answer = await request(apiBase + path, {
      headers: wireOf(provider).headers(deployment, {}),
      signal: AbortSignal.timeout(LIMIT_MS),
    });
    await answer.body.dump();
    return answer.statusCode < 400
      ? null
      : `${apiBase} answered ${answer.statusCode} when asked for its models`;
  } catch (error) {
    if (error instanceof DOMException)
      return `${apiBase} did not answer within ${LIMIT_MS / 1_000} s`;
    return unreachable(error, apiBase).message;
  }
}
