import { request } from "undici";
import { isLocalRunner } from "../accounting/local-runner.ts";
import { unreachable } from "../providers/failure.ts";
import { wireOf } from "../providers/families.ts";
import type { PricedDeployment } from "./catalog.ts";

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
        .map(({ deployment }) => describe(deployment));
      const unhealthy = results.flatMap(({ deployment, error }) =>
        error === null ? [] : [{ ...describe(deployment), error }],
      );
      return {
        healthy_endpoints: healthy,
        unhealthy_endpoints: unhealthy,
        pending_endpoints: pending.map((deployment) => ({
          ...describe(deployment),
          waits_for: deployment.pending ?? "",
        })),
        healthy_count: healthy.length,
        unhealthy_count: unhealthy.length,
      };
    },
  };
}

function describe(deployment: PricedDeployment): EndpointHealth {
  const { alias, model, id, apiBase, priceCard } = deployment;
  return {
    model_name: alias,
    model,
    model_id: id,
    api_base: apiBase,
    ...(priceCard === null ? { unpriced: true as const } : {}),
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
